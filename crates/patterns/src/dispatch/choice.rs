//! The choice: a tool with its arguments, or an agent with its question.

use crate::choice::{option_named, text};
use crate::reader::ReadReply;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use trellis_domain::PatternName;
use trellis_domain::decision::Decision;
use trellis_domain::document::Document;
use trellis_domain::record::Reading;
use trellis_domain::reply::json_in;

/// Begins the name of an agent in the option set, so that it cannot be taken for a tool.
pub(super) const AGENT: &str = "agent:";

/// The question goes to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Forward {
    /// Its pattern.
    pub(super) agent: PatternName,
    /// What it is asked; none for the question as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) question: Option<String>,
}

const FORM: &str = r#"reply with {"choice": "...", "arguments": {}, "question": null, "reason": "..."}"#;
/// Longer than any name: a reply of prose is quoted only so far.
const QUOTED: usize = 80;
const QUESTION_CHARS: usize = 8_000;

pub(super) fn read(raw: &str, mut offered: Vec<Decision>) -> ReadReply {
    let Some(decision) = offered.first_mut() else { return ReadReply::unusable("nothing was offered", offered) };
    let value = json_in(raw).unwrap_or_else(|_| Value::String(raw.trim().to_owned()));
    let value = value.as_array().filter(|all| all.len() == 1).map_or(&value, |all| &all[0]);
    let named = value.as_str().map(str::to_owned).or_else(|| text(value, &["choice", "tool", "agent", "name"]));
    let named = named.unwrap_or_default();
    decision.rationale = text(value, &["reason", "rationale"]).and_then(Document::stored);
    // An agent may be named without its mark, as long as no tool has the name.
    let chosen = option_named(&decision.options, &named)
        .or_else(|| option_named(&decision.options, &format!("{AGENT}{}", named.trim())));
    let Some(chosen) = chosen else {
        decision.rejected = Document::stored(raw.trim());
        let quoted: String = named.chars().take(QUOTED).collect();
        let reason = format!("`{quoted}` is not one of {}; {FORM}", decision.options.join(", "));
        return ReadReply::unusable(reason, offered);
    };
    let mut repairs = Vec::new();
    let reading = match chosen.strip_prefix(AGENT) {
        Some(agent) => {
            let mut question = text(value, &["question"]).filter(|question| !question.is_empty());
            repairs.extend(question.as_mut().and_then(cut));
            Reading::decided(Forward { agent: agent.into(), question })
        }
        None => match value.get("arguments") {
            Some(Value::Object(arguments)) => Reading::acted(chosen.as_str(), arguments.clone()),
            Some(Value::Null) | None => Reading::acted(chosen.as_str(), Map::new()),
            Some(_) => return ReadReply::unusable(format!("`arguments` is not a JSON object; {FORM}"), offered),
        },
    };
    decision.chosen = vec![chosen];
    ReadReply::new("", reading, offered).with_repairs(repairs)
}

/// Cuts a question that is too long, and says so.
fn cut(question: &mut String) -> Option<String> {
    let (end, _) = question.char_indices().nth(QUESTION_CHARS)?;
    let count = question.chars().count();
    question.truncate(end);
    Some(format!("the question of {count} characters was cut to {QUESTION_CHARS}"))
}
