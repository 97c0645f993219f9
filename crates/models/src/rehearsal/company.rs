//! Finds the companies that a question is about.

use super::line;

/// Words that are written with a capital letter only because they open a sentence.
const OPENERS: &str = "an analyse analyze are ask assess can check compare could date describe do does estimate \
    evaluate examine explain find give how identify if in investigate is judge list look me our please put rate \
    report research review risk search should study summarise summarize tell the their these this to today trace we \
    weigh what when which who why will would write";

/// The longest name in capital letters, else what follows `of` or `for`, else nobody in particular.
pub(super) fn company_in(question: &str) -> String {
    let name = capitalised_name(question).or_else(|| named_by_preposition(question));
    name.map_or_else(|| "the company".to_owned(), |name| line(&name, 60))
}

/// All names in capital letters, each once. Somebody is compared in any case.
pub(super) fn companies_in(question: &str) -> Vec<String> {
    let mut companies: Vec<String> = Vec::new();
    for name in capitalised_names(question) {
        let name = line(&name.join(" "), 60);
        if !companies.contains(&name) {
            companies.push(name);
        }
    }
    if companies.is_empty() { ["the first company", "the second company"].map(str::to_owned).into() } else { companies }
}

/// The first of the longest.
fn capitalised_name(question: &str) -> Option<String> {
    let longest = capitalised_names(question).into_iter().rev().max_by_key(Vec::len)?;
    Some(longest.join(" "))
}

/// Each as its words.
fn capitalised_names(question: &str) -> Vec<Vec<&str>> {
    let mut names: Vec<Vec<&str>> = vec![Vec::new()];
    for word in question.split_whitespace() {
        let bare = bare(word);
        let capital = bare.starts_with(char::is_uppercase) && !is_opener(bare);
        let goes_on = names.last().is_some_and(|name| !name.is_empty());
        // A letter or a number is a part of a name, never a name.
        let part = goes_on && (capital || word == "&" || bare.starts_with(char::is_numeric));
        let belongs = part || capital && bare.chars().nth(1).is_some();
        match names.last_mut() {
            Some(name) if belongs => name.push(if word == "&" { word } else { bare }),
            Some(_) | None => names.push(Vec::new()),
        }
        if word.ends_with([',', '.', ';', ':', '?', '!']) {
            names.push(Vec::new());
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn named_by_preposition(question: &str) -> Option<String> {
    let words: Vec<&str> = question.split_whitespace().collect();
    let start = words.iter().position(|word| matches!(*word, "of" | "for" | "with"))? + 1;
    let name = words[start..].iter().take_while(|word| !matches!(**word, "as" | "and" | "in" | "for"));
    let name = name.map(|word| bare(word)).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    (!name.is_empty()).then_some(name)
}

fn bare(word: &str) -> &str {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word)
}

fn is_opener(word: &str) -> bool {
    OPENERS.split_whitespace().any(|opener| opener.eq_ignore_ascii_case(word))
}
