//! Where two values differ.

use serde::Serialize;
use serde_json::Value;

/// Where two values differ first, with what should be there.
pub(super) fn differs<T: Serialize>(expected: &T, found: &T) -> Option<String> {
    let (expected, found) = (serde_json::to_value(expected).ok()?, serde_json::to_value(found).ok()?);
    let (path, expected, found) = difference("", &expected, &found)?;
    let short = |value: &Value| {
        let text = value.to_string();
        if text.chars().count() > 120 { format!("{}…", text.chars().take(120).collect::<String>()) } else { text }
    };
    Some(format!("{path} says {}, but {} follows", short(found), short(expected)))
}

fn difference<'v>(path: &str, expected: &'v Value, found: &'v Value) -> Option<(String, &'v Value, &'v Value)> {
    if expected == found {
        return None;
    }
    let inside = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match (expected, found) {
        (Value::Object(one), Value::Object(other)) => {
            let null = &Value::Null;
            let keys = one.keys().chain(other.keys());
            keys.map(|key| (inside(key), one.get(key).unwrap_or(null), other.get(key).unwrap_or(null)))
                .find_map(|(path, one, other)| difference(&path, one, other))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let places = one.iter().zip(other).enumerate();
            places
                .map(|(at, (one, other))| (inside(&at.to_string()), one, other))
                .find_map(|(path, one, other)| difference(&path, one, other))
        }
        _ => Some((path.to_owned(), expected, found)),
    }
}
