//! Calls whose name stands in front of the arguments: `<function=search>{…}</function>`, `<invoke name="search">`,
//! `[TOOL_CALLS]search{…}`.

use super::super::functions::Functions;
use super::json::value_at;
use super::{Placed, Written};
use serde_json::{Map, Value};

/// What stands between a name and its arguments.
const BETWEEN: [&str; 6] = ["[ARGS]", "<｜tool▁sep｜>", "```json", "```", ">", ":"];
/// What stands in front of a name, so that it is one. `[CALL_ID]` and what follows it belongs to the name.
const BEFORE: [&str; 5] =
    ["[TOOL_CALLS]", "<function=", "<｜tool▁sep｜>", "<|tool_call_begin|>functions.", "<tool_call>"];

/// So many marks of a kind are looked at: each may lead to the end of the text.
const MOST_MARKS: usize = 32;

pub(super) fn find(text: &str, functions: &Functions) -> Vec<Placed> {
    let mut found = Vec::new();
    for mark in BEFORE {
        found.extend(text.match_indices(mark).take(MOST_MARKS).filter_map(|(at, _)| named(text, at, mark, functions)));
    }
    for (mark, close) in
        [("<invoke name=", "</invoke>"), ("<tool name=", "</tool>"), ("<function name=", "</function>")]
    {
        found.extend(
            text.match_indices(mark).take(MOST_MARKS).filter_map(|(at, _)| invoked(text, at, mark, close, functions)),
        );
    }
    found
}

/// A name behind a mark, then its arguments as JSON or as tags.
fn named(text: &str, at: usize, mark: &str, functions: &Functions) -> Option<Placed> {
    let start = at + mark.len();
    let rest = &text[start..];
    let length = rest.find(|c: char| c.is_whitespace() || matches!(c, '{' | '<' | '>' | '[' | '`' | ':' | '('))?;
    let name = rest[..length].trim_matches(['"', '\'']);
    functions.meant(name)?;
    let mut place = start + length;
    loop {
        place += text[place..].len() - text[place..].trim_start().len();
        match BETWEEN.iter().find(|mark| text[place..].starts_with(**mark)) {
            Some(mark) => place += mark.len(),
            None => break,
        }
    }
    let (end, arguments) = arguments_at(text, place, "</function>")?;
    Some((at..end, vec![Written { name: name.to_owned(), arguments }]))
}

/// `<invoke name="search"><parameter name="question">moss</parameter></invoke>`
fn invoked(text: &str, at: usize, mark: &str, close: &str, functions: &Functions) -> Option<Placed> {
    let rest = &text[at + mark.len()..];
    let (name, _) = rest.split_once('>')?;
    let name = name.trim().trim_matches(['"', '\'']);
    functions.meant(name)?;
    let place = at + mark.len() + rest.find('>')? + 1;
    let place = place + text[place..].len() - text[place..].trim_start().len();
    let (end, arguments) = arguments_at(text, place, close)?;
    Some((at..end, vec![Written { name: name.to_owned(), arguments }]))
}

/// The arguments that begin here, and where they end.
fn arguments_at(text: &str, place: usize, close: &str) -> Option<(usize, Map<String, Value>)> {
    let closed = |end: usize| {
        let rest = text[end..].trim_start();
        if rest.starts_with(close) { text.len() - rest.len() + close.len() } else { end }
    };
    if text[place..].starts_with('{') {
        let (end, value) = value_at(text, place)?;
        let Value::Object(arguments) = value else { return None };
        return Some((closed(end), arguments));
    }
    let length = text[place..].find(close)?;
    let arguments = parameters(&text[place..place + length])?;
    Some((place + length + close.len(), arguments))
}

/// `<parameter=question>moss</parameter>` or `<parameter name="question">moss</parameter>`, any number of them.
fn parameters(text: &str) -> Option<Map<String, Value>> {
    let mut arguments = Map::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let tag = rest.strip_prefix("<parameter")?;
        let (name, after) = tag.split_once('>')?;
        let name = name.trim_start_matches([' ', '=']).trim_start_matches("name=").trim().trim_matches(['"', '\'']);
        let (value, after) = after.split_once("</parameter>")?;
        arguments.insert(name.to_owned(), value_of(value.trim_matches('\n')));
        rest = after.trim();
    }
    Some(arguments)
}

/// Numbers, words such as true, lists and objects are JSON; everything else is a text.
fn value_of(text: &str) -> Value {
    match serde_json::from_str(text.trim()) {
        Ok(Value::String(_)) | Err(_) => text.into(),
        Ok(value) => value,
    }
}
