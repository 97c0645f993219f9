//! Filters of lists and maps.

use super::Given;
use crate::template::fault::{Fault, Outcome};
use crate::template::meter::{Meter, Writer};
use crate::template::operators;
use crate::template::render::Rendering;
use crate::template::show;
use crate::template::tree::Operator;
use crate::template::value::Value;
use std::cmp::Ordering;
use std::rc::Rc;

pub(super) fn apply<'v>(
    rendering: &mut Rendering<'v>,
    name: &str,
    value: &Value<'v>,
    given: &mut Given<'v>,
) -> Outcome<Value<'v>> {
    let meter = Rc::clone(&rendering.meter);
    if let ("reverse", Value::Text(text)) = (name, value) {
        let mut writer = Writer::new(&meter);
        text.as_str().chars().rev().try_for_each(|c| writer.push(c.encode_utf8(&mut [0; 4])))?;
        return Ok(writer.into());
    }
    if let "items" | "dictsort" = name {
        return pairs(&meter, name, value, given);
    }
    if name == "zip" {
        return zip(rendering, value, given);
    }
    let items = rendering.items(value)?;
    match name {
        "list" => Ok(Value::List(items)),
        "first" => Ok(items.items.first().cloned().unwrap_or(Value::Undefined)),
        "last" => Ok(items.items.last().cloned().unwrap_or(Value::Undefined)),
        "reverse" => Value::list(&meter, items.items.iter().rev().cloned().collect()),
        "join" => join(&meter, &items.items, given),
        "min" | "max" | "sort" | "unique" | "groupby" => {
            let sorting = Sorting::of(name, given)?;
            sorting.apply(&meter, name, &items.items)
        }
        "sum" => sum(&meter, &items.items, given),
        "batch" => batch(&meter, &items.items, given),
        _ => slices(&meter, &items.items, given),
    }
}

fn join<'v>(meter: &Rc<Meter>, items: &[Value<'v>], given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let between = given.take("d").map(|between| show::text(meter, &between)).transpose()?;
    let between = between.as_ref().and_then(Value::as_str).unwrap_or_default();
    let member = given.take("attribute");
    let mut writer = Writer::new(meter);
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            writer.push(between)?;
        }
        match member.as_ref().and_then(Value::as_str) {
            Some(path) => show::write(&mut writer, &item.path(path))?,
            None => show::write(&mut writer, item)?,
        }
    }
    Ok(writer.into())
}

/// Names and values, as they come or in their order.
fn pairs<'v>(meter: &Rc<Meter>, name: &str, value: &Value<'v>, given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let Value::Map(dict) = value else { return Err(Fault::new(format!("{} has no pairs", value.kind()))) };
    let pair = |(key, value): &(_, Value<'v>)| Value::list(meter, vec![Value::Text(Clone::clone(key)), value.clone()]);
    let pairs: Outcome<Vec<_>> = dict.entries.iter().map(pair).collect();
    let pairs = pairs?;
    if name == "items" {
        return Value::list(meter, pairs);
    }
    let case_sensitive = given.flag("case_sensitive");
    let by = given.take("by");
    let by = if by.as_ref().and_then(Value::as_str) == Some("value") { "1" } else { "0" };
    let reverse = given.flag("reverse");
    Sorting { member: Some(by.to_owned()), default: Value::Undefined, case_sensitive, reverse }
        .sorted(meter, &pairs)
        .and_then(|pairs| Value::list(meter, pairs))
}

fn zip<'v>(rendering: &mut Rendering<'v>, value: &Value<'v>, given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let (others, _) = given.take_all().into_parts();
    let lists: Outcome<Vec<_>> = std::iter::once(value).chain(&others).map(|list| rendering.items(list)).collect();
    let lists = lists?;
    let length = lists.iter().map(|list| list.items.len()).min().unwrap_or(0);
    let row = |place: usize| {
        let row = lists.iter().filter_map(|list| list.items.get(place).cloned()).collect();
        Value::list(&rendering.meter, row)
    };
    let rows: Outcome<Vec<_>> = (0..length).map(row).collect();
    Value::list(&rendering.meter, rows?)
}

