//! Filters of numbers.

use super::Given;
use crate::template::fault::{Fault, Outcome};
use crate::template::operators;
use crate::template::value::Value;

pub(super) fn apply<'v>(name: &str, value: &Value<'v>, given: &mut Given<'v>) -> Outcome<Value<'v>> {
    match name {
        "abs" => match value {
            Value::Int(number) => Ok(Value::Int(number.saturating_abs())),
            Value::Float(number) => Ok(Value::Float(number.abs())),
            other => Err(Fault::new(format!("{} is no number", other.kind()))),
        },
        "round" => round(value, given),
        "int" => {
            let default = given.take("default");
            let base = given.int("base")?.and_then(|base| u32::try_from(base).ok()).unwrap_or(10);
            number(value, default, Value::Int(0), |text| whole(text, base))
        }
        _ => {
            let default = given.take("default");
            number(value, default, Value::Float(0.0), |text| text.parse().ok().map(Value::Float))
                .map(|value| operators::float(&value).map_or(value, Value::Float))
        }
    }
}

fn number<'v>(
    value: &Value<'v>,
    default: Option<Value<'v>>,
    nothing: Value<'v>,
    read: impl FnOnce(&str) -> Option<Value<'v>>,
) -> Outcome<Value<'v>> {
    let is_whole = matches!(nothing, Value::Int(_));
    match value {
        Value::Undefined | Value::None => Ok(default.unwrap_or(nothing)),
        Value::Bool(value) => Ok(Value::Int(i128::from(*value))),
        Value::Int(_) => Ok(value.clone()),
        Value::Float(number) => Ok(if is_whole { truncated(*number) } else { value.clone() }),
        Value::Text(text) => read(text.as_str())
            .or(default)
            .ok_or_else(|| Fault::new("a text that is no number cannot be read as one; give a default")),
        other => default.ok_or_else(|| Fault::new(format!("{} is no number", other.kind()))),
    }
}

fn whole<'v>(text: &str, base: u32) -> Option<Value<'v>> {
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        3..=36 => "",
        _ => return None,
    };
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.strip_prefix(prefix).unwrap_or(digits);
    let read = i128::from_str_radix(digits, base).ok().and_then(|number| number.checked_mul(sign));
    read.map(Value::Int).or_else(|| text.parse().ok().map(truncated))
}

#[expect(clippy::cast_possible_truncation, reason = "that is what it is for; what is too large becomes the largest")]
fn truncated<'v>(number: f64) -> Value<'v> {
    Value::Int(number as i128)
}

fn round<'v>(value: &Value<'v>, given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let precision = given.int("precision")?.unwrap_or(0).clamp(-300, 300);
    let method = given.take("method");
    let Some(number) = operators::float(value) else {
        return Err(Fault::new(format!("{} is no number", value.kind())));
    };
    if matches!(value, Value::Int(_)) && precision >= 0 {
        return Ok(value.clone());
    }
    let factor = 10_f64.powi(i32::try_from(precision).unwrap_or(0));
    let scaled = number * factor;
    let rounded = match method.as_ref().and_then(Value::as_str) {
        Some("ceil") => scaled.ceil(),
        Some("floor") => scaled.floor(),
        None | Some("common") => scaled.round(),
        Some(other) => return Err(Fault::new(format!("there is no rounding {other:?}; use common, ceil or floor"))),
    };
    let result = rounded / factor;
    let result = if result.is_finite() { result } else { number };
    Ok(if matches!(value, Value::Int(_)) { truncated(result) } else { Value::Float(result) })
}
