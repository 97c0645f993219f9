//! Anthropic's messages, newest and older models. From the API reference, the guides on extended thinking, tool use and
//! structured outputs, and the errors that users quote.

use super::{Asked, Refused};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn refused(message: impl Into<String>) -> Refused {
    let error = json!({ "type": "invalid_request_error", "message": message.into() });
    Refused::new(400, json!({ "type": "error", "error": error }))
}

/// A limit of tokens has to be set.
pub fn needs_max_tokens(asked: &Asked<'_>) -> Option<Refused> {
    (!asked.has("max_tokens")).then(|| refused("max_tokens: Field required"))
}

/// A model that thinks cannot be forced to call something.
pub fn no_forced_tool(asked: &Asked<'_>) -> Option<Refused> {
    let forced = asked.body["tool_choice"]["type"].as_str().is_some_and(|kind| kind == "any" || kind == "tool");
    forced.then(|| refused("Thinking may not be enabled when tool_choice forces tool use."))
}

/// One of the two ways to sample.
pub fn not_both_samplings(asked: &Asked<'_>) -> Option<Refused> {
    let both = asked.has("temperature") && asked.has("top_p");
    let message = "`temperature` and `top_p` cannot both be specified for this model. Please use only one.";
    both.then(|| refused(message))
}

/// A model that thinks samples in its own way.
pub fn no_temperature(asked: &Asked<'_>) -> Option<Refused> {
    let other = asked.body.get("temperature").is_some_and(|value| value.as_f64() != Some(1.0));
    let message = "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult our \
                   documentation at https://platform.claude.com/docs/en/build-with-claude/extended-thinking";
    other.then(|| refused(message))
}

/// Older models know no schema for the reply.
pub fn no_output_config(asked: &Asked<'_>) -> Option<Refused> {
    asked.has("output_config").then(|| refused("output_config: Extra inputs are not permitted"))
}

/// A schema for the reply is closed.
pub fn schemas_are_closed(asked: &Asked<'_>) -> Option<Refused> {
    let format = &asked.body["output_config"]["format"]["schema"];
    let strict = asked.list("tools").iter().filter(|tool| tool["strict"] == true).map(|tool| &tool["input_schema"]);
    let open = std::iter::once(format).chain(strict).any(is_open);
    let message =
        "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false";
    open.then(|| refused(message))
}

fn is_open(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let open = schema["type"] == "object" && schema["additionalProperties"] != false;
            open || members.values().any(is_open)
        }
        Value::Array(items) => items.iter().any(is_open),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// User and assistant take turns, the user first and last, and nobody says nothing.
pub fn roles_alternate(asked: &Asked<'_>) -> Option<Refused> {
    let messages = asked.list("messages");
    for (message, place) in messages.iter().zip(0..) {
        let wanted = if place % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != wanted {
            let role = message["role"].as_str().unwrap_or_default();
            let why = format!("but found multiple \"{role}\" roles in a row");
            return Some(refused(format!("messages: roles must alternate between \"user\" and \"assistant\", {why}")));
        }
        let blocks = message["content"].as_array().into_iter().flatten();
        if message["content"] == "" || blocks.clone().any(|block| block["text"] == "") {
            return Some(refused("messages: text content blocks must be non-empty"));
        }
    }
    let prefilled = messages.last().is_none_or(|message| message["role"] != "user");
    let message =
        "This model does not support assistant message prefill. The conversation must end with a user message.";
    prefilled.then(|| refused(message))
}

/// What was called is answered in the very next message.
pub fn results_follow_calls(asked: &Asked<'_>) -> Option<Refused> {
    let ids = |message: Option<&Value>, kind: &str, id: &str| -> BTreeSet<String> {
        let blocks = message.and_then(|message| message["content"].as_array()).into_iter().flatten();
        let own = blocks.filter(|block| block["type"] == kind);
        own.filter_map(|block| block[id].as_str().map(str::to_owned)).collect()
    };
    let messages = asked.list("messages");
    (0..messages.len()).find_map(|place| {
        let called = ids(messages.get(place), "tool_use", "id");
        let answered = ids(messages.get(place + 1), "tool_result", "tool_use_id");
        let open: Vec<_> = called.difference(&answered).cloned().collect();
        let why = "`tool_use` ids were found without `tool_result` blocks immediately after";
        (!open.is_empty()).then(|| refused(format!("messages.{place}: {why}: {}.", open.join(", "))))
    })
}
