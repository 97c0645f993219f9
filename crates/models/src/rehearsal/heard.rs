//! What was said after the prompt, as the variables that the script knows.

use crate::provider::ModelRequest;
use memchr::memmem;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use trellis_domain::parts::{ChatTurn, ReplyPart};
use trellis_domain::reply::ReactReply;
use trellis_patterns::react::{PARSE_ERROR, parser};

/// The steps of a conversation behind those that the caller brought along; none if it has just begun.
pub(super) fn history(request: &ModelRequest) -> Option<Value> {
    if request.turns.is_empty() {
        return None;
    }
    let mut history = match request.variables.get("history") {
        Some(Value::Array(brought)) => brought.clone(),
        Some(_) | None => Vec::new(),
    };
    for turn in &request.turns {
        match turn {
            ChatTurn::Assistant { parts } => history.push(json!({ "action": action(parts) })),
            ChatTurn::User { text } | ChatTurn::ToolResult { text, .. } => {
                if let Some(step) = history.last_mut() {
                    step["observation"] = observation(text.text()).into();
                }
            }
        }
    }
    Some(history.into())
}

fn action(parts: &[ReplyPart]) -> String {
    let text = parts.iter().find_map(|part| match part {
        ReplyPart::Text { text } => Some(text.text()),
        ReplyPart::Thought { .. } | ReplyPart::Call { .. } | ReplyPart::Refusal { .. } => None,
    });
    let text = text.unwrap_or_default();
    if let Some(tool) = called(text) {
        return tool.to_owned();
    }
    match parser::read(text) {
        ReactReply::Action { tool, .. } => tool.to_string(),
        ReactReply::Answer { .. } | ReactReply::Unreadable { .. } => PARSE_ERROR.to_owned(),
    }
}

/// The tool, if the text is a call as every conversation shows them.
fn called(text: &str) -> Option<&str> {
    let (before, arguments) = text.split_once("\nArgs: ")?;
    let is_whole = arguments.starts_with('{') && serde_json::from_str::<IgnoredAny>(arguments).is_ok();
    before.lines().last()?.strip_prefix("Action: ").filter(|_| is_whole)
}

/// What came back, without what was said about it afterwards.
fn observation(text: &str) -> &str {
    let text = text.strip_prefix("Observation: ").unwrap_or(text);
    let text = ["\n\nThe question was: ", "\n\nCritique: "].into_iter().fold(text, before);
    without_marks(text).unwrap_or(text)
}

fn before<'t>(text: &'t str, end: &str) -> &'t str {
    memmem::find(text.as_bytes(), end.as_bytes()).map_or(text, |at| &text[..at])
}

/// The material itself, of `[2] <result-7f3a>`, the material and `</result-7f3a>`.
fn without_marks(text: &str) -> Option<&str> {
    let (number, marked) = text.strip_prefix('[')?.split_once("] <")?;
    let (mark, material) = marked.split_once(">\n")?;
    let is_number = number.bytes().all(|digit| digit.is_ascii_digit());
    let end = memmem::find(material.as_bytes(), format!("\n</{mark}>").as_bytes())?;
    is_number.then(|| &material[..end])
}
