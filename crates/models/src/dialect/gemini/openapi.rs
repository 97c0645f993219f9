//! The part of a JSON schema that Google's older member for schemas knows.

use serde_json::{Map, Value, json};

/// Keywords that mean the same there.
const KEPT: [&str; 9] =
    ["title", "description", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern"];
/// No model takes schemas that are nested much deeper.
const DEEPEST: usize = 20;

/// The schema in that form; none if its structure cannot be said there. What is left out of it are bounds: the reply is
/// checked in any case.
pub(super) fn openapi(schema: &Value) -> Option<Value> {
    node(schema, 0)
}

fn node(schema: &Value, depth: usize) -> Option<Value> {
    let schema = schema.as_object().filter(|schema| depth <= DEEPEST && !schema.contains_key("$ref"))?;
    let mut said: Map<_, _> =
        KEPT.iter().filter_map(|keyword| Some(((*keyword).to_owned(), schema.get(*keyword)?.clone()))).collect();
    let nested = |value: &Value| node(value, depth + 1);
    if let Some(ways) = schema.get("anyOf").and_then(Value::as_array) {
        let real = ways.iter().filter(|way| way["type"] != "null");
        let real: Option<Vec<_>> = real.map(nested).collect();
        said.insert("anyOf".to_owned(), json!(real?));
        if ways.iter().any(|way| way["type"] == "null") {
            said.insert("nullable".to_owned(), json!(true));
        }
        return Some(Value::Object(said));
    }
    name_type(schema, &mut said)?;
    if let Some(values) = values(schema) {
        said.insert("enum".to_owned(), values);
    }
    if let Some(items) = schema.get("items") {
        said.insert("items".to_owned(), nested(items)?);
    }
    if let Some(members) = schema.get("properties").and_then(Value::as_object) {
        let named = |(name, member): (&String, &Value)| Some((name.clone(), nested(member)?));
        let properties: Option<Map<_, _>> = members.iter().map(named).collect();
        said.insert("propertyOrdering".to_owned(), members.keys().cloned().collect());
        said.insert("properties".to_owned(), Value::Object(properties?));
        let required = schema.get("required").filter(|names| names.as_array().is_some_and(|names| !names.is_empty()));
        said.extend(required.map(|names| ("required".to_owned(), names.clone())));
    }
    Some(Value::Object(said))
}

/// One type, which may be null besides.
fn name_type(schema: &Map<String, Value>, said: &mut Map<String, Value>) -> Option<()> {
    let one = |name: &str| json!(name.to_uppercase());
    match schema.get("type") {
        Some(Value::String(name)) => said.insert("type".to_owned(), one(name)),
        Some(Value::Array(names)) => {
            let real: Vec<_> = names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect();
            let [only] = real.as_slice() else { return None };
            said.insert("nullable".to_owned(), json!(names.iter().any(|name| name == "null")));
            said.insert("type".to_owned(), one(only))
        }
        // Values alone are texts here, or nothing that can be said.
        _ => said.insert("type".to_owned(), values(schema).map(|_| one("string"))?),
    };
    Some(())
}

/// The values that are allowed, if they are texts: nothing else can be listed.
fn values(schema: &Map<String, Value>) -> Option<Value> {
    let listed = schema.get("enum").and_then(Value::as_array).cloned();
    let listed = listed.or_else(|| schema.get("const").map(|value| vec![value.clone()]))?;
    let texts: Vec<_> = listed.into_iter().filter(|value| !value.is_null()).collect();
    (!texts.is_empty() && texts.iter().all(Value::is_string)).then(|| json!(texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strict_schema_is_said_in_the_older_form() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["kind", "note"],
            "properties": {
                "kind": { "enum": ["a", "b"] },
                "note": { "type": ["string", "null"], "description": "why", "format": "date" },
                "list": { "type": "array", "items": { "const": "x" }, "maxItems": 3 },
                "either": { "anyOf": [{ "type": "integer", "exclusiveMinimum": 0 }, { "type": "null" }] },
            },
        });
        let expected = json!({
            "type": "OBJECT", "propertyOrdering": ["kind", "note", "list", "either"], "required": ["kind", "note"],
            "properties": {
                "kind": { "type": "STRING", "enum": ["a", "b"] },
                "note": { "type": "STRING", "nullable": true, "description": "why" },
                "list": { "type": "ARRAY", "items": { "type": "STRING", "enum": ["x"] }, "maxItems": 3 },
                "either": { "anyOf": [{ "type": "INTEGER" }], "nullable": true },
            },
        });
        assert_eq!(openapi(&schema), Some(expected));
    }

    #[test]
    fn what_cannot_be_said_is_not_said_wrongly() {
        for schema in [
            json!({ "$ref": "#/$defs/x" }),
            json!({ "type": ["string", "integer"] }),
            json!({ "type": "object", "properties": { "x": true } }),
            json!({ "const": 3 }),
        ] {
            assert_eq!(openapi(&schema), None, "{schema}");
        }
        assert_eq!(openapi(&json!({ "type": "integer", "enum": [1, 2] })), Some(json!({ "type": "INTEGER" })));
    }
}
