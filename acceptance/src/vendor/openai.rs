//! OpenAI's reasoning models on chat completions, and what every model of theirs demands of schemas and tool messages.
//! From the API reference, the guide on reasoning, and the errors that users quote.

use super::{Asked, Refused};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The error object, with the parameter that it is about.
fn refused(message: String, parameter: &str, code: &str) -> Refused {
    let error = json!({ "message": message, "type": "invalid_request_error", "param": parameter, "code": code });
    Refused::new(400, json!({ "error": error }))
}

/// Only the default temperature.
pub fn no_temperature(asked: &Asked<'_>) -> Option<Refused> {
    let temperature = asked.body.get("temperature").filter(|value| value.as_f64() != Some(1.0))?;
    let message = format!(
        "Unsupported value: 'temperature' does not support {temperature} with this model. Only the default (1) value \
         is supported."
    );
    Some(refused(message, "temperature", "unsupported_value"))
}

/// No `top_p` at all.
pub fn no_top_p(asked: &Asked<'_>) -> Option<Refused> {
    let message = "Unsupported parameter: 'top_p' is not supported with this model.";
    asked.has("top_p").then(|| refused(message.to_owned(), "top_p", "unsupported_parameter"))
}

/// The limit has another name.
pub fn no_max_tokens(asked: &Asked<'_>) -> Option<Refused> {
    let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' \
                   instead.";
    asked.has("max_tokens").then(|| refused(message.to_owned(), "max_tokens", "unsupported_parameter"))
}

/// Functions only without reasoning: an effort that is not named counts as one.
pub fn functions_need_no_effort(asked: &Asked<'_>) -> Option<Refused> {
    let broken = asked.offers_functions() && asked.body["reasoning_effort"] != "none";
    let message = "Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. To use \
                   function tools, use /v1/responses or set reasoning_effort to 'none'.";
    broken.then(|| {
        let error = json!({ "message": message, "type": "invalid_request_error", "param": "reasoning_effort",
            "code": null });
        Refused::new(400, json!({ "error": error }))
    })
}

/// Strict schemas are closed, and require all of their members.
pub fn strict_schemas_are_closed(asked: &Asked<'_>) -> Option<Refused> {
    let format = &asked.body["response_format"]["json_schema"];
    if format["strict"] == true
        && let Some(why) = open_part(&format["schema"])
    {
        let message = format!("Invalid schema for response_format '{}': {why}", format["name"]);
        return Some(refused(message, "response_format", "invalid_json_schema"));
    }
    asked.list("tools").iter().zip(0..).find_map(|(tool, place)| {
        let function = &tool["function"];
        let why = (function["strict"] == true).then(|| open_part(&function["parameters"])).flatten()?;
        let message = format!("Invalid schema for function '{}': {why}", function["name"]);
        Some(refused(message, &format!("tools[{place}].function.parameters"), "invalid_function_parameters"))
    })
}

/// What is open in a schema, at any depth.
fn open_part(schema: &Value) -> Option<String> {
    if let Some(properties) = schema["properties"].as_object() {
        if schema["additionalProperties"] != false {
            return Some(
                "In context=(), 'additionalProperties' is required to be supplied and to be false.".to_owned(),
            );
        }
        let required: BTreeSet<_> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if let Some(name) = properties.keys().find(|name| !required.contains(name.as_str())) {
            let why = "'required' is required to be supplied and to be an array including every key in properties.";
            return Some(format!("In context=(), {why} Missing '{name}'."));
        }
    }
    match schema {
        Value::Object(members) => members.values().find_map(open_part),
        Value::Array(items) => items.iter().find_map(open_part),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Each call is answered at once by a message of its own, and nothing else is.
pub fn calls_are_answered(asked: &Asked<'_>) -> Option<Refused> {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in asked.list("messages") {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) {
                let why = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'.";
                return Some(refused(format!("Invalid parameter: {why}"), "messages", "invalid_value"));
            }
            continue;
        }
        if let Some(id) = open.first() {
            let why = format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                 'tool_call_id'. The following tool_call_ids did not have response messages: {id}"
            );
            return Some(refused(why, "messages", "invalid_value"));
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.filter_map(|call| call["id"].as_str()));
    }
    None
}