fn sum<'v>(meter: &Rc<Meter>, items: &[Value<'v>], given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let member = given.take("attribute");
    let mut total = given.take("start").unwrap_or(Value::Int(0));
    for item in items {
        let value = member.as_ref().and_then(Value::as_str).map_or_else(|| item.clone(), |path| item.path(path));
        if !matches!(value, Value::Undefined) {
            total = operators::calculate(meter, Operator::Add, &total, &value)?;
        }
    }
    Ok(total)
}

/// Rows of so many items; the last is filled up if there is something to fill it with.
fn batch<'v>(meter: &Rc<Meter>, items: &[Value<'v>], given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let count = size(given, "batch")?;
    let filler = given.take("fill_with");
    let mut rows = Vec::new();
    for row in items.chunks(count) {
        let missing = filler.as_ref().map_or(0, |_| count - row.len());
        let _room = meter.hold(missing.saturating_mul(size_of::<Value<'_>>()))?;
        let whole = row.iter().cloned().chain(filler.iter().cycle().take(missing).cloned());
        rows.push(Value::list(meter, whole.collect())?);
    }
    Value::list(meter, rows)
}

/// So many columns of about the same length.
fn slices<'v>(meter: &Rc<Meter>, items: &[Value<'v>], given: &mut Given<'v>) -> Outcome<Value<'v>> {
    let count = size(given, "slice")?;
    let filler = given.take("fill_with");
    let _room = meter.hold(count.saturating_mul(size_of::<Value<'_>>()))?;
    let (usual, longer) = (items.len() / count, items.len() % count);
    let mut columns = Vec::new();
    let mut from = 0;
    for column in 0..count {
        let to = from + usual + usize::from(column < longer);
        let fills = filler.iter().filter(|_| longer > 0 && column >= longer);
        let column = items[from..to].iter().chain(fills).cloned().collect();
        columns.push(Value::list(meter, column)?);
        from = to;
    }
    Value::list(meter, columns)
}

fn size(given: &mut Given<'_>, filter: &str) -> Outcome<usize> {
    let count = given.int("count")?.unwrap_or(0);
    usize::try_from(count)
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| Fault::new(format!("{filter} needs a count above 0")))
}

/// How items are compared.
struct Sorting<'v> {
    member: Option<String>,
    default: Value<'v>,
    case_sensitive: bool,
    reverse: bool,
}

