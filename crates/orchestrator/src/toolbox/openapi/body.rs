//! The body of an operation: each member of an object is an argument of its own, anything else is one argument.

use super::parameters::Request;
use super::reference::resolved;
use super::schema::inlined;
use super::{OpenApiError, Operation, members};
use serde_json::{Map, Value, json};

const JSON: &str = "application/json";

pub(super) fn add(operation: &Operation<'_>, request: &mut Request) -> Result<(), OpenApiError> {
    let Some(written) = operation.own.get("requestBody") else { return Ok(()) };
    let place = format!("the body of {}", operation.place());
    let body = resolved(operation.document, written, &place)?;
    let is_required = body.get("required") == Some(&Value::Bool(true));
    let is_json = |kind: &str| matches!(kind.split(';').next().map(str::trim), Some(JSON | "*/*"));
    let Some((_, media)) = members(body.get("content")).find(|(kind, _)| is_json(kind)) else {
        if !is_required {
            request.notes.push(format!("{place} is left out: it has no form in {JSON}"));
            return Ok(());
        }
        let why = format!("it has no form in {JSON}, and no other is sent");
        return Err(OpenApiError::NotSupported { place, why });
    };
    let schema = media.get("schema").map_or(Ok(json!({})), |schema| inlined(operation.document, schema, &place))?;
    let sent = match flat(&schema) {
        Some((properties, required)) => {
            let mut sent = Map::new();
            for (member, schema) in properties {
                let is_needed = required.iter().any(|name| *name == member.as_str());
                let name = request.argument((member, "body"), schema, is_needed)?;
                sent.insert(member.clone(), json!(format!("{{{name}}}")));
            }
            Value::Object(sent)
        }
        None => json!(format!("{{{}}}", request.argument(("body", "body"), &schema, is_required)?)),
    };
    request.body = Some(sent);
    Ok(())
}

/// The members of an object and which of them are needed, if that is all that the schema says.
fn flat(schema: &Value) -> Option<(&Map<String, Value>, Vec<&Value>)> {
    let is_combined = ["allOf", "anyOf", "oneOf", "not", "enum", "const"].iter().any(|word| schema.get(word).is_some());
    let is_open = schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
    let is_object = schema.get("type").is_none_or(|kind| kind == "object");
    let properties = schema.get("properties").and_then(Value::as_object).filter(|members| !members.is_empty())?;
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    (is_object && !is_combined && !is_open).then_some((properties, required))
}
