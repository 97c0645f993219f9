//! The values of a rendering. Each knows how large it is, written out, so that work on it can be paid before it is done.

use super::fault::{Fault, Outcome};
use super::meter::{Held, MEMORY, Meter, Writer};
use super::tree::Macro;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// What any value takes.
const SMALL: usize = 48;
/// Lists within lists; what is read or dropped calls itself for each of them.
const DEPTH: usize = 130;

#[derive(Debug, Clone)]
pub(super) enum Value<'v> {
    Undefined,
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Text<'v>),
    List(Rc<List<'v>>),
    Map(Rc<Dict<'v>>),
    /// What a template may write into: `namespace()`.
    Space(Rc<Space<'v>>),
    Loop(Rc<Loop<'v>>),
    Macro(&'v Macro),
    Function(Function),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Range,
    Dict,
    Namespace,
}

/// A text, or a part of one; parts cost no copy.
#[derive(Debug, Clone)]
pub(super) enum Text<'v> {
    Lent(&'v str),
    Part { whole: Rc<Owned>, from: usize, to: usize },
}

#[derive(Debug)]
pub(super) struct Owned {
    text: String,
    _held: Held,
}

impl Text<'_> {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Lent(text) => text,
            Self::Part { whole, from, to } => &whole.text[*from..*to],
        }
    }

    /// A part of this text, given as a slice of [`Self::as_str`] by its place.
    pub(super) fn part(&self, start: usize, end: usize) -> Self {
        match self {
            Self::Lent(text) => Self::Lent(&text[start..end]),
            Self::Part { whole, from, .. } => {
                Self::Part { whole: Rc::clone(whole), from: from + start, to: from + end }
            }
        }
    }

    /// The same for a slice that was cut out of it.
    pub(super) fn cut(&self, slice: &str) -> Self {
        let start = slice.as_ptr().addr() - self.as_str().as_ptr().addr();
        self.part(start, start + slice.len())
    }
}

impl From<Writer> for Value<'_> {
    fn from(writer: Writer) -> Self {
        let (text, held) = writer.finish();
        let to = text.len();
        Self::Text(Text::Part { whole: Rc::new(Owned { text, _held: held }), from: 0, to })
    }
}

#[derive(Debug)]
pub(super) struct List<'v> {
    pub(super) items: Vec<Value<'v>>,
    weight: usize,
    depth: usize,
    _held: Held,
}

/// Entries in their order, and found by name.
#[derive(Debug)]
pub(super) struct Dict<'v> {
    pub(super) entries: Vec<(Text<'v>, Value<'v>)>,
    /// Places of the entries, by name.
    sorted: Vec<usize>,
    weight: usize,
    depth: usize,
    _held: Held,
}

#[derive(Debug, Default)]
pub(super) struct Space<'v> {
    pub(super) members: RefCell<HashMap<String, Value<'v>>>,
}

/// What `loop` says inside a loop.
#[derive(Debug)]
pub(super) struct Loop<'v> {
    pub(super) items: Rc<List<'v>>,
    pub(super) index: Cell<usize>,
}

impl<'v> List<'v> {
    pub(super) fn new(meter: &Rc<Meter>, items: Vec<Value<'v>>) -> Outcome<Rc<Self>> {
        let held = meter.hold(SMALL * (1 + items.len()))?;
        let (weight, depth) = measure(items.iter())?;
        Ok(Rc::new(Self { items, weight, depth, _held: held }))
    }
}

impl<'v> Dict<'v> {
    /// The last of entries with the same name counts, at the place of the first.
    pub(super) fn new(meter: &Rc<Meter>, given: Vec<(Text<'v>, Value<'v>)>) -> Outcome<Rc<Self>> {
        let held = meter.hold(3 * SMALL * (1 + given.len()))?;
        let mut entries: Vec<(Text<'v>, Value<'v>)> = Vec::with_capacity(given.len());
        let mut sorted: Vec<usize> = Vec::with_capacity(given.len());
        let mut keys = 0_usize;
        for (key, value) in given {
            meter.bytes(key.as_str().len())?;
            match sorted.binary_search_by(|place| entries[*place].0.as_str().cmp(key.as_str())) {
                Ok(found) => entries[sorted[found]].1 = value,
                Err(place) => {
                    meter.steps((sorted.len() - place) / 64)?;
                    keys += key.as_str().len();
                    sorted.insert(place, entries.len());
                    entries.push((key, value));
                }
            }
        }
        let (weight, depth) = measure(entries.iter().map(|(_, value)| value))?;
        Ok(Rc::new(Self { sorted, weight: weight + keys, depth, entries, _held: held }))
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value<'v>> {
        let found = self.sorted.binary_search_by(|place| self.entries[*place].0.as_str().cmp(name)).ok()?;
        self.entries.get(*self.sorted.get(found)?).map(|(_, value)| value)
    }
}

/// How much values inside another one weigh, and how deep they are nested. Only plain values can be inside others:
/// whatever could contain itself cannot.
fn measure<'a, 'v: 'a>(values: impl Iterator<Item = &'a Value<'v>>) -> Outcome<(usize, usize)> {
    let (mut weight, mut deepest) = (SMALL, 0);
    for value in values {
        let depth = match value {
            Value::Undefined | Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) => 0,
            Value::List(list) => list.depth,
            Value::Map(dict) => dict.depth,
            Value::Space(_) | Value::Loop(_) | Value::Macro(_) | Value::Function(_) => {
                return Err(Fault::new(format!("{} cannot be kept inside another value", value.kind())));
            }
        };
        weight += value.weight();
        deepest = deepest.max(depth);
    }
    if weight > MEMORY {
        return Err(Fault::TooLarge { bytes: MEMORY });
    }
    if deepest >= DEPTH {
        return Err(Fault::new(format!("a value is nested more than {DEPTH} levels deep")));
    }
    Ok((weight, deepest + 1))
}

