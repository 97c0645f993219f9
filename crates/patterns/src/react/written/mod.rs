//! Calls that a model writes into its text, in the forms that models were taught: JSON objects in fences or tags,
//! `<function=…>`, `[TOOL_CALLS]`, a call as in Python. Only what was offered is taken for a call.

mod json;
mod python;
mod tags;

use super::functions::Functions;
use serde_json::{Map, Value};
use std::ops::Range;

/// A call that was found in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Written {
    /// The name as it was written.
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
}

/// What was found in a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) calls: Vec<Written>,
    /// What was said before the first of them.
    pub(super) before: String,
    /// Nothing else was said.
    pub(super) is_all: bool,
    /// The first of them begins a line, and nothing was said after the last. A call that is only quoted in a sentence is
    /// none, whoever wrote it first.
    pub(super) is_meant: bool,
    /// The first of them begins a line.
    pub(super) stands_alone: bool,
}

/// A call and where it stands.
type Placed = (Range<usize>, Vec<Written>);

/// The calls in a text, if there are any.
pub(super) fn find(text: &str, functions: &Functions) -> Option<Found> {
    // What follows an observation that the model invents cannot be trusted.
    let text = before_observation(text);
    let mut placed = tags::find(text, functions);
    placed.extend(json::find(text, functions));
    placed.extend(python::find(text, functions));
    placed.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut calls = Vec::new();
    let (mut first, mut end, mut outside) = (None, 0, String::new());
    for (range, found) in placed {
        // What stands inside another call is part of it.
        if range.start < end {
            continue;
        }
        outside.push_str(&text[end..range.start]);
        first.get_or_insert(range.start);
        end = range.end;
        calls.extend(found);
    }
    let first = first?;
    let before = without_markup(&text[..first]);
    let line = text[..first].rfind('\n').map_or(0, |line| line + 1);
    let stands_alone = without_markup(&text[line..first]).is_empty();
    let is_meant = stands_alone && without_markup(&text[end..]).is_empty();
    outside.push_str(&text[end..]);
    let is_all = without_markup(&outside).is_empty();
    Some(Found { calls, before, is_all, is_meant, stands_alone })
}

fn before_observation(text: &str) -> &str {
    const OBSERVATION: &str = "Observation:";
    if text.trim_start().starts_with(OBSERVATION) {
        return "";
    }
    text.find(&format!("\n{OBSERVATION}")).map_or(text, |end| &text[..end])
}

/// Whether a text may still turn out to be a call, or a list of calls, and nothing else.
pub(super) fn may_be_call(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[', '<', '`'])
}

/// The text without the marks that stand around a call.
fn without_markup(text: &str) -> String {
    const MARKS: [&str; 22] = [
        "```json",
        "```tool_code",
        "```tool_call",
        "```python",
        "```xml",
        "```",
        "<tool_call>",
        "</tool_call>",
        "<tool_calls>",
        "</tool_calls>",
        "<function_calls>",
        "</function_calls>",
        "<function_call>",
        "</function_call>",
        "<tools>",
        "</tools>",
        "<|python_tag|>",
        "<|eom_id|>",
        "<|eot_id|>",
        "[TOOL_CALLS]",
        "[/TOOL_CALLS]",
        "Action:",
    ];
    let mut text = text.to_owned();
    for mark in MARKS {
        text = text.replace(mark, " ");
    }
    let is_mark =
        |line: &str| line.trim().is_empty() || line.trim().chars().all(|c| matches!(c, '`' | '[' | ']' | ',' | ';'));
    let lines: Vec<_> = text.lines().filter(|line| !is_mark(line)).map(str::trim_end).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
#[path = "../written_tests.rs"]
mod tests;
