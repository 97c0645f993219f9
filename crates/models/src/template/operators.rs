//! What operators make of values.

use super::fault::{Fault, Outcome};
use super::meter::{Meter, Writer};
use super::show;
use super::tree::{Comparison, Operator};
use super::value::{List, Text, Value};
use std::cmp::Ordering;
use std::rc::Rc;

pub(super) fn calculate<'v>(
    meter: &Rc<Meter>,
    operator: Operator,
    left: &Value<'v>,
    right: &Value<'v>,
) -> Outcome<Value<'v>> {
    match (operator, left, right) {
        (Operator::Join, ..) => joined(meter, left, right),
        (Operator::Add, Value::Text(_), Value::Text(_)) => joined(meter, left, right),
        (Operator::Add, Value::List(first), Value::List(second)) => {
            let length = first.items.len() + second.items.len();
            let _room = meter.hold(length * size_of::<Value<'_>>())?;
            Value::list(meter, first.items.iter().chain(&second.items).cloned().collect())
        }
        (Operator::Multiply, Value::Text(text), times) | (Operator::Multiply, times, Value::Text(text)) => {
            let mut writer = Writer::new(meter);
            writer.push_times(text.as_str(), count(times)?)?;
            Ok(writer.into())
        }
        (Operator::Multiply, Value::List(list), times) | (Operator::Multiply, times, Value::List(list)) => {
            repeated(meter, list, count(times)?)
        }
        _ => numbers(operator, left, right),
    }
}

fn joined<'v>(meter: &Rc<Meter>, left: &Value<'v>, right: &Value<'v>) -> Outcome<Value<'v>> {
    let mut writer = Writer::new(meter);
    show::write(&mut writer, left)?;
    show::write(&mut writer, right)?;
    Ok(writer.into())
}

fn repeated<'v>(meter: &Rc<Meter>, list: &Rc<List<'v>>, times: usize) -> Outcome<Value<'v>> {
    let bytes = list.items.len().saturating_mul(times).saturating_mul(size_of::<Value<'_>>());
    let _room = meter.hold(bytes)?;
    let rounds = if list.items.is_empty() { 0 } else { times };
    Value::list(meter, (0..rounds).flat_map(|_| list.items.iter().cloned()).collect())
}

fn count(times: &Value<'_>) -> Outcome<usize> {
    match times {
        Value::Int(times) => Ok(usize::try_from((*times).max(0)).unwrap_or(usize::MAX)),
        other => {
            Err(Fault::new(format!("texts and lists are multiplied with whole numbers, not with {}", other.kind())))
        }
    }
}

fn numbers<'v>(operator: Operator, left: &Value<'v>, right: &Value<'v>) -> Outcome<Value<'v>> {
    let cannot = || Fault::new(format!("{} and {} cannot be calculated with", left.kind(), right.kind()));
    let overflow = || Fault::new("a number becomes too large");
    let by_zero = || Fault::new("a division by zero");
    let (Some(a), Some(b)) = (float(left), float(right)) else { return Err(cannot()) };
    let ints = int(left).zip(int(right));
    let value = match (operator, ints) {
        (Operator::Add, Some((a, b))) => Value::Int(a.checked_add(b).ok_or_else(overflow)?),
        (Operator::Subtract, Some((a, b))) => Value::Int(a.checked_sub(b).ok_or_else(overflow)?),
        (Operator::Multiply, Some((a, b))) => Value::Int(a.checked_mul(b).ok_or_else(overflow)?),
        (Operator::FloorDivide | Operator::Remainder, Some((_, 0))) => return Err(by_zero()),
        (Operator::FloorDivide, Some((a, b))) => {
            let quotient = a.checked_div(b).ok_or_else(overflow)?;
            Value::Int(if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient })
        }
        (Operator::Remainder, Some((a, b))) => {
            let rest = a.checked_rem(b).unwrap_or(0);
            Value::Int(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        }
        (Operator::Power, Some((a, b))) if b >= 0 => {
            let power = u32::try_from(b).ok().and_then(|b| a.checked_pow(b));
            Value::Int(power.ok_or_else(overflow)?)
        }
        (Operator::Add, None) => Value::Float(a + b),
        (Operator::Subtract, None) => Value::Float(a - b),
        (Operator::Multiply, None) => Value::Float(a * b),
        (Operator::Divide | Operator::FloorDivide | Operator::Remainder, _) if b == 0.0 => return Err(by_zero()),
        (Operator::Divide, _) => Value::Float(a / b),
        (Operator::FloorDivide, None) => Value::Float((a / b).floor()),
        (Operator::Remainder, None) => Value::Float(a - b * (a / b).floor()),
        (Operator::Power, _) => Value::Float(a.powf(b)),
        (Operator::Join, _) => return Err(cannot()),
    };
    Ok(value)
}