impl<'v> Value<'v> {
    pub(super) fn list(meter: &Rc<Meter>, items: Vec<Value<'v>>) -> Outcome<Self> {
        Ok(Self::List(List::new(meter, items)?))
    }

    pub(super) fn lent(text: &'v str) -> Self {
        Self::Text(Text::Lent(text))
    }

    /// A text that was made of parts.
    pub(super) fn text(meter: &Rc<Meter>, text: &str) -> Outcome<Self> {
        let mut writer = Writer::new(meter);
        writer.push(text)?;
        Ok(writer.into())
    }

    /// A variable as the caller gave it; its texts are not copied.
    pub(super) fn of_json(meter: &Rc<Meter>, json: &'v serde_json::Value) -> Outcome<Self> {
        use serde_json::Value as Json;
        Ok(match json {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Self::Int(number.into()),
                (None, Some(number)) => Self::Int(number.into()),
                (None, None) => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::lent(text),
            Json::Array(items) => {
                let items: Outcome<Vec<_>> = items.iter().map(|item| Self::of_json(meter, item)).collect();
                Self::list(meter, items?)?
            }
            Json::Object(members) => {
                let entry =
                    |(key, value): (&'v String, &'v Json)| Ok((Text::Lent(key.as_str()), Self::of_json(meter, value)?));
                let entries: Outcome<Vec<_>> = members.iter().map(entry).collect();
                Self::Map(Dict::new(meter, entries?)?)
            }
        })
    }

    /// Its size if it were written out, also what it shares with others.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Text(text) => SMALL + text.as_str().len(),
            Self::List(list) => list.weight,
            Self::Map(dict) => dict.weight,
            Self::Undefined | Self::None | Self::Bool(_) | Self::Int(_) | Self::Float(_) => SMALL,
            Self::Space(_) | Self::Loop(_) | Self::Macro(_) | Self::Function(_) => SMALL,
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text.as_str()),
            _ => None,
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Undefined => "what is missing",
            Self::None => "none",
            Self::Bool(_) => "a truth value",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Space(_) => "a namespace",
            Self::Loop(_) => "a loop",
            Self::Macro(_) => "a macro",
            Self::Function(_) => "a function",
        }
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Undefined | Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.as_str().is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Map(dict) => !dict.entries.is_empty(),
            Self::Space(_) | Self::Loop(_) | Self::Macro(_) | Self::Function(_) => true,
        }
    }

    /// A member by name; nothing has members that it lacks.
    pub(super) fn member(&self, name: &str) -> Value<'v> {
        match self {
            Self::Map(dict) => dict.get(name).cloned(),
            Self::Space(space) => space.members.borrow().get(name).cloned(),
            Self::Loop(state) => Some(state.member(name)),
            // A group of `groupby` is a pair.
            Self::List(pair) if pair.items.len() == 2 => match name {
                "grouper" => pair.items.first().cloned(),
                "list" => pair.items.get(1).cloned(),
                _ => None,
            },
            _ => None,
        }
        .unwrap_or(Self::Undefined)
    }

    /// An item by its place or name.
    pub(super) fn item(&self, key: &Value<'v>) -> Value<'v> {
        match (self, key) {
            (Self::List(list), Self::Int(place)) => {
                counted_from_end(*place, list.items.len()).and_then(|place| list.items.get(place).cloned())
            }
            (Self::Text(text), Self::Int(place)) => {
                let whole = text.as_str();
                counted_from_end(*place, whole.chars().count()).and_then(|place| {
                    let (start, c) = whole.char_indices().nth(place)?;
                    Some(Self::Text(text.part(start, start + c.len_utf8())))
                })
            }
            (_, Self::Text(name)) => return self.member(name.as_str()),
            (Self::Map(dict), Self::Int(number)) => dict.get(&number.to_string()).cloned(),
            _ => None,
        }
        .unwrap_or(Self::Undefined)
    }

    /// A member of a member: `address.city`, `0.name`.
    pub(super) fn path(&self, path: &str) -> Value<'v> {
        let step = |value: Self, part: &str| match part.parse() {
            Ok(place) => value.item(&Self::Int(place)),
            Err(_) => value.member(part),
        };
        path.split('.').fold(self.clone(), step)
    }
}

fn counted_from_end(place: i128, length: usize) -> Option<usize> {
    let place = if place < 0 { place + i128::try_from(length).ok()? } else { place };
    usize::try_from(place).ok()
}

impl<'v> Loop<'v> {
    fn member(&self, name: &str) -> Value<'v> {
        let int = |number: usize| Value::Int(i128::try_from(number).unwrap_or(i128::MAX));
        let (index, length) = (self.index.get(), self.items.items.len());
        let neighbour = |place: Option<usize>| place.and_then(|place| self.items.items.get(place).cloned());
        match name {
            "index" => int(index + 1),
            "index0" => int(index),
            "revindex" => int(length - index),
            "revindex0" => int(length - index - 1),
            "first" => Value::Bool(index == 0),
            "last" => Value::Bool(index + 1 == length),
            "length" => int(length),
            // Only loops that call themselves would be deeper.
            "depth" => int(1),
            "depth0" => int(0),
            "previtem" => neighbour(index.checked_sub(1)).unwrap_or(Value::Undefined),
            "nextitem" => neighbour(Some(index + 1)).unwrap_or(Value::Undefined),
            _ => Value::Undefined,
        }
    }
}
