//! Replies that choose one name out of a set: `{"task_type": …, "rationale": …}`, or the bare name.

use crate::reader::ReadReply;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::document::Document;
use trellis_domain::record::Reading;
use trellis_domain::reply::json_in;

/// The members that may hold a name, if it is not where it was asked for.
const NAMES: [&str; 5] = ["task_type", "task-type", "pattern", "name", "choice"];
const RATIONALES: [&str; 3] = ["rationale", "reason", "reasoning"];
/// Longer than any name: a reply of prose is quoted only so far.
const QUOTED: usize = 80;
/// What models put around a name.
const QUOTES: &str = "\"'`.*()[]<>“”‘’«»";
/// So many signals are kept, and so many characters of each.
const SIGNALS: (usize, usize) = (12, 200);

pub(crate) fn read(raw: &str, mut offered: Vec<Decision>) -> ReadReply {
    let Some(decision) = offered.first_mut() else { return ReadReply::unusable("nothing was offered", offered) };
    // A bare `2026` or `null` is the name of an option, if there is one of that name.
    let structured = json_in(raw).ok().filter(|value| value.is_object() || value.is_array() || value.is_string());
    let value = structured.unwrap_or_else(|| Value::String(raw.trim().to_owned()));
    let named = name_in(&value, decision.kind).unwrap_or_default();
    decision.signals = signals(&value);
    decision.rationale = text(&value, &RATIONALES).and_then(Document::stored);
    if let Some(name) = option_named(&decision.options, &named) {
        decision.chosen = vec![name.clone()];
        return ReadReply::new("", Reading::decided(name), offered);
    }
    decision.rejected = Document::stored(raw.trim());
    let options = decision.options.join(", ");
    let reason = if named.is_empty() {
        format!("the reply names nothing; name one of {options}")
    } else {
        format!("`{}` is not one of {options}", named.chars().take(QUOTED).collect::<String>())
    };
    ReadReply::unusable(reason, offered)
}

/// The descriptions that a reply chooses from before it names what it has chosen.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Descriptions {
    /// The member of the reply that holds one of them.
    pub(crate) member: String,
    /// The name of each.
    pub(crate) names: BTreeMap<String, String>,
}

/// The same for a reply that repeats a description first. It counts, whatever name follows: small models describe what
/// they mean and then write the name that the question puts into their mouth.
pub(crate) fn read_described(raw: &str, descriptions: &Descriptions, offered: Vec<Decision>) -> ReadReply {
    let Some((mut reply, meant)) = meant(raw, descriptions) else { return read(raw, offered) };
    let Some(kind) = offered.first().map(|decision| decision.kind) else { return read(raw, offered) };
    let named = name_in(&reply, kind);
    reply[member_of(kind)] = meant.as_str().into();
    let read = read(&reply.to_string(), offered);
    match named.filter(|named| option_named(std::slice::from_ref(&meant), named).is_none()) {
        Some(named) => {
            let named: String = named.chars().take(QUOTED).collect();
            read.with_repairs(vec![format!("the reply describes {meant} and names `{named}`: the description counts")])
        }
        None => read,
    }
}

/// The object in a reply, and the name of what it describes.
fn meant(raw: &str, descriptions: &Descriptions) -> Option<(Value, String)> {
    let reply = json_in(raw).ok().filter(Value::is_object)?;
    let described = text(&reply, &[&descriptions.member])?;
    let name = descriptions.names.get(&described)?.clone();
    Some((reply, name))
}

/// The member of a reply that was asked for.
fn member_of(kind: DecisionKind) -> String {
    kind.as_str().replace('-', "_")
}

/// The name in a reply. A reply may tell more than was asked for, so the member that was asked for comes first.
fn name_in(value: &Value, kind: DecisionKind) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(_) => text(value, &[&member_of(kind)]).or_else(|| text(value, &NAMES)),
        Value::Array(members) if members.len() == 1 => name_in(members.first()?, kind),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The option that is meant, however it is quoted or written; keys may have capitals.
pub(crate) fn option_named(options: &[String], named: &str) -> Option<String> {
    let named = named.trim();
    let bare = named.trim_matches(|c: char| c.is_whitespace() || QUOTES.contains(c));
    let exact = |name: &str| options.iter().find(|option| *option == name);
    let same = |name: &str| options.iter().find(|option| option.to_lowercase() == name.to_lowercase());
    exact(named).or_else(|| exact(bare)).or_else(|| same(bare)).cloned()
}

pub(crate) fn text(value: &Value, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| value.get(name)?.as_str()).map(|text| text.trim().to_owned())
}

/// The signals that the model states, such as `complexity: high`.
fn signals(value: &Value) -> Vec<String> {
    let Some(Value::Object(signals)) = value.get("signals") else { return Vec::new() };
    let (most, length) = SIGNALS;
    let line = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}: {text}"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            format!("{name}: {value}")
        }
    };
    signals.iter().take(most).map(line).map(|line| line.chars().take(length).collect()).collect()
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
