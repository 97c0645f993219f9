//! Renders the statements of a template.

use super::fault::{Fault, Outcome};
use super::meter::{Meter, Writer};
use super::show;
use super::tree::{For, Kind, Macro, Statement, Suffix, Target, Tree};
use super::value::{Function, List, Loop, Text, Value};
use serde_json::Map;
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;

/// Names in one part of a template.
type Frame<'v> = HashMap<&'v str, Value<'v>>;

/// One rendering, from its variables to its text.
#[derive(Debug)]
pub(super) struct Rendering<'v> {
    pub(super) meter: Rc<Meter>,
    variables: &'v Map<String, serde_json::Value>,
    /// Variables that were read already.
    read: Frame<'v>,
    /// The innermost last; the first is that of the whole template.
    frames: Vec<Frame<'v>>,
    out: Writer,
}

pub(super) fn render(tree: &Tree, variables: &Map<String, serde_json::Value>) -> Outcome<String> {
    let meter = Meter::new();
    let out = Writer::of_prompt(&meter);
    let (read, frames) = (Frame::new(), vec![Frame::new()]);
    let mut rendering = Rendering { meter, variables, read, frames, out };
    rendering.statements(&tree.body)?;
    let (text, _) = rendering.out.finish();
    Ok(text)
}

impl<'v> Rendering<'v> {
    fn statements(&mut self, statements: &'v [Statement]) -> Outcome<()> {
        let meter = Rc::clone(&self.meter);
        meter.deeper(|| statements.iter().try_for_each(|one| self.statement(one).map_err(|fault| fault.at(one.line))))
    }

