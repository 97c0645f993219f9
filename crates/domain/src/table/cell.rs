//! One value: from a text or from JSON to what its field says.

use super::{FieldKind, TableField};
use serde_json::{Number, Value};

/// Bytes of a value.
const LONGEST: usize = 1 << 20;
/// As much of a value as a message needs.
const SHOWN: usize = 60;

/// None if there is no value.
pub(super) fn read(field: &TableField, cell: &Value) -> Result<Option<Value>, String> {
    let text = match cell {
        Value::Null => return Ok(None),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => cell.to_string(),
    };
    if text.len() > LONGEST {
        return Err(format!("a value of {} bytes is longer than 1 MiB", text.len()));
    }
    let trimmed = text.trim();
    if text.is_empty() || (trimmed.is_empty() && field.kind != FieldKind::String) {
        return Ok(None);
    }
    let is_no = |what: &str| format!("`{}` is no {what}", shown(trimmed));
    let value = match field.kind {
        FieldKind::Integer => Value::from(integer(trimmed).ok_or_else(|| is_no("integer"))?),
        FieldKind::Float => {
            let number = trimmed.parse().ok().and_then(Number::from_f64);
            Value::Number(number.ok_or_else(|| is_no("number"))?)
        }
        FieldKind::Boolean => Value::Bool(truth(trimmed).ok_or_else(|| is_no("truth value such as true or false"))?),
        FieldKind::String => Value::String(text.clone()),
        FieldKind::Timestamp | FieldKind::Date | FieldKind::Time | FieldKind::Uuid => Value::from(trimmed),
    };
    if !field.allowed.is_empty() && !field.allowed.iter().any(|allowed| allowed == trimmed) {
        return Err(format!("`{}` is none of {}", shown(trimmed), shown(&field.allowed.join(", "))));
    }
    Ok(Some(value))
}

/// `7.0` is what other programs write for 7.
fn integer(text: &str) -> Option<i64> {
    let whole = text.split_once('.').filter(|(_, rest)| rest.bytes().all(|digit| digit == b'0'));
    whole.map_or(text, |(whole, _)| whole).parse().ok()
}

fn truth(text: &str) -> Option<bool> {
    const WORDS: [(&str, bool); 8] = [
        ("true", true),
        ("yes", true),
        ("y", true),
        ("1", true),
        ("false", false),
        ("no", false),
        ("n", false),
        ("0", false),
    ];
    WORDS.iter().find(|(word, _)| text.eq_ignore_ascii_case(word)).map(|(_, truth)| *truth)
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
