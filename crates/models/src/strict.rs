//! JSON schemas in the form that providers can enforce while they decode.
//!
//! That form is the common ground of the providers: a root that is an object, every member required, none besides,
//! no keyword that a grammar cannot keep. What is not in it stays a hint, and the reply is checked afterwards.

use serde_json::{Map, Value, json};

/// Keywords whose meaning survives unchanged.
const KEPT: [&str; 13] = [
    "description",
    "title",
    "type",
    "enum",
    "const",
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
];
/// Keywords that say nothing about which values are allowed.
const SILENT: [&str; 9] =
    ["$schema", "$id", "$comment", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"];
/// No provider takes schemas that are nested much deeper.
const DEEPEST: usize = 10;

/// The same schema, strict; none if it cannot be said so.
///
/// Every reply that the strict form allows is one that the schema allows, if a null in place of an optional member is
/// read as its absence. What the strict form leaves out are members that the schema does not describe.
pub(crate) fn strict(schema: &Value) -> Option<Value> {
    let strict = node(schema, 0)?;
    (strict["type"] == "object").then_some(strict)
}

fn node(schema: &Value, depth: usize) -> Option<Value> {
    let schema = schema.as_object().filter(|_| depth <= DEEPEST)?;
    let mut strict = Map::new();
    for (keyword, value) in schema {
        match keyword.as_str() {
            // The members of an object are said together below.
            "properties" | "required" | "additionalProperties" => {}
            "items" if cannot_be_met(value) => {}
            "items" => {
                strict.insert(keyword.clone(), node(value, depth + 1)?);
            }
            "anyOf" => {
                let ways: Option<Vec<_>> = value.as_array()?.iter().map(|way| node(way, depth + 1)).collect();
                strict.insert(keyword.clone(), json!(ways.filter(|ways| !ways.is_empty())?));
            }
            "$defs" | "definitions" => {
                let named = |(name, value): (&String, &Value)| Some((name.clone(), node(value, depth + 1)?));
                let named: Option<Map<_, _>> = value.as_object()?.iter().map(named).collect();
                strict.insert(keyword.clone(), Value::Object(named?));
            }
            "$ref" if refers_to_a_definition(value) => {
                strict.insert(keyword.clone(), value.clone());
            }
            kept if KEPT.contains(&kept) => {
                strict.insert(keyword.clone(), value.clone());
            }
            silent if SILENT.contains(&silent) => {}
            _ => return None,
        }
    }
    if schema.get("items").is_some_and(cannot_be_met) {
        return nothing_but_null(schema);
    }
    if !typed(&mut strict) {
        return None;
    }
    if types(&strict).contains(&"object") {
        members(schema, &mut strict, depth)?;
    } else if schema.contains_key("properties") {
        return None;
    }
    let lists_something = types(&strict).contains(&"array");
    (!lists_something || strict.contains_key("items")).then_some(Value::Object(strict))
}

fn refers_to_a_definition(place: &Value) -> bool {
    let place = place.as_str().unwrap_or_default();
    place == "#" || place.starts_with("#/$defs/") || place.starts_with("#/definitions/")
}

/// No value is one of none: such a list is empty.
fn cannot_be_met(items: &Value) -> bool {
    items["enum"].as_array().is_some_and(Vec::is_empty)
}

/// A list that can only be empty is not worth asking for where there may be none.
fn nothing_but_null(schema: &Map<String, Value>) -> Option<Value> {
    types(schema).contains(&"null").then(|| json!({ "type": "null" }))
}

/// Says the type where only the values are said. False if nothing says what it is.
fn typed(strict: &mut Map<String, Value>) -> bool {
    if ["type", "anyOf", "$ref"].iter().any(|keyword| strict.contains_key(*keyword)) {
        return strict.get("enum").is_none_or(|values| values.as_array().is_some_and(|values| !values.is_empty()));
    }
    let values = match (strict.get("enum"), strict.get("const")) {
        (Some(Value::Array(values)), _) => values.as_slice(),
        (_, Some(value)) => std::slice::from_ref(value),
        _ => &[],
    };
    let mut types: Vec<_> = values.iter().filter_map(type_of).collect();
    let complete = !types.is_empty() && types.len() == values.len();
    types.sort_unstable();
    types.dedup();
    let said = if let [only] = types.as_slice() { json!(only) } else { json!(types) };
    if complete {
        strict.insert("type".to_owned(), said);
    }
    complete
}

fn type_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => Some("null"),
        Value::Bool(_) => Some("boolean"),
        Value::Number(number) if number.is_f64() => Some("number"),
        Value::Number(_) => Some("integer"),
        Value::String(_) => Some("string"),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Every member is required, an optional one may be null, and there are no others.
fn members(schema: &Map<String, Value>, strict: &mut Map<String, Value>, depth: usize) -> Option<()> {
    let open = match schema.get("additionalProperties") {
        None => !schema.get("properties").is_some_and(Value::is_object),
        Some(Value::Bool(open)) => *open,
        Some(_) => true,
    };
    if open {
        return None;
    }
    let none = Map::new();
    let described = schema.get("properties").map_or(Some(&none), Value::as_object)?;
    let required: Vec<_> = match schema.get("required") {
        None => Vec::new(),
        Some(names) => names.as_array()?.iter().filter_map(Value::as_str).collect(),
    };
    if required.iter().any(|name| !described.contains_key(*name)) {
        return None;
    }
    let mut properties = Map::new();
    for (name, member) in described {
        let member = node(member, depth + 1)?;
        let member = if required.contains(&name.as_str()) { member } else { or_null(member) };
        properties.insert(name.clone(), member);
    }
    strict.insert("required".to_owned(), properties.keys().cloned().collect());
    strict.insert("properties".to_owned(), Value::Object(properties));
    strict.insert("additionalProperties".to_owned(), json!(false));
    Some(())
}

fn or_null(member: Value) -> Value {
    let Value::Object(mut schema) = member else { return member };
    let mut names: Vec<_> = types(&schema).into_iter().map(str::to_owned).collect();
    let simple = !names.is_empty() && !names.iter().any(|name| name == "object") && !schema.contains_key("const");
    if !simple {
        return json!({ "anyOf": [schema, { "type": "null" }] });
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if !names.iter().any(|name| name == "null") {
        names.push("null".to_owned());
    }
    schema.insert("type".to_owned(), if names.len() == 1 { json!(names[0]) } else { json!(names) });
    Value::Object(schema)
}

#[cfg(test)]
#[path = "strict_tests.rs"]
mod tests;