pub(super) fn negative<'v>(value: &Value<'v>) -> Outcome<Value<'v>> {
    match value {
        Value::Int(number) => {
            number.checked_neg().map(Value::Int).ok_or_else(|| Fault::new("a number becomes too large"))
        }
        Value::Float(number) => Ok(Value::Float(-number)),
        other => Err(Fault::new(format!("{} has no negative", other.kind()))),
    }
}

fn int(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Bool(value) => Some(i128::from(*value)),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers beyond what a float holds exactly are compared roughly")]
pub(super) fn float(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Float(number) => Some(*number),
        other => int(other).map(|number| number as f64),
    }
}

pub(super) fn compare<'v>(
    meter: &Rc<Meter>,
    comparison: Comparison,
    left: &Value<'v>,
    right: &Value<'v>,
) -> Outcome<bool> {
    if matches!(comparison, Comparison::In | Comparison::NotIn) {
        return Ok(contains(meter, right, left)? == (comparison == Comparison::In));
    }
    meter.bytes(left.weight().min(right.weight()))?;
    Ok(match comparison {
        Comparison::Equal => is_equal(left, right),
        Comparison::Unequal => !is_equal(left, right),
        Comparison::Less => order(left, right) == Ordering::Less,
        Comparison::LessOrEqual => order(left, right) != Ordering::Greater,
        Comparison::Greater => order(left, right) == Ordering::Greater,
        Comparison::GreaterOrEqual => order(left, right) != Ordering::Less,
        Comparison::In | Comparison::NotIn => false,
    })
}

pub(super) fn contains<'v>(meter: &Rc<Meter>, whole: &Value<'v>, part: &Value<'v>) -> Outcome<bool> {
    meter.bytes(whole.weight())?;
    match whole {
        Value::Undefined | Value::None => Ok(false),
        Value::Text(text) => {
            let part = show::text(meter, part)?;
            // Searching takes longer than copying.
            meter.bytes(4 * text.as_str().len())?;
            Ok(part.as_str().is_some_and(|part| text.as_str().contains(part)))
        }
        Value::List(list) => Ok(list.items.iter().any(|item| is_equal(item, part))),
        Value::Map(dict) => Ok(part.as_str().is_some_and(|name| dict.get(name).is_some())),
        other => Err(Fault::new(format!("nothing can be in {}", other.kind()))),
    }
}

pub(super) fn is_equal<'v>(left: &Value<'v>, right: &Value<'v>) -> bool {
    match (left, right) {
        (Value::Undefined, Value::Undefined) | (Value::None, Value::None) => true,
        (Value::Text(a), Value::Text(b)) => a.as_str() == b.as_str(),
        (Value::List(a), Value::List(b)) => {
            a.items.len() == b.items.len() && a.items.iter().zip(&b.items).all(|(a, b)| is_equal(a, b))
        }
        (Value::Map(a), Value::Map(b)) => {
            let same =
                |(key, value): &(Text<'v>, Value<'v>)| b.get(key.as_str()).is_some_and(|other| is_equal(value, other));
            a.entries.len() == b.entries.len() && a.entries.iter().all(same)
        }
        (Value::Space(a), Value::Space(b)) => Rc::ptr_eq(a, b),
        _ => match (int(left).zip(int(right)), float(left).zip(float(right))) {
            (Some((a, b)), _) => a == b,
            (None, Some((a, b))) => a.partial_cmp(&b) == Some(Ordering::Equal),
            (None, None) => false,
        },
    }
}

