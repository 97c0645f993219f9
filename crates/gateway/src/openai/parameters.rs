//! Parameters of OpenAI's requests.
//!
//! What only shapes how a model writes (`temperature`, `seed`, `max_tokens` and the like) means nothing to a run, and many
//! programs send it without being asked: it is taken and ignored. What a program would rely on and not get is refused.

use super::OpenAiError;
use serde_json::{Map, Value};

/// A parameter that is refused unless it asks for nothing.
struct Rule {
    name: &'static str,
    asks_nothing: fn(&Value) -> bool,
    reason: &'static str,
}

const fn rule(name: &'static str, asks_nothing: fn(&Value) -> bool, reason: &'static str) -> Rule {
    Rule { name, asks_nothing, reason }
}

const TOOLS: &str = "agents call the tools of their workspace and no functions of the caller; configure tools with \
    `trellis tools`, and leave this out";
const LOGPROBS: &str = "an answer is the outcome of many calls and has no log probabilities; leave this out";
const FORMAT: &str = "answers are text and are not held to a schema; leave this out, or ask for the form in words";

const OF_ALL: [Rule; 4] = [
    rule("tools", is_empty, TOOLS),
    rule("tool_choice", |choice| choice == "auto" || choice == "none", TOOLS),
    rule("top_logprobs", |count| *count == 0, LOGPROBS),
    rule("moderation", |_| false, "nothing is moderated here; leave this out"),
];

const OF_CHAT: [Rule; 9] = [
    rule("functions", is_empty, TOOLS),
    rule("function_call", |choice| choice == "auto" || choice == "none", TOOLS),
    rule("n", |count| *count == 1, "there is one answer to a question; ask several times for several"),
    rule("logprobs", |wanted| *wanted == false, LOGPROBS),
    rule("stop", is_empty, "an answer is not cut off at a word; leave this out"),
    rule("response_format", is_text, FORMAT),
    rule("modalities", only_text, "answers are text only"),
    rule("audio", |_| false, "answers are text only"),
    rule("web_search_options", |_| false, TOOLS),
];

const OF_RESPONSES: [Rule; 3] = [
    rule(
        "prompt",
        |_| false,
        "there are no stored prompts of OpenAI's here; send the text as `instructions` and `input`",
    ),
    rule("text", |text| text.get("format").is_none_or(|format| format.is_null() || is_text(format)), FORMAT),
    rule("include", |wanted| !lists(wanted, "message.output_text.logprobs"), LOGPROBS),
];

pub(super) fn check_chat(body: &Map<String, Value>) -> Result<(), OpenAiError> {
    check(body, OF_ALL.iter().chain(&OF_CHAT))
}

pub(super) fn check_response(body: &Map<String, Value>) -> Result<(), OpenAiError> {
    check(body, OF_ALL.iter().chain(&OF_RESPONSES))
}

fn check<'r>(body: &Map<String, Value>, mut rules: impl Iterator<Item = &'r Rule>) -> Result<(), OpenAiError> {
    let broken =
        rules.find(|rule| body.get(rule.name).is_some_and(|value| !value.is_null() && !(rule.asks_nothing)(value)));
    match broken {
        Some(Rule { name, reason, .. }) => Err(OpenAiError::unsupported(*name, format!("`{name}`: {reason}"))),
        None => Ok(()),
    }
}

/// Whether a flag is set; one that is left out is not.
pub(super) fn flag(body: &Map<String, Value>, name: &str) -> Result<bool, OpenAiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(OpenAiError::parameter(name, format!("`{name}` must be true or false"))),
    }
}

/// A text, if there is one.
pub(super) fn text<'b>(body: &'b Map<String, Value>, name: &str) -> Result<Option<&'b str>, OpenAiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(OpenAiError::parameter(name, format!("`{name}` must be a text"))),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn is_text(format: &Value) -> bool {
    format.get("type").is_some_and(|kind| kind == "text")
}

fn only_text(modalities: &Value) -> bool {
    modalities.as_array().is_some_and(|all| all.iter().all(|one| one == "text"))
}

fn lists(value: &Value, word: &str) -> bool {
    value.as_array().is_some_and(|all| all.iter().any(|one| one == word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(check: fn(&Map<String, Value>) -> Result<(), OpenAiError>, body: &Value) -> bool {
        check(body.as_object().unwrap()).is_err()
    }

    #[test]
    fn what_a_caller_would_rely_on_is_refused() {
        for body in [
            json!({"tools": [{"type": "function"}]}),
            json!({"tool_choice": "required"}),
            json!({"functions": [{}]}),
            json!({"n": 2}),
            json!({"logprobs": true}),
            json!({"top_logprobs": 3}),
            json!({"stop": "\n"}),
            json!({"stop": ["END"]}),
            json!({"response_format": {"type": "json_schema"}}),
            json!({"response_format": {"type": "json_object"}}),
            json!({"modalities": ["text", "audio"]}),
            json!({"audio": {"voice": "alloy"}}),
            json!({"web_search_options": {}}),
        ] {
            assert!(refused(check_chat, &body), "{body}");
        }
        for body in [
            json!({"tools": [{"type": "web_search"}]}),
            json!({"text": {"format": {"type": "json_schema"}}}),
            json!({"include": ["message.output_text.logprobs"]}),
            json!({"prompt": {"id": "p"}}),
        ] {
            assert!(refused(check_response, &body), "{body}");
        }
    }

    #[test]
    fn what_asks_for_nothing_and_what_only_shapes_the_writing_is_taken() {
        let common = json!({
            "tools": [], "tool_choice": "auto", "top_logprobs": null, "temperature": 0.2, "top_p": 1, "user": "u",
            "metadata": {"a": "b"}, "store": false, "anything": {"new": 1},
        });
        assert!(!refused(check_chat, &common) && !refused(check_response, &common));
        let chat = json!({
            "n": 1, "logprobs": false, "stop": null, "response_format": {"type": "text"}, "modalities": ["text"],
            "seed": 3, "max_tokens": 10, "max_completion_tokens": 10, "frequency_penalty": 0, "logit_bias": {},
        });
        assert!(!refused(check_chat, &chat));
        let response = json!({
            "text": {"verbosity": "low", "format": {"type": "text"}}, "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "low"}, "truncation": "auto", "max_output_tokens": 5,
        });
        assert!(!refused(check_response, &response));
    }
}
