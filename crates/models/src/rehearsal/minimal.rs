//! The smallest value that a simple JSON schema allows.

use serde_json::{Map, Value, json};

const TEXT: &str = "scripted by the rehearsal model";

/// Knows types, enumerations, required members and lower bounds. A schema beyond that gets what its type suggests.
pub(super) fn value(schema: &Value) -> Value {
    let first_of = |name: &str| schema.get(name).and_then(Value::as_array).and_then(|members| members.first());
    if let Some(fixed) = schema.get("const").or_else(|| schema.get("default")).or_else(|| first_of("enum")) {
        return fixed.clone();
    }
    if let Some(variant) = first_of("anyOf").or_else(|| first_of("oneOf")).or_else(|| first_of("allOf")) {
        return value(variant);
    }
    let kind = schema.get("type").and_then(Value::as_str).or_else(|| first_of("type").and_then(Value::as_str));
    match kind {
        Some("array") => array(schema),
        Some("string") => string(schema),
        Some("integer" | "number") => number(schema),
        Some("boolean") => json!(false),
        Some("null") => Value::Null,
        Some("object") => object(schema),
        Some(_) | None if schema.get("properties").is_some() => object(schema),
        Some(_) | None => json!({ "note": TEXT }),
    }
}

/// The value itself where the schema allows it; elsewhere the smallest that it allows.
pub(super) fn fitted(proposed: Value, schema: &Value) -> Value {
    let fits = |value: &Value| jsonschema::validator_for(schema).is_ok_and(|validator| validator.is_valid(value));
    if fits(&proposed) {
        return proposed;
    }
    let repaired = repaired(proposed, schema);
    if fits(&repaired) { repaired } else { value(schema) }
}

/// An object with each member fitted, those that are required added, and those that are not allowed left out.
fn repaired(proposed: Value, schema: &Value) -> Value {
    let Value::Object(proposed) = proposed else { return proposed };
    let known = schema.get("properties").and_then(Value::as_object);
    let closed = schema.get("additionalProperties") == Some(&json!(false));
    let Value::Object(mut members) = object(schema) else { return Value::Object(proposed) };
    for (name, member) in proposed {
        match known.and_then(|known| known.get(&name)) {
            Some(wanted) => members.insert(name, fitted(member, wanted)),
            None if closed => None,
            None => members.insert(name, member),
        };
    }
    Value::Object(members)
}

fn object(schema: &Value) -> Value {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let properties = schema.get("properties");
    let member = |name: &str| value(properties.and_then(|all| all.get(name)).unwrap_or(&Value::Null));
    required.map(|name| (name.to_owned(), member(name))).collect::<Map<_, _>>().into()
}

fn array(schema: &Value) -> Value {
    let count = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
    let member = value(schema.get("items").unwrap_or(&Value::Null));
    (0..count).map(|_| member.clone()).collect()
}

fn string(schema: &Value) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let length = TEXT.len().max(bound("minLength").unwrap_or(0)).min(bound("maxLength").unwrap_or(usize::MAX));
    TEXT.chars().cycle().take(length).collect::<String>().into()
}

fn number(schema: &Value) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_i64);
    let least = bound("minimum").or_else(|| Some(bound("exclusiveMinimum")?.saturating_add(1)));
    let most = bound("maximum").or_else(|| Some(bound("exclusiveMaximum")?.saturating_sub(1)));
    json!(0.max(least.unwrap_or(i64::MIN)).min(most.unwrap_or(i64::MAX)))
}
