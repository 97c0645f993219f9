//! Others behind OpenAI's dialect: Gemini's compatible address, Groq, Cohere, vLLM. From their documentation of what is
//! compatible, and the errors that users quote.

use super::{Asked, Refused};
use serde_json::{Value, json};

/// Gemini puts its error into a list.
fn gemini(message: String) -> Refused {
    let error = json!({ "code": 400, "message": message, "status": "INVALID_ARGUMENT" });
    Refused::new(400, json!([{ "error": error }]))
}

/// No strict functions.
pub fn gemini_knows_no_strict(asked: &Asked<'_>) -> Option<Refused> {
    let strict = asked.list("tools").iter().position(|tool| tool["function"].get("strict").is_some())?;
    let what = format!("Unknown name \"strict\" at 'tools[{strict}].function': Cannot find field.");
    Some(gemini(format!("Invalid JSON payload received. {what}")))
}

/// Older models take no closed schemas.
pub fn gemini_knows_no_closed_schemas(asked: &Asked<'_>) -> Option<Refused> {
    let tools = asked.list("tools").iter().any(|tool| holds(tool, "additionalProperties"));
    let format = holds(&asked.body["response_format"], "additionalProperties");
    let place =
        if tools { "tools[0].function_declarations[0].parameters" } else { "generation_config.response_schema" };
    let what = format!("Unknown name \"additionalProperties\" at '{place}': Cannot find field.");
    (tools || format).then(|| gemini(format!("Invalid JSON payload received. {what}")))
}

fn holds(value: &Value, name: &str) -> bool {
    match value {
        Value::Object(members) => members.contains_key(name) || members.values().any(|member| holds(member, name)),
        Value::Array(items) => items.iter().any(|item| holds(item, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn groq(message: &str, code: Option<&str>) -> Refused {
    let mut error = json!({ "message": message, "type": "invalid_request_error" });
    if let Some(code) = code {
        error["code"] = json!(code);
        error["failed_generation"] = json!("{\"task_type\": ");
    } else {
        error["param"] = json!("response_format");
    }
    Refused::new(400, json!({ "error": error }))
}

/// Schemas only for some models.
pub fn groq_knows_no_schema(asked: &Asked<'_>) -> Option<Refused> {
    let message = "This model does not support response format `json_schema`. See supported models at \
                   https://console.groq.com/docs/structured-outputs#supported-models";
    (asked.body["response_format"]["type"] == "json_schema").then(|| groq(message, None))
}

/// The first reply that has to follow a schema does not. That is chance, and no refusal.
pub fn groq_fails_once(asked: &Asked<'_>) -> Option<Refused> {
    let message = "Failed to validate JSON. Please adjust your prompt. See 'failed_generation' for more details.";
    let first = asked.earlier == 0 && asked.has("response_format");
    first.then(|| groq(message, Some("json_validate_failed")))
}

/// The first call of a function cannot be read. That is chance, too.
pub fn groq_fails_to_call_once(asked: &Asked<'_>) -> Option<Refused> {
    let message = "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.";
    let first = asked.earlier == 0 && asked.offers_functions();
    first.then(|| groq(message, Some("tool_use_failed")))
}

/// Cohere's compatible address does not know all members.
pub fn cohere_knows_no_parallel_calls(asked: &Asked<'_>) -> Option<Refused> {
    let name = ["parallel_tool_calls", "store", "metadata", "n"].into_iter().find(|name| asked.has(name))?;
    let message = format!("invalid request: unknown field: parameter '{name}' is not a valid field");
    Some(Refused::new(422, json!({ "id": "c6ea1b2e-0000-0000-0000-000000000000", "message": message })))
}

/// vLLM calls functions only if it was started for it.
pub fn vllm_calls_no_functions(asked: &Asked<'_>) -> Option<Refused> {
    let message = "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set";
    let error = json!({ "message": message, "type": "BadRequestError", "param": null, "code": 400 });
    asked.offers_functions().then(|| Refused::new(400, json!({ "error": error })))
}
