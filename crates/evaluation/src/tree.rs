//! JSON values compared by what they mean, and the calls of a run compared with those that were expected.

use crate::check::ExpectedCall;
use crate::outcome::CalledTool;
use serde_json::{Map, Value};

/// Numbers by value, texts without white space around them, objects in any order of their members.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            // Not as fractions if both are whole: those do not tell large ones apart.
            let whole = one.as_i128().zip(other.as_i128()).map(|(one, other)| one == other);
            let by_value = || one.as_f64().zip(other.as_f64()).is_some_and(|(one, other)| (one - other).abs() == 0.0);
            whole.unwrap_or_else(by_value)
        }
        (Value::String(one), Value::String(other)) => one.trim() == other.trim(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => same_members(one, other),
        _ => one == other,
    }
}

pub(crate) fn same_members(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let has = |(name, value): (&String, &Value)| other.get(name).is_some_and(|found| same(value, found));
    one.len() == other.len() && one.iter().all(has)
}

/// Whether a call is the one that was expected, with no argument besides.
pub(crate) fn fits(expected: &ExpectedCall, call: &CalledTool) -> bool {
    let is_accepted = |(name, accepted): (&String, &Value)| match call.arguments.get(name) {
        Some(value) => accepted_values(accepted).iter().any(|accepted| same(accepted, value)),
        // As the function calling benchmarks have it: an empty text stands for an argument that may be left out.
        None => accepted.is_array() && accepted_values(accepted).contains(&Value::from("")),
    };
    expected.name == call.name
        && expected.arguments.iter().all(is_accepted)
        && call.arguments.keys().all(|name| expected.arguments.contains_key(name))
}

fn accepted_values(accepted: &Value) -> &[Value] {
    accepted.as_array().map_or_else(|| std::slice::from_ref(accepted), Vec::as_slice)
}

/// The first expected call that no call of the run is left for. Each call stands for one expected call only, and they are
/// given out so that as many as possible get theirs.
pub(crate) fn first_missing<'e>(expected: &'e [ExpectedCall], calls: &[CalledTool]) -> Option<&'e ExpectedCall> {
    let mut holder = vec![None; calls.len()];
    let mut seen = vec![false; calls.len()];
    (0..expected.len()).find_map(|wanted| {
        seen.fill(false);
        (!give(wanted, expected, calls, &mut holder, &mut seen)).then(|| &expected[wanted])
    })
}

/// Finds a call for an expected one; whoever holds it already may have to take another. No deeper than there are calls.
fn give(
    wanted: usize,
    expected: &[ExpectedCall],
    calls: &[CalledTool],
    holder: &mut [Option<usize>],
    seen: &mut [bool],
) -> bool {
    for call in 0..calls.len() {
        if seen[call] || !fits(&expected[wanted], &calls[call]) {
            continue;
        }
        seen[call] = true;
        if holder[call].is_none_or(|other| give(other, expected, calls, holder, seen)) {
            holder[call] = Some(wanted);
            return true;
        }
    }
    false
}
