//! What a filter, a test or a function was given.

use crate::template::fault::{Fault, Outcome};
use crate::template::value::Value;
use std::collections::VecDeque;

/// Values by place and by name. A filter takes what it knows, in its own order, and refuses the rest.
#[derive(Debug, Clone, Default)]
pub(in crate::template) struct Given<'v> {
    placed: VecDeque<Value<'v>>,
    named: Vec<(&'v str, Value<'v>)>,
}

impl<'v> Given<'v> {
    pub(in crate::template) fn new(placed: Vec<Value<'v>>, named: Vec<(&'v str, Value<'v>)>) -> Self {
        Self { placed: placed.into(), named }
    }

    pub(in crate::template) fn into_parts(self) -> (Vec<Value<'v>>, Vec<(&'v str, Value<'v>)>) {
        (self.placed.into(), self.named)
    }

    /// Everything, for a filter that hands it on.
    pub(in crate::template) fn take_all(&mut self) -> Self {
        std::mem::take(self)
    }

    /// The next by its place, or by this name.
    pub(in crate::template) fn take(&mut self, name: &str) -> Option<Value<'v>> {
        self.placed.pop_front().or_else(|| self.take_named(name))
    }

    pub(in crate::template) fn take_named(&mut self, name: &str) -> Option<Value<'v>> {
        let place = self.named.iter().position(|(given, _)| *given == name)?;
        Some(self.named.swap_remove(place).1)
    }

    pub(in crate::template) fn needed(&mut self, name: &str, taker: &str) -> Outcome<Value<'v>> {
        self.take(name).ok_or_else(|| Fault::new(format!("{taker} needs a {name}")))
    }

    pub(in crate::template) fn int(&mut self, name: &str) -> Outcome<Option<i128>> {
        match self.take(name) {
            None | Some(Value::Undefined | Value::None) => Ok(None),
            Some(Value::Int(number)) => Ok(Some(number)),
            Some(other) => Err(Fault::new(format!("{name} is a whole number, not {}", other.kind()))),
        }
    }

    pub(in crate::template) fn flag(&mut self, name: &str) -> bool {
        self.take(name).is_some_and(|value| value.is_true())
    }

    /// Nothing may be left.
    pub(in crate::template) fn finish(self, taker: &str) -> Outcome<()> {
        match (self.placed.len(), self.named.first()) {
            (0, None) => Ok(()),
            (0, Some((name, _))) => Err(Fault::new(format!("{taker} takes no {name}"))),
            (more, _) => Err(Fault::new(format!("{taker} takes {more} fewer values than it was given"))),
        }
    }
}
