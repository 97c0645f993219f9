//! From what a model says of a passage to quads. It is material: what cannot be used of it is left out.

use super::names::words::DEFINITION;
use super::names::{entity, named};
use crate::knowledge::check;
use crate::ports::ReplyContent;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use trellis_domain::rdf::{Quad, Term};
use trellis_provenance::vocabulary::rdfs;

/// Facts of a passage. A passage of some hundred words has fewer; who says more makes them up.
pub(super) const MOST_FACTS: usize = 100;
/// Bytes of a definition or of a value. Longer ones are not looked at when questions are answered.
const LONGEST_TEXT: usize = 4 << 10;

/// What a passage says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) facts: u64,
    /// The facts, with what their parts are called.
    pub(super) quads: BTreeSet<Quad>,
}

/// The form of a reply.
pub(super) fn schema() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "entities": {"type": "array", "items": {
                "type": "object",
                "properties": {"entity": text, "definition": text},
                "required": ["entity", "definition"],
                "additionalProperties": false,
            }},
            "relationships": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "subject": text, "predicate": text, "object": text, "object-entity": {"type": "boolean"},
                },
                "required": ["subject", "predicate", "object", "object-entity"],
                "additionalProperties": false,
            }},
        },
        "required": ["entities", "relationships"],
        "additionalProperties": false,
    })
}

/// What a reply says, in the graph of its passage. None if it is no such reply at all. Things that are not named in what
/// the model was shown are its own, or those of an example.
pub(super) fn read(content: &ReplyContent, raw: &str, graph: &str, shown: &str) -> Option<Said> {
    let value = match content {
        ReplyContent::Object(reply) => reply.clone(),
        ReplyContent::List(items) => Value::Array(items.clone()),
        // Of a prompt that somebody has made one of words.
        ReplyContent::Text => serde_json::from_str(raw.trim()).ok()?,
        ReplyContent::Wrong { .. } => return None,
    };
    let items: Vec<&Value> = match &value {
        Value::Object(reply) => {
            let lists = ["entities", "relationships"].map(|name| reply.get(name).and_then(Value::as_array));
            if lists.iter().all(Option::is_none) {
                return None;
            }
            lists.into_iter().flatten().flatten().collect()
        }
        // TrustGraph's own prompts ask for a list.
        Value::Array(items) => items.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    };
    let mut said = Saying { graph, shown: shown.to_lowercase(), said: Said::default() };
    for item in items {
        said.add(item);
    }
    Some(said.said)
}

struct Saying<'g> {
    graph: &'g str,
    /// In small letters.
    shown: String,
    said: Said,
}

impl Saying<'_> {
    fn add(&mut self, item: &Value) {
        if self.said.facts < MOST_FACTS as u64 {
            let fact = definition(item).or_else(|| relationship(item));
            let Some(Fact { things, predicate, triple: (s, p, o) }) = fact else { return };
            if !things.iter().all(|name| self.speaks_of(name)) {
                return;
            }
            let fact = self.quad(s, p, o);
            if check(&fact).is_err() || self.said.quads.contains(&fact) {
                return;
            }
            let labels = things.into_iter().chain(predicate).map(|name| {
                let label = Term::literal(&name);
                self.quad(entity(&name), rdfs::LABEL.to_owned(), label)
            });
            let labels: Vec<_> = labels.collect();
            self.said.quads.extend(labels);
            self.said.quads.insert(fact);
            self.said.facts += 1;
        }
    }

    /// Whether a word of the name was shown.
    fn speaks_of(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        let mut words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().nth(1).is_some());
        self.shown.contains(&name) || words.any(|word| self.shown.contains(word))
    }

    fn quad(&self, s: String, p: String, o: Term) -> Quad {
        Quad { s: Term::iri(s), p: Term::iri(p), o, g: Some(self.graph.to_owned()) }
    }
}

/// Subject, predicate and object, and what they are called.
struct Fact {
    things: Vec<String>,
    predicate: Option<String>,
    triple: (String, String, Term),
}

fn definition(item: &Value) -> Option<Fact> {
    let name = name_in(item, "entity")?;
    let text = text_in(item, "definition")?;
    let triple = (entity(&name), DEFINITION.to_owned(), Term::literal(text));
    Some(Fact { things: vec![name], predicate: None, triple })
}

fn relationship(item: &Value) -> Option<Fact> {
    let (subject, predicate) = (name_in(item, "subject")?, name_in(item, "predicate")?);
    let (s, p) = (entity(&subject), entity(&predicate));
    let mut things = vec![subject];
    let is_entity = item.get("object-entity").and_then(Value::as_bool).unwrap_or(false);
    let o = if is_entity {
        let object = name_in(item, "object")?;
        let iri = entity(&object);
        things.push(object);
        Term::iri(iri)
    } else {
        Term::literal(text_in(item, "object")?)
    };
    Some(Fact { things, predicate: Some(predicate), triple: (s, p, o) })
}

fn name_in(item: &Value, member: &str) -> Option<String> {
    named(item.get(member)?.as_str()?)
}

/// A text, a number or a truth value in words.
fn text_in(item: &Value, member: &str) -> Option<String> {
    let text = match item.get(member)? {
        Value::String(text) => text.trim().to_owned(),
        value @ (Value::Number(_) | Value::Bool(_)) => value.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(text).filter(|text| !text.is_empty() && text.len() <= LONGEST_TEXT)
}