    fn statement(&mut self, statement: &'v Statement) -> Outcome<()> {
        self.meter.steps(1)?;
        match &statement.kind {
            Kind::Text(text) => self.out.push(text),
            Kind::Print(value) => {
                let value = self.value(value)?;
                if matches!(value, Value::None) { Ok(()) } else { show::write(&mut self.out, &value) }
            }
            Kind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.value(condition)?.is_true() {
                        return self.statements(body);
                    }
                }
                self.statements(otherwise)
            }
            Kind::For(each) => self.for_each(each),
            Kind::Set { target, value } => {
                let value = self.value(value)?;
                self.assign(target, value)
            }
            Kind::SetBlock { target, filters, body } => {
                let text = self.captured_and_filtered(body, filters)?;
                self.assign(target, text)
            }
            Kind::Filter { filters, body } => {
                let text = self.captured_and_filtered(body, filters)?;
                show::write(&mut self.out, &text)
            }
            Kind::With { bindings, body } => self.inside(|rendering| {
                for (target, value) in bindings {
                    let value = rendering.value(value)?;
                    rendering.assign(target, value)?;
                }
                rendering.statements(body)
            }),
            Kind::Macro(made) => {
                self.name(&made.name, Value::Macro(made));
                Ok(())
            }
            Kind::Do(value) => self.value(value).map(drop),
        }
    }

    fn for_each(&mut self, each: &'v For) -> Outcome<()> {
        let over = self.value(&each.over)?;
        let mut items = self.items(&over)?;
        if let Some(condition) = &each.only_if {
            let mut kept = Vec::new();
            for item in &items.items {
                self.meter.steps(1)?;
                let is_kept = self.inside(|rendering| {
                    rendering.assign(&each.target, item.clone())?;
                    Ok(rendering.value(condition)?.is_true())
                })?;
                if is_kept {
                    kept.push(item.clone());
                }
            }
            items = List::new(&self.meter, kept)?;
        }
        if items.items.is_empty() {
            return self.statements(&each.otherwise);
        }
        let state = Rc::new(Loop { items: Rc::clone(&items), index: Cell::new(0) });
        self.inside(|rendering| {
            for (index, item) in items.items.iter().enumerate() {
                rendering.meter.steps(1)?;
                state.index.set(index);
                rendering.forget_names();
                rendering.name("loop", Value::Loop(Rc::clone(&state)));
                rendering.assign(&each.target, item.clone())?;
                rendering.statements(&each.body)?;
            }
            Ok(())
        })
    }

    /// Empties the innermost part. The room for a few names is kept; emptying the room for many would take long.
    fn forget_names(&mut self) {
        const FEW: usize = 64;
        if let Some(frame) = self.frames.last_mut() {
            if frame.capacity() > FEW { *frame = Frame::new() } else { frame.clear() }
        }
    }

    /// What a value consists of.
    pub(super) fn items(&self, value: &Value<'v>) -> Outcome<Rc<List<'v>>> {
        match value {
            Value::List(list) => Ok(Rc::clone(list)),
            Value::Undefined | Value::None => List::new(&self.meter, Vec::new()),
            Value::Map(dict) => {
                List::new(&self.meter, dict.entries.iter().map(|(key, _)| Value::Text(key.clone())).collect())
            }
            Value::Text(text) => {
                // Twice the room: for what is collected, and for what it becomes.
                let _room = self.meter.hold(text.as_str().len().saturating_mul(size_of::<Value<'_>>()))?;
                let one = |(start, c): (usize, char)| Value::Text(text.part(start, start + c.len_utf8()));
                List::new(&self.meter, text.as_str().char_indices().map(one).collect())
            }
            other => Err(Fault::new(format!("{} has no items", other.kind()))),
        }
    }

    /// Does something with names of its own.
    fn inside<T>(&mut self, work: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.frames.push(Frame::new());
        let result = work(self);
        self.frames.pop();
        result
    }

    fn captured_and_filtered(&mut self, body: &'v [Statement], filters: &'v [Suffix]) -> Outcome<Value<'v>> {
        let text = self.captured(|rendering| rendering.statements(body))?;
        filters.iter().try_fold(text, |text, filter| self.suffixed(text, filter))
    }

    /// What something writes, as a value.
    fn captured(&mut self, work: impl FnOnce(&mut Self) -> Outcome<()>) -> Outcome<Value<'v>> {
        let outer = std::mem::replace(&mut self.out, Writer::new(&self.meter));
        let result = work(self);
        let written = std::mem::replace(&mut self.out, outer);
        result.map(|()| written.into())
    }

    /// Calls a macro: it sees the names of the whole template and what it was given.
    pub(super) fn call_macro(
        &mut self,
        called: &'v Macro,
        placed: Vec<Value<'v>>,
        named: Vec<(&'v str, Value<'v>)>,
    ) -> Outcome<Value<'v>> {
        if placed.len() > called.parameters.len() {
            return Err(Fault::new(format!("{} takes {} values", called.name, called.parameters.len())));
        }
        let known = |name: &str| called.parameters.iter().any(|(parameter, _)| **parameter == *name);
        if let Some((unknown, _)) = named.iter().find(|(name, _)| !known(name)) {
            return Err(Fault::new(format!("{} takes no {unknown}", called.name)));
        }
        let around = self.frames.split_off(1);
        self.frames.push(Frame::new());
        let text = self.captured(|rendering| {
            let mut placed = placed.into_iter();
            for (parameter, default) in &called.parameters {
                let given = named.iter().find(|(name, _)| **name == **parameter).map(|(_, value)| value.clone());
                let value = match (placed.next().or(given), default) {
                    (Some(value), _) => value,
                    (None, Some(default)) => rendering.value(default)?,
                    (None, None) => Value::Undefined,
                };
                rendering.name(parameter, value);
            }
            rendering.statements(&called.body)
        });
        self.frames.truncate(1);
        self.frames.extend(around);
        text
    }

    fn name(&mut self, name: &'v str, value: Value<'v>) {
        if let Some(frame) = self.frames.last_mut() {
            frame.insert(name, value);
        }
    }

    fn assign(&mut self, target: &'v Target, value: Value<'v>) -> Outcome<()> {
        match target {
            Target::Name(name) => {
                self.name(name, value);
                Ok(())
            }
            Target::Member { space, name } => self.assign_member(space, name, value),
            Target::Each(targets) => {
                let items = self.items(&value)?;
                if items.items.len() != targets.len() {
                    let (wanted, found) = (targets.len(), items.items.len());
                    return Err(Fault::new(format!("{wanted} names stand for {found} values")));
                }
                targets.iter().zip(&items.items).try_for_each(|(target, item)| self.assign(target, item.clone()))
            }
        }
    }

    fn assign_member(&mut self, space: &'v str, name: &'v str, value: Value<'v>) -> Outcome<()> {
        let Value::Space(members) = self.look_up(space)? else {
            return Err(Fault::new(format!("only a namespace has members that can be set, and {space} is none")));
        };
        // A namespace that contains itself would never be dropped.
        List::new(&self.meter, vec![value.clone()])?;
        members.members.borrow_mut().insert(name.to_owned(), value);
        Ok(())
    }

    /// What a name stands for here.
    pub(super) fn look_up(&mut self, name: &'v str) -> Outcome<Value<'v>> {
        let mut frames = self.frames.iter().rev().chain(std::iter::once(&self.read));
        if let Some(value) = frames.find_map(|frame| frame.get(name)) {
            return Ok(value.clone());
        }
        let value = match (self.variables.get(name), name) {
            (Some(value), _) => Value::of_json(&self.meter, value)?,
            (None, "range") => Value::Function(Function::Range),
            (None, "dict") => Value::Function(Function::Dict),
            (None, "namespace") => Value::Function(Function::Namespace),
            (None, _) => Value::Undefined,
        };
        self.read.insert(name, value.clone());
        Ok(value)
    }

    /// A key of a map.
    pub(super) fn key(&self, value: &Value<'v>) -> Outcome<Text<'v>> {
        match value {
            Value::Text(text) => Ok(text.clone()),
            Value::Int(_) | Value::Bool(_) | Value::Float(_) => match show::text(&self.meter, value)? {
                Value::Text(text) => Ok(text),
                _ => Err(Fault::new("a key of a map is a text")),
            },
            other => Err(Fault::new(format!("a key of a map is a text, not {}", other.kind()))),
        }
    }
}
