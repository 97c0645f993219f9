//! `where`: conditions by field, each an object of comparisons.

use super::selection::{field_named, no_field, type_name, written_name};
use crate::ports::{Condition, Test};
use serde_json::{Number, Value};
use trellis_domain::table::{FieldKind, TableField, TableSchema};

/// Values of an `in`.
const MOST_VALUES: usize = 1_000;

pub(super) fn conditions(schema: &TableSchema, filter: &Value) -> Result<Vec<Condition>, String> {
    let Value::Object(fields) = filter else {
        return Err(format!("`where` is no {}; write {{field: {{eq: …}}}}", type_name(schema, "Filter")));
    };
    let mut conditions = Vec::new();
    for (name, comparisons) in fields {
        let field = field_named(schema, name).ok_or_else(|| no_field(schema, name))?;
        let comparisons = match comparisons {
            Value::Null => continue,
            Value::Object(comparisons) => comparisons,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(format!("`{name}` is compared with nothing; write {name}: {{eq: …}}"));
            }
        };
        for (comparison, value) in comparisons {
            // What was not given is not asked for.
            if !value.is_null() {
                let test = test(field, comparison, value)?;
                conditions.push(Condition { field: field.name.clone(), test });
            }
        }
    }
    Ok(conditions)
}

fn test(field: &TableField, comparison: &str, value: &Value) -> Result<Test, String> {
    let one = || read(field, value);
    let several = || match value {
        Value::Array(values) if values.len() > MOST_VALUES => {
            Err(format!("`{}` has {} values; give at most {MOST_VALUES}", field.name, values.len()))
        }
        Value::Array(values) => {
            values.iter().filter(|value| !value.is_null()).map(|value| read(field, value)).collect()
        }
        // One value may stand for a list of one.
        one @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => {
            read(field, one).map(|value| vec![value])
        }
    };
    let text = || one().map(|value| value.as_str().unwrap_or_default().to_owned());
    let (is_text, is_ordered) = (field.kind.is_text(), field.kind != FieldKind::Boolean);
    match comparison {
        "eq" => one().map(Test::Is),
        "not" => one().map(Test::IsNot),
        "in" => several().map(Test::In),
        "not_in" => several().map(Test::NotIn),
        "gt" if is_ordered => one().map(Test::Above),
        "gte" if is_ordered => one().map(Test::AtLeast),
        "lt" if is_ordered => one().map(Test::Below),
        "lte" if is_ordered => one().map(Test::AtMost),
        "contains" if is_text => text().map(Test::Contains),
        "startsWith" if is_text => text().map(Test::StartsWith),
        "endsWith" if is_text => text().map(Test::EndsWith),
        other => {
            let known = known(field.kind);
            let name = written_name(&field.name);
            Err(format!("`{name}` ({}) cannot be compared by `{other}`; use {known}", field.kind))
        }
    }
}

fn known(kind: FieldKind) -> &'static str {
    if kind.is_text() {
        "eq, not, in, not_in, contains, startsWith, endsWith, gt, gte, lt, lte"
    } else if kind == FieldKind::Boolean {
        "eq, not"
    } else {
        "eq, not, in, not_in, gt, gte, lt, lte"
    }
}

/// A value of the field's kind. Variables may come as texts.
fn read(field: &TableField, value: &Value) -> Result<Value, String> {
    let is_no = |what: &str| format!("{value:.100} is no {what}, as `{}` is", written_name(&field.name));
    match field.kind {
        FieldKind::Integer => {
            let whole = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15);
            #[allow(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
            let number =
                value.as_i64().or_else(|| value.as_str()?.trim().parse().ok()).or(whole.map(|whole| whole as i64));
            number.map(Value::from).ok_or_else(|| is_no("integer"))
        }
        FieldKind::Float => {
            let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).and_then(Number::from_f64);
            number.map(Value::Number).ok_or_else(|| is_no("number"))
        }
        FieldKind::Boolean => match value {
            Value::Bool(_) => Ok(value.clone()),
            Value::String(text) if text == "true" || text == "false" => Ok(Value::Bool(text == "true")),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Err(is_no("truth value"))
            }
        },
        FieldKind::String | FieldKind::Timestamp | FieldKind::Date | FieldKind::Time | FieldKind::Uuid => {
            value.as_str().map(Value::from).ok_or_else(|| is_no("text"))
        }
    }
}
