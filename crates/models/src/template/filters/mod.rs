//! Filters: `x | upper`. All of them are here and in the files beside; each pays for what it makes before it makes it.

mod format;
mod given;
mod lists;
mod numbers;
mod texts;

use super::fault::{Fault, Outcome};
use super::operators;
use super::render::Rendering;
use super::show;
use super::value::{Dict, Value};
pub(super) use given::Given;
use std::rc::Rc;

/// All filters by name.
pub(super) const NAMES: [&str; 48] = [
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "chain",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
    "zip",
];

/// What a filter makes of a value.
pub(super) fn apply<'v>(
    rendering: &mut Rendering<'v>,
    name: &str,
    value: Value<'v>,
    mut given: Given<'v>,
) -> Outcome<Value<'v>> {
    let meter = Rc::clone(&rendering.meter);
    meter.bytes(value.weight())?;
    let result = match name {
        "safe" | "string" => show::text(&meter, &value),
        "tojson" => show::json(&meter, &value),
        "pprint" => show::pretty(&meter, &value),
        "bool" => Ok(Value::Bool(value.is_true())),
        "length" | "count" => length(&value),
        "default" | "d" => Ok(default(value, &mut given)),
        "attr" => {
            let key = given.needed("name", name)?;
            Ok(value.item(&key))
        }
        "abs" | "round" | "int" | "float" => numbers::apply(name, &value, &mut given),
        "format" => format::apply(&meter, &value, &mut given),
        "lower" | "upper" | "title" | "capitalize" | "trim" | "escape" | "e" | "replace" | "indent" | "split"
        | "lines" => texts::apply(&meter, name, &value, &mut given),
        "map" => map(rendering, &value, given.take_all()),
        "select" | "reject" | "selectattr" | "rejectattr" => chosen(rendering, name, &value, given.take_all()),
        "chain" => chain(rendering, value, given.take_all()),
        _ if NAMES.contains(&name) => lists::apply(rendering, name, &value, &mut given),
        _ => Err(Fault::new(format!("unknown filter: there is no {name}"))),
    }?;
    given.finish(name)?;
    Ok(result)
}

fn length<'v>(value: &Value<'v>) -> Outcome<Value<'v>> {
    let length = match value {
        Value::Text(text) => text.as_str().chars().count(),
        Value::List(list) => list.items.len(),
        Value::Map(dict) => dict.entries.len(),
        Value::Undefined | Value::None => 0,
        other => return Err(Fault::new(format!("{} has no length", other.kind()))),
    };
    Ok(Value::Int(i128::try_from(length).unwrap_or(i128::MAX)))
}

fn default<'v>(value: Value<'v>, given: &mut Given<'v>) -> Value<'v> {
    let other = given.take("default_value").unwrap_or(Value::lent(""));
    let counts_empty = given.flag("boolean");
    let is_missing = matches!(value, Value::Undefined) || (counts_empty && !value.is_true());
    if is_missing { other } else { value }
}

/// A member of each, or what a filter makes of each.
fn map<'v>(rendering: &mut Rendering<'v>, value: &Value<'v>, mut given: Given<'v>) -> Outcome<Value<'v>> {
    let items = rendering.items(value)?;
    let mut made = Vec::new();
    if let Some(member) = given.take_named("attribute") {
        let default = given.take_named("default").unwrap_or(Value::Undefined);
        given.finish("map")?;
        for item in &items.items {
            rendering.meter.steps(1)?;
            let found = member.as_str().map_or_else(|| item.item(&member), |path| item.path(path));
            made.push(if matches!(found, Value::Undefined) { default.clone() } else { found });
        }
    } else {
        let filter = given.needed("filter", "map")?;
        let filter = filter.as_str().ok_or_else(|| Fault::new("map takes the name of a filter"))?;
        let meter = Rc::clone(&rendering.meter);
        for item in &items.items {
            made.push(meter.deeper(|| apply(rendering, filter, item.clone(), given.clone()))?);
        }
    }
    Value::list(&rendering.meter, made)
}

/// Those for which a test holds, or does not.
fn chosen<'v>(
    rendering: &mut Rendering<'v>,
    name: &str,
    value: &Value<'v>,
    mut given: Given<'v>,
) -> Outcome<Value<'v>> {
    let items = rendering.items(value)?;
    let member = if name.ends_with("attr") { Some(given.needed("attribute", name)?) } else { None };
    let test = given.take("test");
    let wanted = name.starts_with("select");
    let mut kept = Vec::new();
    for item in &items.items {
        rendering.meter.steps(1)?;
        let tested = member.as_ref().and_then(Value::as_str).map_or_else(|| item.clone(), |path| item.path(path));
        let holds = match test.as_ref().map(Value::as_str) {
            None => tested.is_true(),
            Some(Some(test)) => super::checks::holds(rendering, test, &tested, given.clone())?,
            Some(None) => return Err(Fault::new(format!("{name} takes the name of a test"))),
        };
        if holds == wanted {
            kept.push(item.clone());
        }
    }
    Value::list(&rendering.meter, kept)
}

fn chain<'v>(rendering: &mut Rendering<'v>, value: Value<'v>, given: Given<'v>) -> Outcome<Value<'v>> {
    let (others, _) = given.into_parts();
    let all = || std::iter::once(&value).chain(&others);
    if all().all(|value| matches!(value, Value::Map(_))) {
        let mut entries = Vec::new();
        for value in all() {
            let Value::Map(dict) = value else { continue };
            entries.extend(dict.entries.iter().cloned());
        }
        return Ok(Value::Map(Dict::new(&rendering.meter, entries)?));
    }
    let mut chained = Value::list(&rendering.meter, Vec::new())?;
    for value in all() {
        let items = Value::List(rendering.items(value)?);
        chained = operators::calculate(&rendering.meter, super::tree::Operator::Add, &chained, &items)?;
    }
    Ok(chained)
}
