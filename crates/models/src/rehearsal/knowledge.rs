//! The rehearsal in front of a knowledge graph: it takes the names out of a question, keeps the facts that share words
//! with it, and says them as they are.

use super::NOTE;
use super::given::Given;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use trellis_orchestrator::documents::words;

/// Words that ask and join.
const ASKING: [&str; 24] = [
    "a", "an", "and", "are", "at", "by", "did", "do", "does", "for", "how", "in", "is", "of", "on", "the", "to", "was",
    "what", "when", "where", "which", "who", "whose",
];
const MOST_CONCEPTS: usize = 6;
const MOST_FACTS: usize = 8;

/// The reply to `extract-concepts`: names, then the other words that mean something.
pub(super) fn concepts(given: Given<'_>) -> String {
    let query = given.text("query");
    let (mut names, mut others): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut name: Vec<&str> = Vec::new();
    for word in query.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())).chain([""]) {
        let says = !word.is_empty() && !ASKING.contains(&word.to_lowercase().as_str());
        if says && word.starts_with(char::is_uppercase) {
            name.push(word);
            continue;
        }
        if !name.is_empty() {
            names.push(std::mem::take(&mut name).join(" "));
        }
        if says {
            others.push(word.to_owned());
        }
    }
    names.extend(others);
    names.truncate(MOST_CONCEPTS);
    if names.is_empty() { query.to_owned() } else { names.join("\n") }
}

/// The reply to `extract-facts`: names that stand in one sentence have to do with each other.
pub(super) fn facts(given: Given<'_>) -> Value {
    let mut relationships = Vec::new();
    for sentence in given.text("text").split(['.', '!', '?', '\n']) {
        let names = names(sentence);
        relationships.extend(names.windows(2).filter_map(|pair| {
            let [subject, object] = pair else { return None };
            Some(json!({"subject": subject, "predicate": "stands beside", "object": object, "object-entity": true}))
        }));
    }
    json!({"entities": [], "relationships": relationships})
}

/// Words in a row that begin large.
fn names(sentence: &str) -> Vec<String> {
    let (mut names, mut name): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for word in sentence.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric())).chain([""]) {
        if word.starts_with(char::is_uppercase) && !ASKING.contains(&word.to_lowercase().as_str()) {
            name.push(word);
        } else if !name.is_empty() {
            names.push(std::mem::take(&mut name).join(" "));
        }
    }
    names
}

/// The reply to `kg-edge-scoring`: the more words a fact shares with the question, the better.
pub(super) fn scores(given: Given<'_>) -> Value {
    let asked = meaning(given.text("query"));
    let score = |edge: Given<'_>| {
        let said = meaning(&["s", "p", "o"].map(|part| edge.text(part)).join(" "));
        let shared: Vec<&String> = asked.intersection(&said).collect();
        let reason = shared.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(", ");
        let reason = format!("Scripted: it shares words with the question ({reason}).");
        (!shared.is_empty())
            .then(|| json!({"id": edge.text("id"), "score": (3 * shared.len()).min(10), "reason": reason}))
    };
    json!({ "edges": given.all("knowledge").filter_map(score).collect::<Vec<_>>() })
}

/// The reply to `kg-synthesis`.
pub(super) fn answer(given: Given<'_>) -> String {
    let fact = |edge: Given<'_>| format!("- {} {} {}", edge.text("s"), edge.text("p"), edge.text("o"));
    let facts: Vec<String> = given.all("knowledge").map(fact).collect();
    let shown = facts.iter().take(MOST_FACTS).map(String::as_str).collect::<Vec<_>>().join("\n");
    format!("The knowledge graph says:\n{shown}\n\n{NOTE}")
}

fn meaning(text: &str) -> BTreeSet<String> {
    words(text).map(|word| word.text).filter(|word| !ASKING.contains(&word.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(variables: &Value) -> Given<'_> {
        Given::new(variables.as_object().unwrap())
    }

    #[test]
    fn names_come_before_other_words() {
        let query = json!({"query": "Where was Marie Curie born, and who was her husband?"});
        assert_eq!(concepts(given(&query)), "Marie Curie\nborn\nher\nhusband");
        assert_eq!(concepts(given(&json!({"query": "how is it?"}))), "it");
    }

    #[test]
    fn facts_that_share_words_are_kept() {
        let asked = json!({"query": "Where was Marie Curie born?", "knowledge": [
            {"id": "e1", "s": "Marie Curie", "p": "born in", "o": "Warsaw"},
            {"id": "e2", "s": "Berlin", "p": "part of", "o": "Germany"},
        ]});
        let scores = scores(given(&asked));
        assert_eq!(scores["edges"].as_array().unwrap().len(), 1);
        assert_eq!((&scores["edges"][0]["id"], &scores["edges"][0]["score"]), (&json!("e1"), &json!(9)));
        assert!(answer(given(&asked)).starts_with("The knowledge graph says:\n- Marie Curie born in Warsaw"));
    }
}