/// An order of all values: by kind, then by what they are.
pub(super) fn order(left: &Value<'_>, right: &Value<'_>) -> Ordering {
    match (left, right) {
        (Value::Text(a), Value::Text(b)) => a.as_str().cmp(b.as_str()),
        (Value::List(a), Value::List(b)) => {
            let first = a.items.iter().zip(&b.items).map(|(a, b)| order(a, b)).find(|order| order.is_ne());
            first.unwrap_or_else(|| a.items.len().cmp(&b.items.len()))
        }
        (Value::Map(a), Value::Map(b)) => {
            let entries = a.entries.iter().zip(&b.entries);
            let first = entries.map(|((a, x), (b, y))| a.as_str().cmp(b.as_str()).then_with(|| order(x, y)));
            first.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.entries.len().cmp(&b.entries.len()))
        }
        _ => match (int(left).zip(int(right)), float(left).zip(float(right))) {
            (Some((a, b)), _) => a.cmp(&b),
            (None, Some((a, b))) => a.total_cmp(&b),
            (None, None) => rank(left).cmp(&rank(right)),
        },
    }
}

fn rank(value: &Value<'_>) -> u8 {
    match value {
        Value::Undefined => 0,
        Value::None => 1,
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => 2,
        Value::Text(_) => 3,
        Value::List(_) => 4,
        Value::Map(_) => 5,
        Value::Space(_) | Value::Loop(_) | Value::Macro(_) | Value::Function(_) => 6,
    }
}

/// `value[from:to:step]`, as Python counts.
pub(super) fn slice<'v>(meter: &Rc<Meter>, value: &Value<'v>, parts: [Option<i128>; 3]) -> Outcome<Value<'v>> {
    let [from, to, step] = parts;
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(Fault::new("a slice needs a step other than 0"));
    }
    meter.bytes(value.weight())?;
    match value {
        Value::Undefined | Value::None => Value::list(meter, Vec::new()),
        Value::List(list) => {
            let places = places(from, to, step, list.items.len());
            let _room = meter.hold(list.items.len() * size_of::<Value<'_>>())?;
            Value::list(meter, places.filter_map(|place| list.items.get(place).cloned()).collect())
        }
        Value::Text(text) if step == 1 => {
            let whole = text.as_str();
            let mut inside = places(from, to, step, whole.chars().count());
            let Some(first) = inside.next() else { return Ok(Value::lent("")) };
            let end = first + 1 + inside.count();
            let place = |count: usize| whole.char_indices().nth(count).map_or(whole.len(), |(place, _)| place);
            Ok(Value::Text(text.part(place(first), place(end))))
        }
        Value::Text(text) => {
            let _room = meter.hold(8 * text.as_str().len())?;
            let chars: Vec<char> = text.as_str().chars().collect();
            let part: String = places(from, to, step, chars.len()).filter_map(|place| chars.get(place)).collect();
            Value::text(meter, &part)
        }
        other => Err(Fault::new(format!("{} has no slices", other.kind()))),
    }
}

fn places(from: Option<i128>, to: Option<i128>, step: i128, length: usize) -> impl Iterator<Item = usize> {
    let length = i128::try_from(length).unwrap_or(i128::MAX);
    let (least, most) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let held = |place: i128| (if place < 0 { place.saturating_add(length) } else { place }).clamp(least, most);
    let from = from.map_or(if step > 0 { 0 } else { length - 1 }, held);
    let to = to.map_or(if step > 0 { length } else { -1 }, held);
    let is_inside = move |place: &i128| if step > 0 { *place < to } else { *place > to };
    std::iter::successors(Some(from), move |place| place.checked_add(step))
        .take_while(is_inside)
        .filter_map(|place| usize::try_from(place).ok())
}
