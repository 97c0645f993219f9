//! Schemas of a document as JSON schemas that stand on their own.

use super::OpenApiError;
use super::reference::{target, wrong};
use serde_json::{Map, Value, json};

const MOST_PARTS: usize = 2_000;
const DEEPEST: usize = 40;
/// Bytes of all that is in it, as often as it is referred to.
const MOST_BYTES: usize = 1 << 20;

/// Members that hold values to something, or tell models what is meant. Others are for people and for other programs.
const PLAIN: [&str; 20] = [
    "type",
    "enum",
    "const",
    "default",
    "description",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "required",
];
const SCHEMA: [&str; 3] = ["items", "additionalProperties", "not"];
const LIST: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// A schema with everything that it refers to in its place.
pub(super) fn inlined(document: &Value, schema: &Value, place: &str) -> Result<Value, OpenApiError> {
    Inlining { document, place, parts: 0, bytes: 0, within: Vec::new() }.schema(schema, 0)
}

struct Inlining<'d, 'p> {
    document: &'d Value,
    place: &'p str,
    parts: usize,
    bytes: usize,
    /// The references that are being followed.
    within: Vec<String>,
}

impl Inlining<'_, '_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Result<Value, OpenApiError> {
        self.parts += 1;
        let too_large = |limit, unit| Err(OpenApiError::TooLarge { place: self.place.to_owned(), limit, unit });
        if self.parts > MOST_PARTS {
            return too_large(MOST_PARTS, "parts");
        }
        if depth > DEEPEST {
            return too_large(DEEPEST, "levels");
        }
        let Some(members) = schema.as_object() else { return self.copied(schema) };
        if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
            return self.referred(reference, members, depth);
        }
        let mut made = Map::new();
        for (name, value) in members {
            let value = match name.as_str() {
                known if PLAIN.contains(&known) => self.copied(value)?,
                known if SCHEMA.contains(&known) => self.schema(value, depth + 1)?,
                known if LIST.contains(&known) => self.list(value, depth)?,
                "properties" => self.properties(value, depth)?,
                _ => continue,
            };
            made.insert(name.clone(), value);
        }
        Ok(Value::Object(as_in_version_3_1(made, members)))
    }

    /// Measured before it is copied: a small document may say the same thing very often.
    fn copied(&mut self, value: &Value) -> Result<Value, OpenApiError> {
        self.bytes = self.bytes.saturating_add(size(value));
        if self.bytes > MOST_BYTES {
            let place = self.place.to_owned();
            return Err(OpenApiError::TooLarge { place, limit: MOST_BYTES, unit: "bytes" });
        }
        Ok(value.clone())
    }

    fn referred(&mut self, reference: &str, members: &Map<String, Value>, depth: usize) -> Result<Value, OpenApiError> {
        if self.within.iter().any(|within| within == reference) {
            return Err(wrong(self.place, reference, "contains itself, so that it has no end"));
        }
        let found = target(self.document, reference, self.place)?;
        self.within.push(reference.to_owned());
        let mut made = self.schema(found, depth + 1)?;
        self.within.pop();
        // What stands beside a reference is said of this use of it.
        if let (Some(description), Some(made)) = (members.get("description"), made.as_object_mut()) {
            made.insert("description".to_owned(), self.copied(description)?);
        }
        Ok(made)
    }

    fn list(&mut self, list: &Value, depth: usize) -> Result<Value, OpenApiError> {
        let schemas = list.as_array().into_iter().flatten();
        schemas.map(|schema| self.schema(schema, depth + 1)).collect::<Result<Vec<_>, _>>().map(Value::Array)
    }

    /// What only the server writes is not for callers.
    fn properties(&mut self, properties: &Value, depth: usize) -> Result<Value, OpenApiError> {
        let mut made = Map::new();
        for (name, schema) in properties.as_object().into_iter().flatten() {
            if schema.get("readOnly") != Some(&Value::Bool(true)) {
                made.insert(name.clone(), self.schema(schema, depth + 1)?);
            }
        }
        Ok(Value::Object(made))
    }
}

/// About as many bytes as it takes.
fn size(value: &Value) -> usize {
    let own = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.iter().map(|(name, value)| name.len() + size(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    own + 16
}

/// Version 3.0 says some things in its own way.
fn as_in_version_3_1(mut made: Map<String, Value>, members: &Map<String, Value>) -> Map<String, Value> {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if let Some(Value::Bool(is_exclusive)) = made.get(exclusive).cloned() {
            made.remove(exclusive);
            if let (true, Some(value)) = (is_exclusive, made.get(bound).cloned()) {
                made.remove(bound);
                made.insert(exclusive.to_owned(), value);
            }
        }
    }
    if let Some(Value::Array(required)) = made.get_mut("required")
        && let Some(properties) = members.get("properties").and_then(Value::as_object)
    {
        let is_read_only = |name: &str| properties.get(name).is_some_and(|schema| schema["readOnly"] == true);
        required.retain(|name| !name.as_str().is_some_and(is_read_only));
    }
    if members.get("nullable") != Some(&Value::Bool(true)) {
        return made;
    }
    if let Some(Value::Array(values)) = made.get_mut("enum") {
        values.push(Value::Null);
    }
    match made.get("type").cloned() {
        Some(Value::String(kind)) => {
            made.insert("type".to_owned(), json!([kind, "null"]));
            made
        }
        _ => Map::from_iter([("anyOf".to_owned(), json!([made, { "type": "null" }]))]),
    }
}
