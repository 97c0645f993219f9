//! Schemas that refer to their own parts. Put into another schema they cannot: references count from its root.

use serde_json::{Map, Value, json};

/// What contains itself is unfolded so often.
const UNFOLDED: usize = 2;
const DEEPEST: usize = 40;
/// A small schema may refer to the same thing very often.
const MOST_BYTES: usize = 64 * 1024;
/// Members that hold values, not schemas.
const VALUES: [&str; 4] = ["enum", "const", "default", "examples"];
/// Members that hold schemas by names, which are no keywords.
const NAMED: [&str; 3] = ["properties", "patternProperties", "dependentSchemas"];
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// What stands beside a reference and holds values to nothing.
const WORDS: [&str; 5] = ["description", "title", "default", "examples", "deprecated"];

/// The schema with what it refers to in the place of each reference. Where that has no end, is too much, or lies elsewhere,
/// anything is allowed: what a model writes is held against the original in any case.
pub(crate) fn inlined(schema: &Value) -> Value {
    if !refers(schema) {
        return schema.clone();
    }
    Inlining { root: schema, bytes: 0, within: Vec::new() }.schema(schema, 0)
}

fn refers(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.contains_key("$ref") || members.values().any(refers),
        Value::Array(items) => items.iter().any(refers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

type Member<'s> = (&'s String, &'s Value);

struct Inlining<'s> {
    root: &'s Value,
    bytes: usize,
    /// The references that are being followed.
    within: Vec<&'s str>,
}

impl<'s> Inlining<'s> {
    fn schema(&mut self, schema: &'s Value, depth: usize) -> Value {
        let Some(members) = schema.as_object() else { return self.copied(schema) };
        if depth > DEEPEST || self.bytes > MOST_BYTES {
            return json!({});
        }
        match members.get("$ref").and_then(Value::as_str) {
            Some(reference) => self.referred(reference, members, depth),
            None => Value::Object(self.members(members, depth)),
        }
    }

    fn members(&mut self, members: impl IntoIterator<Item = Member<'s>>, depth: usize) -> Map<String, Value> {
        let mut made = Map::new();
        for (name, value) in members {
            self.bytes += name.len();
            let value = match (name.as_str(), value) {
                (keyword, _) if DEFINITIONS.contains(&keyword) => continue,
                (keyword, _) if VALUES.contains(&keyword) => self.copied(value),
                (keyword, Value::Object(schemas)) if NAMED.contains(&keyword) => self.named(schemas, depth),
                (_, Value::Array(items)) => items.iter().map(|item| self.schema(item, depth + 1)).collect(),
                _ => self.schema(value, depth + 1),
            };
            made.insert(name.clone(), value);
        }
        made
    }

    fn named(&mut self, schemas: &'s Map<String, Value>, depth: usize) -> Value {
        let mut made = Map::new();
        for (name, schema) in schemas {
            self.bytes += name.len();
            made.insert(name.clone(), self.schema(schema, depth + 1));
        }
        Value::Object(made)
    }

    /// What a reference leads to, and what is said beside it.
    fn referred(&mut self, reference: &'s str, members: &'s Map<String, Value>, depth: usize) -> Value {
        let beside = members.iter().filter(|(name, _)| name.as_str() != "$ref");
        let (words, rules): (Vec<_>, Vec<_>) = beside.partition(|(name, _)| WORDS.contains(&name.as_str()));
        let mut made = self.target(reference, depth);
        let rules = self.members(rules, depth);
        if !rules.is_empty() {
            made = json!({ "allOf": [made, rules] });
        }
        if let Some(made) = made.as_object_mut() {
            made.extend(words.into_iter().map(|(name, value)| (name.clone(), self.copied(value))));
        }
        made
    }

    fn target(&mut self, reference: &'s str, depth: usize) -> Value {
        let root = self.root;
        let times = self.within.iter().filter(|within| **within == reference).count();
        let found = reference.strip_prefix('#').and_then(|place| root.pointer(place));
        let Some(found) = found.filter(|_| times < UNFOLDED) else { return json!({}) };
        self.within.push(reference);
        let made = self.schema(found, depth + 1);
        self.within.pop();
        made
    }

    /// Measured, because the same may stand in many places.
    fn copied(&mut self, value: &Value) -> Value {
        self.bytes = self.bytes.saturating_add(value.to_string().len());
        value.clone()
    }
}

#[cfg(test)]
#[path = "inlined_tests.rs"]
mod tests;
