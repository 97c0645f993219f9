//! What expressions come to.

use super::checks;
use super::fault::{Fault, Outcome};
use super::filters::{self, Given};
use super::operators;
use super::render::Rendering;
use super::tree::{Arguments, Comparison, Expr, Suffix};
use super::value::{Dict, Function, Space, Value};
use std::rc::Rc;

/// Numbers that `range` lists.
const LONGEST_RANGE: i128 = 100_000;

impl<'v> Rendering<'v> {
    pub(super) fn value(&mut self, expr: &'v Expr) -> Outcome<Value<'v>> {
        self.meter.steps(1)?;
        match expr {
            Expr::None => Ok(Value::None),
            Expr::Bool(value) => Ok(Value::Bool(*value)),
            Expr::Int(number) => Ok(Value::Int(*number)),
            Expr::Float(number) => Ok(Value::Float(*number)),
            Expr::Text(text) => Ok(Value::lent(text)),
            Expr::Name(name) => self.look_up(name),
            _ => {
                let meter = Rc::clone(&self.meter);
                meter.deeper(|| self.compound(expr))
            }
        }
    }

    fn compound(&mut self, expr: &'v Expr) -> Outcome<Value<'v>> {
        match expr {
            Expr::List(items) => {
                let items = self.values(items)?;
                Value::list(&self.meter, items)
            }
            Expr::Map(entries) => self.map(entries),
            Expr::Not(value) => Ok(Value::Bool(!self.value(value)?.is_true())),
            Expr::Negative(value) => operators::negative(&self.value(value)?),
            Expr::Or(all) => self.first_that(all, true),
            Expr::And(all) => self.first_that(all, false),
            Expr::Arithmetic(first, rest) => {
                let mut value = self.value(first)?;
                for (operator, operand) in rest {
                    let operand = self.value(operand)?;
                    value = operators::calculate(&self.meter, *operator, &value, &operand)?;
                }
                Ok(value)
            }
            Expr::Compare(first, rest) => self.compared(first, rest),
            Expr::Choice { condition, then, otherwise } => match (self.value(condition)?.is_true(), otherwise) {
                (true, _) => self.value(then),
                (false, Some(otherwise)) => self.value(otherwise),
                (false, None) => Ok(Value::Undefined),
            },
            Expr::Suffixed(first, suffixes) => self.all_suffixed(first, suffixes),
            Expr::None | Expr::Bool(_) | Expr::Int(_) | Expr::Float(_) | Expr::Text(_) | Expr::Name(_) => {
                self.value(expr)
            }
        }
    }

    fn values(&mut self, all: &'v [Expr]) -> Outcome<Vec<Value<'v>>> {
        all.iter().map(|one| self.value(one)).collect()
    }

    fn map(&mut self, entries: &'v [(Expr, Expr)]) -> Outcome<Value<'v>> {
        let mut read = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = self.value(key)?;
            read.push((self.key(&key)?, self.value(value)?));
        }
        Ok(Value::Map(Dict::new(&self.meter, read)?))
    }

    /// The first that is true (or false), else the last.
    fn first_that(&mut self, all: &'v [Expr], wanted: bool) -> Outcome<Value<'v>> {
        let mut value = Value::Undefined;
        for one in all {
            value = self.value(one)?;
            if value.is_true() == wanted {
                break;
            }
        }
        Ok(value)
    }

    fn compared(&mut self, first: &'v Expr, rest: &'v [(Comparison, Expr)]) -> Outcome<Value<'v>> {
        let mut left = self.value(first)?;
        for (comparison, right) in rest {
            let right = self.value(right)?;
            if !operators::compare(&self.meter, *comparison, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    fn all_suffixed(&mut self, first: &'v Expr, suffixes: &'v [Suffix]) -> Outcome<Value<'v>> {
        let mut value = self.value(first)?;
        let mut rest = suffixes.iter().peekable();
        while let Some(suffix) = rest.next() {
            if let (Suffix::Member(name), Some(Suffix::Call(arguments))) = (suffix, rest.peek()) {
                rest.next();
                value = self.method(&value, name, arguments)?;
            } else {
                value = self.suffixed(value, suffix)?;
            }
        }
        Ok(value)
    }

    pub(super) fn suffixed(&mut self, value: Value<'v>, suffix: &'v Suffix) -> Outcome<Value<'v>> {
        self.meter.steps(1)?;
        match suffix {
            Suffix::Member(name) => Ok(value.member(name)),
            Suffix::Item(key) => {
                let key = self.value(key)?;
                // A character of a text is found by counting.
                self.meter.bytes(value.as_str().map_or(0, str::len))?;
                Ok(value.item(&key))
            }
            Suffix::Slice(parts) => {
                let mut read = [None; 3];
                for (place, part) in parts.iter().enumerate() {
                    let Some(part) = part else { continue };
                    read[place] = match self.value(part)? {
                        Value::Int(number) => Some(number),
                        Value::None => None,
                        other => return Err(Fault::new(format!("slices are cut by numbers, not by {}", other.kind()))),
                    };
                }
                operators::slice(&self.meter, &value, read)
            }
            Suffix::Call(arguments) => self.call(&value, arguments),
            Suffix::Filter { line, name, arguments } => {
                let given = self.given(arguments)?;
                filters::apply(self, name, value, given).map_err(|fault| fault.at(*line))
            }
            Suffix::Test { line, name, arguments, negated } => {
                let given = self.given(arguments)?;
                let result = checks::holds(self, name, &value, given).map_err(|fault| fault.at(*line))?;
                Ok(Value::Bool(result != *negated))
            }
        }
    }

    fn given(&mut self, arguments: &'v Arguments) -> Outcome<Given<'v>> {
        let placed = self.values(&arguments.placed)?;
        let mut named = Vec::with_capacity(arguments.named.len());
        for (name, value) in &arguments.named {
            named.push((&**name, self.value(value)?));
        }
        Ok(Given::new(placed, named))
    }

    fn call(&mut self, called: &Value<'v>, arguments: &'v Arguments) -> Outcome<Value<'v>> {
        let given = self.given(arguments)?;
        match called {
            Value::Macro(called) => {
                let (placed, named) = given.into_parts();
                self.call_macro(called, placed, named)
            }
            Value::Function(Function::Range) => self.range(given),
            Value::Function(Function::Dict) => self.dict(given),
            Value::Function(Function::Namespace) => self.namespace(given),
            other => Err(Fault::new(format!("{} cannot be called", other.kind()))),
        }
    }

    /// Templates made for TrustGraph walk over maps as Python does.
    fn method(&mut self, value: &Value<'v>, name: &'v str, arguments: &'v Arguments) -> Outcome<Value<'v>> {
        match (value, name) {
            (Value::Map(_), "items") => filters::apply(self, "items", value.clone(), Given::default()),
            (Value::Map(_), "keys") => filters::apply(self, "list", value.clone(), Given::default()),
            (Value::Loop(state), "cycle") => {
                let (mut choices, _) = self.given(arguments)?.into_parts();
                let place = state.index.get().checked_rem(choices.len());
                Ok(place.map_or(Value::Undefined, |place| choices.swap_remove(place)))
            }
            (Value::Space(_), _) => self.call(&value.member(name), arguments),
            _ => Err(Fault::new(format!("unknown method: {} has no {name}()", value.kind()))),
        }
    }

    fn range(&mut self, mut given: Given<'v>) -> Outcome<Value<'v>> {
        let first = given.int("lower")?.unwrap_or(0);
        let (from, to) = given.int("upper")?.map_or((0, first), |upper| (first, upper));
        let step = given.int("step")?.unwrap_or(1);
        given.finish("range")?;
        let distance = if step > 0 { to.saturating_sub(from) } else { from.saturating_sub(to) };
        let length = match step.checked_abs() {
            None | Some(0) => return Err(Fault::new("a range needs a step other than 0")),
            Some(step) => distance.max(0) / step + i128::from(distance.max(0) % step > 0),
        };
        if length > LONGEST_RANGE {
            return Err(Fault::new(format!("a range has at most {LONGEST_RANGE} numbers")));
        }
        let numbers = std::iter::successors(Some(from), |number| number.checked_add(step)).map(Value::Int);
        Value::list(&self.meter, numbers.take(usize::try_from(length).unwrap_or(0)).collect())
    }

    fn dict(&mut self, given: Given<'v>) -> Outcome<Value<'v>> {
        let (placed, named) = given.into_parts();
        let mut entries = match placed.first() {
            None | Some(Value::Undefined) => Vec::new(),
            Some(Value::Map(dict)) => dict.entries.clone(),
            Some(other) => return Err(Fault::new(format!("a map cannot be made of {}", other.kind()))),
        };
        entries.extend(named.into_iter().map(|(name, value)| (super::value::Text::Lent(name), value)));
        Ok(Value::Map(Dict::new(&self.meter, entries)?))
    }

    fn namespace(&mut self, given: Given<'v>) -> Outcome<Value<'v>> {
        let Value::Map(dict) = self.dict(given)? else { return Err(Fault::new("a namespace begins as a map")) };
        let members = dict.entries.iter().map(|(name, value)| (name.as_str().to_owned(), value.clone())).collect();
        Ok(Value::Space(Rc::new(Space { members: std::cell::RefCell::new(members) })))
    }
}
