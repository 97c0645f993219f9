//! Tests: `x is defined`, `x is divisibleby 3`.

use super::fault::{Fault, Outcome};
use super::filters::{self, Given};
use super::operators;
use super::render::Rendering;
use super::show;
use super::tree::Comparison;
use super::value::Value;

/// All tests by name.
pub(super) const NAMES: [&str; 42] = [
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "safe",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

pub(super) fn holds<'v>(
    rendering: &mut Rendering<'v>,
    name: &str,
    value: &Value<'v>,
    mut given: Given<'v>,
) -> Outcome<bool> {
    let meter = std::rc::Rc::clone(&rendering.meter);
    let result = match name {
        "undefined" => matches!(value, Value::Undefined),
        "defined" => !matches!(value, Value::Undefined),
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "number" => matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_)),
        "integer" | "int" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "string" => matches!(value, Value::Text(_)),
        "sequence" => matches!(value, Value::List(_) | Value::Undefined),
        "iterable" => {
            matches!(value, Value::List(_) | Value::Map(_) | Value::Text(_) | Value::Undefined | Value::None)
        }
        "mapping" => matches!(value, Value::Map(_)),
        // Nothing is escaped in a prompt.
        "safe" | "escaped" => false,
        "odd" => matches!(value, Value::Int(number) if number % 2 != 0),
        "even" => matches!(value, Value::Int(number) if number % 2 == 0),
        "divisibleby" => match (value, given.needed("number", name)?) {
            (Value::Int(number), Value::Int(by)) => number.checked_rem(by).is_some_and(|rest| rest == 0),
            _ => false,
        },
        "lower" | "upper" => {
            let text = value.as_str().unwrap_or_default();
            meter.bytes(4 * text.len())?;
            let is_wrong = |c: char| if name == "lower" { c.is_uppercase() } else { c.is_lowercase() };
            !text.contains(is_wrong) && text.chars().any(|c| c.is_lowercase() || c.is_uppercase())
        }
        "startingwith" | "endingwith" => {
            let (text, part) = (show::text(&meter, value)?, show::text(&meter, &given.needed("text", name)?)?);
            let (text, part) = (text.as_str().unwrap_or_default(), part.as_str().unwrap_or_default());
            if name == "startingwith" { text.starts_with(part) } else { text.ends_with(part) }
        }
        "filter" => value.as_str().is_some_and(|name| filters::NAMES.contains(&name)),
        "test" => value.as_str().is_some_and(|name| NAMES.contains(&name)),
        _ => {
            let Some(comparison) = comparison(name) else {
                return Err(Fault::new(format!("unknown test: there is no {name}")));
            };
            let other = given.needed("other", name)?;
            // What holds nothing contains nothing.
            operators::compare(&meter, comparison, value, &other).or_else(|fault| match fault {
                Fault::Wrong { .. } => Ok(false),
                Fault::TooLong { .. } | Fault::TooMuchWork | Fault::TooLarge { .. } => Err(fault),
            })?
        }
    };
    given.finish(name)?;
    Ok(result)
}

fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        "eq" | "equalto" | "==" | "sameas" => Comparison::Equal,
        "ne" | "!=" => Comparison::Unequal,
        "lt" | "lessthan" | "<" => Comparison::Less,
        "le" | "<=" => Comparison::LessOrEqual,
        "gt" | "greaterthan" | ">" => Comparison::Greater,
        "ge" | ">=" => Comparison::GreaterOrEqual,
        "in" => Comparison::In,
        _ => return None,
    })
}
