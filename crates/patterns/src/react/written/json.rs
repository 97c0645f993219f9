//! Calls as JSON objects: `{"name": "search", "arguments": {…}}` and its relatives.

use super::super::functions::Functions;
use super::{Placed, Written};
use serde_json::{Map, Value};

/// Where models put the name, and where the arguments.
const NAMES: [&str; 7] = ["name", "tool", "tool_name", "function", "function_name", "action", "recipient_name"];
const ARGUMENTS: [&str; 9] = [
    "arguments",
    "parameters",
    "args",
    "input",
    "action_input",
    "tool_input",
    "kwargs",
    "params",
    "function_arguments",
];
/// What a list of calls is called.
const LISTS: [&str; 3] = ["tool_calls", "calls", "tool_uses"];

/// Each JSON value of a text that is a call or a list of calls.
pub(super) fn find(text: &str, functions: &Functions) -> Vec<Placed> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(['{', '[']).map(|place| at + place) {
        let Some((end, value)) = value_at(text, start) else {
            at = start + 1;
            continue;
        };
        let calls = calls(&value, functions);
        // What is no call may hold one.
        at = if calls.is_empty() { start + 1 } else { end };
        if !calls.is_empty() {
            found.push((start..end, calls));
        }
    }
    found
}

/// The JSON value that begins here, and where it ends.
pub(super) fn value_at(text: &str, start: usize) -> Option<(usize, Value)> {
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((start + values.byte_offset(), value))
}

fn calls(value: &Value, functions: &Functions) -> Vec<Written> {
    match value {
        Value::Array(items) => {
            let calls: Vec<_> = items.iter().filter_map(|item| call(item.as_object()?, functions)).collect();
            if calls.len() == items.len() { calls } else { Vec::new() }
        }
        Value::Object(members) => {
            let listed = LISTS.iter().find_map(|name| members.get(*name)).filter(|list| list.is_array());
            listed.map_or_else(|| call(members, functions).into_iter().collect(), |list| calls(list, functions))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

fn call(members: &Map<String, Value>, functions: &Functions) -> Option<Written> {
    // `{"type": "function", "function": {"name": …}}`
    if let Some(inner) =
        ["function", "function_call", "tool_call"].iter().find_map(|name| members.get(*name)?.as_object())
    {
        return call(inner, functions);
    }
    let is_offered = |name: &&str| functions.meant(name).is_some();
    let named = NAMES.iter().find_map(|member| Some((*member, members.get(*member)?.as_str().map(str::trim)?)));
    if let Some((member, name)) = named.filter(|(_, name)| is_offered(name)) {
        let given = ARGUMENTS.iter().find_map(|name| members.get(*name));
        let arguments = match given {
            Some(given) => object(given)?,
            // `{"name": "search", "question": "moss"}`
            None => members.iter().filter(|(name, _)| *name != member).map(|(k, v)| (k.clone(), v.clone())).collect(),
        };
        // What a function is like is no call of it.
        if arguments.get("type").is_some_and(|kind| kind == "object") && arguments.contains_key("properties") {
            return None;
        }
        let mut arguments = arguments;
        // Some put the thought beside the call.
        if let (Some(thought), false) = (members.get("thought"), arguments.contains_key("thought")) {
            arguments.insert("thought".to_owned(), thought.clone());
        }
        return Some(Written { name: name.to_owned(), arguments });
    }
    // `{"search": {"question": "moss"}}`
    let mut only = members.iter();
    match (only.next(), only.next()) {
        (Some((name, Value::Object(arguments))), None) if is_offered(&name.as_str()) => {
            Some(Written { name: name.clone(), arguments: arguments.clone() })
        }
        _ => None,
    }
}

/// Arguments may be an object, or a text that holds one.
fn object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(members) => Some(members.clone()),
        Value::String(text) => serde_json::from_str(text).ok(),
        Value::Null => Some(Map::new()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}
