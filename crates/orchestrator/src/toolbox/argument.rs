//! What a JSON schema says of one argument, as configuration has it.

use serde_json::{Map, Value, json};

/// So much of a description is kept: whoever sends books does not fill every prompt with them.
const LONGEST: usize = 2_000;
/// As many bytes as the configuration takes.
const LONGEST_SCHEMA: usize = 16 * 1024;
/// Where schemas keep what they refer to.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// A member of the `arguments` of a tool.
pub fn argument(name: &str, schema: &Value, is_required: bool) -> Value {
    let said = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let mut words = vec![short(said)];
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<_> = values.iter().map(ToString::to_string).collect();
        words.push(short(&format!("one of {}", values.join(", "))));
    }
    if !is_required {
        words.push(match schema.get("default").filter(|value| !value.is_null()) {
            Some(value) => short(&format!("may be null, which means {value}")),
            None => "may be null".to_owned(),
        });
    }
    words.retain(|words| !words.is_empty());
    let mut argument =
        json!({ "name": name, "type": type_word(schema), "description": words.join("; "), "required": is_required });
    if says_more_than_its_type(schema) {
        argument["schema"] = schema.clone();
    }
    argument
}

/// Whether a schema holds values to anything besides one type, and can stand on its own.
fn says_more_than_its_type(schema: &Value) -> bool {
    let Some(members) = schema.as_object() else { return false };
    let says = |name: &str| !["type", "description", "title", "default", "examples"].contains(&name);
    let is_bare_list = members.get("type").is_some_and(Value::is_array);
    // What it refers to may lie outside of it, and what is longer than this fills prompts.
    let is_whole = refers_to_itself_only(schema, schema) && schema.to_string().len() <= LONGEST_SCHEMA;
    is_whole && (is_bare_list || members.keys().any(|name| says(name)))
}

/// Whether everything that a part of a schema refers to is among the schema's own definitions.
fn refers_to_itself_only(schema: &Value, part: &Value) -> bool {
    match part {
        Value::Object(members) => {
            let is_own = |reference: &str| {
                let place = reference.strip_prefix('#').unwrap_or_default();
                let kept = place.strip_prefix('/').and_then(|place| place.split_once('/'));
                kept.is_some_and(|(name, _)| DEFINITIONS.contains(&name)) && schema.pointer(place).is_some()
            };
            members.get("$ref").and_then(Value::as_str).is_none_or(is_own)
                && members.values().all(|part| refers_to_itself_only(schema, part))
        }
        Value::Array(items) => items.iter().all(|part| refers_to_itself_only(schema, part)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// The schema of a member with the definitions of the schema around it: on its own it has no other root to refer to.
pub fn with_definitions(member: &Value, around: &Map<String, Value>) -> Value {
    let mut whole = member.clone();
    if let Value::Object(members) = &mut whole
        && mentions_a_reference(member)
    {
        for (name, definitions) in around.iter().filter(|(name, _)| DEFINITIONS.contains(&name.as_str())) {
            members.entry(name.clone()).or_insert_with(|| definitions.clone());
        }
    }
    whole
}

fn mentions_a_reference(part: &Value) -> bool {
    match part {
        Value::Object(members) => members.contains_key("$ref") || members.values().any(mentions_a_reference),
        Value::Array(items) => items.iter().any(mentions_a_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The type of an argument in one word. Of several, the first that is something.
pub(super) fn type_word(schema: &Value) -> &'static str {
    let something = |kind: &&str| *kind != "null";
    let of_members = |members: &Map<String, Value>| {
        let choices = members.get("anyOf").or_else(|| members.get("oneOf")).and_then(Value::as_array)?;
        choices.iter().filter_map(|choice| choice.get("type")?.as_str()).find(something).map(str::to_owned)
    };
    let word = match schema.get("type") {
        Some(Value::String(kind)) => Some(kind.clone()),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(something).map(str::to_owned),
        _ => schema.as_object().and_then(of_members),
    };
    // Only these are checked; whatever else a schema says, whoever has the tool judges.
    match word.as_deref() {
        Some("string") => "string",
        Some("number") => "number",
        Some("integer") => "integer",
        Some("boolean") => "boolean",
        Some("array") => "array",
        Some("object") => "object",
        _ => "any",
    }
}

/// A text for a prompt.
pub fn short(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}
