//! What was said after the prompt, as the variables that the script knows.

use crate::provider::ModelRequest;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use trellis_domain::parts::{ChatTurn, ReplyPart};
use trellis_domain::reply::ReactReply;
use trellis_patterns::react::{PARSE_ERROR, parser};

/// The variables of a request, with the steps of its conversation behind those that the caller brought along.
pub(super) fn variables(request: &ModelRequest) -> Cow<'_, Map<String, Value>> {
    if request.turns.is_empty() {
        return Cow::Borrowed(&request.variables);
    }
    let mut variables = request.variables.clone();
    let mut history = match variables.remove("history") {
        Some(Value::Array(brought)) => brought,
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
    variables.insert("history".to_owned(), history.into());
    Cow::Owned(variables)
}

fn action(parts: &[ReplyPart]) -> String {
    let text = parts.iter().find_map(|part| match part {
        ReplyPart::Text { text } => Some(text.text()),
        ReplyPart::Thought { .. } | ReplyPart::Call { .. } | ReplyPart::Refusal { .. } => None,
    });
    match parser::read(text.unwrap_or_default()) {
        ReactReply::Action { tool, .. } => tool.to_string(),
        ReactReply::Answer { .. } | ReactReply::Unreadable { .. } => PARSE_ERROR.to_owned(),
    }
}

/// What came back, without what was said about it afterwards.
fn observation(text: &str) -> &str {
    let text = text.strip_prefix("Observation: ").unwrap_or(text);
    let text = text.split("\n\nThe question was: ").next().unwrap_or(text);
    let text = text.split("\n\nCritique: ").next().unwrap_or(text);
    without_marks(text).unwrap_or(text)
}

/// The material itself, of `[2] <result-7f3a>`, the material and `</result-7f3a>`.
fn without_marks(text: &str) -> Option<&str> {
    let (number, marked) = text.strip_prefix('[')?.split_once("] <")?;
    let (mark, material) = marked.split_once(">\n")?;
    let is_number = number.bytes().all(|digit| digit.is_ascii_digit());
    material.split_once(&format!("\n</{mark}>")).map(|(material, _)| material).filter(|_| is_number)
}