impl<'v> Sorting<'v> {
    fn of(filter: &str, given: &mut Given<'v>) -> Outcome<Self> {
        let member = |value: Option<Value<'v>>| match value {
            None | Some(Value::Undefined | Value::None) => Ok(None),
            Some(Value::Text(path)) => Ok(Some(path.as_str().to_owned())),
            Some(Value::Int(place)) => Ok(Some(place.to_string())),
            Some(other) => Err(Fault::new(format!("attribute is a name, not {}", other.kind()))),
        };
        let sorts = filter == "sort";
        let reverse = sorts && given.flag("reverse");
        let case_sensitive = if sorts { given.flag("case_sensitive") } else { false };
        let member = member(if filter == "groupby" { given.take("attribute") } else { given.take_named("attribute") })?;
        let default = given.take_named("default").unwrap_or(Value::Undefined);
        let case_sensitive = case_sensitive || given.take_named("case_sensitive").is_some_and(|value| value.is_true());
        // Jinja compares these as they are.
        let case_sensitive = case_sensitive || matches!(filter, "min" | "max");
        Ok(Self { member, default, case_sensitive, reverse })
    }

    fn apply(&self, meter: &Rc<Meter>, filter: &str, items: &[Value<'v>]) -> Outcome<Value<'v>> {
        match filter {
            "sort" => Value::list(meter, self.sorted(meter, items)?),
            "min" => Ok(self.sorted(meter, items)?.into_iter().next().unwrap_or(Value::Undefined)),
            "max" => Ok(self.sorted(meter, items)?.into_iter().next_back().unwrap_or(Value::Undefined)),
            "unique" => self.unique(meter, items),
            _ => self.grouped(meter, items),
        }
    }

    fn key(&self, meter: &Rc<Meter>, item: &Value<'v>) -> Outcome<Value<'v>> {
        let key = match &self.member {
            None => item.clone(),
            Some(path) => match item.path(path) {
                Value::Undefined => self.default.clone(),
                found => found,
            },
        };
        match &key {
            Value::Text(text) if !self.case_sensitive => {
                let mut lower = Writer::new(meter);
                text.as_str().chars().try_for_each(|c| lower.show(c.to_lowercase()))?;
                Ok(lower.into())
            }
            _ => Ok(key),
        }
    }

    /// Places of the items in their order; equal ones stay as they were.
    fn order(&self, meter: &Rc<Meter>, items: &[Value<'v>]) -> Outcome<(Vec<usize>, Vec<Value<'v>>)> {
        let keys: Outcome<Vec<_>> = items.iter().map(|item| self.key(meter, item)).collect();
        let keys = keys?;
        let places = sorted((0..items.len()).collect(), |a, b| {
            let (a, b) = (&keys[a], &keys[b]);
            meter.bytes(a.weight().min(b.weight()))?;
            let order = operators::order(a, b);
            Ok(if self.reverse { order.reverse() } else { order })
        })?;
        Ok((places, keys))
    }

    fn sorted(&self, meter: &Rc<Meter>, items: &[Value<'v>]) -> Outcome<Vec<Value<'v>>> {
        let (places, _) = self.order(meter, items)?;
        Ok(places.into_iter().map(|place| items[place].clone()).collect())
    }

    fn unique(&self, meter: &Rc<Meter>, items: &[Value<'v>]) -> Outcome<Value<'v>> {
        let (places, keys) = self.order(meter, items)?;
        let mut firsts: Vec<usize> = Vec::new();
        let mut last: Option<&Value<'v>> = None;
        for place in places {
            if !last.is_some_and(|last| operators::order(last, &keys[place]).is_eq()) {
                firsts.push(place);
            }
            last = Some(&keys[place]);
        }
        firsts.sort_unstable();
        Value::list(meter, firsts.into_iter().map(|place| items[place].clone()).collect())
    }

    fn grouped(&self, meter: &Rc<Meter>, items: &[Value<'v>]) -> Outcome<Value<'v>> {
        let (places, keys) = self.order(meter, items)?;
        let mut groups = Vec::new();
        for group in places.chunk_by(|a, b| operators::order(&keys[*a], &keys[*b]).is_eq()) {
            let Some(first) = group.first() else { continue };
            let named = self.member.as_ref().map_or(Value::Undefined, |path| items[*first].path(path));
            let named = if matches!(named, Value::Undefined) { self.default.clone() } else { named };
            let members = Value::list(meter, group.iter().map(|place| items[*place].clone()).collect())?;
            groups.push(Value::list(meter, vec![named, members])?);
        }
        Value::list(meter, groups)
    }
}

/// Merges from small to large. Unlike the library's sort it can be stopped, and it does not mind values whose order is
/// not quite one, such as numbers too large for a float among floats.
fn sorted(mut places: Vec<usize>, mut compare: impl FnMut(usize, usize) -> Outcome<Ordering>) -> Outcome<Vec<usize>> {
    let mut width = 1;
    while width < places.len() {
        let mut merged = Vec::with_capacity(places.len());
        for pair in places.chunks(2 * width) {
            let (mut left, mut right) = pair.split_at(width.min(pair.len()));
            while let ([first, others @ ..], [second, rest @ ..]) = (left, right) {
                if compare(*first, *second)?.is_le() {
                    merged.push(*first);
                    left = others;
                } else {
                    merged.push(*second);
                    right = rest;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        places = merged;
        width *= 2;
    }
    Ok(places)
}
