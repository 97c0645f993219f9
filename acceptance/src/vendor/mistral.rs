//! Mistral's own address. From its API description, the validation of `mistral-common`, and the errors that users quote.

use super::{Asked, Refused};
use serde_json::{Value, json};

fn refused(message: impl Into<String>, kind: &str, code: &str) -> Refused {
    let body = json!({ "object": "error", "message": message.into(), "type": kind, "param": null, "code": code,
        "raw_status_code": 400 });
    Refused::new(400, body)
}

/// Members that the API's description does not name.
pub fn no_other_members(asked: &Asked<'_>) -> Option<Refused> {
    let unknown = ["stream_options", "max_completion_tokens", "store", "logit_bias", "user"];
    let name = unknown.iter().find(|name| asked.has(name))?;
    let detail = json!([{ "type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted",
        "input": asked.body[*name] }]);
    let body = json!({ "object": "error", "message": { "detail": detail }, "type": "invalid_request_error",
        "param": null, "code": null });
    Some(Refused::new(422, body))
}

/// Ids of calls are nine letters and digits.
pub fn ids_have_nine_letters(asked: &Asked<'_>) -> Option<Refused> {
    let called = |message: &Value| -> Vec<Value> {
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        calls.map(|call| call["id"].clone()).chain(message.get("tool_call_id").cloned()).collect()
    };
    let is_right =
        |id: &Value| id.as_str().is_some_and(|id| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    let ids: Vec<_> = asked.list("messages").iter().flat_map(called).collect();
    let wrong = ids.iter().find(|id| !is_right(id))?;
    let id = wrong.as_str().unwrap_or("null");
    let message = format!("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9.");
    Some(refused(message, "invalid_function_call", "3280"))
}

/// Older models call it `any`, and nothing else.
pub fn forces_by_any(asked: &Asked<'_>) -> Option<Refused> {
    let message = "Input should be 'auto', 'none' or 'any' for tool_choice";
    (asked.body["tool_choice"] == "required").then(|| refused(message, "invalid_request_error", "3000"))
}

/// The model speaks after the user or a tool.
pub fn last_is_no_assistant(asked: &Asked<'_>) -> Option<Refused> {
    let last = asked.list("messages").last()?;
    let message = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant";
    (last["role"] == "assistant").then(|| refused(message, "invalid_request_message_order", "3230"))
}

/// After a tool the model speaks, and after the system the user.
pub fn roles_are_in_order(asked: &Asked<'_>) -> Option<Refused> {
    asked.list("messages").windows(2).find_map(|pair| {
        let roles = [&pair[0], &pair[1]].map(|message| message["role"].as_str().unwrap_or_default());
        let wrong = matches!(roles, ["tool", "user"] | ["system", "assistant" | "tool"] | ["user", "tool"]);
        let message = format!("Unexpected role '{}' after role '{}'", roles[1], roles[0]);
        wrong.then(|| refused(message, "invalid_request_message_order", "3230"))
    })
}
