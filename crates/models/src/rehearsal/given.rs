//! A prompt's variables, read with forgiveness: what is missing or of another kind counts as not there.

use serde_json::{Map, Value};

/// The variables themselves, or one object inside them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given<'a> {
    members: Option<&'a Map<String, Value>>,
    /// Counts instead of the member of this name.
    history: Option<&'a Value>,
}

impl<'a> Given<'a> {
    pub(super) fn new(variables: &'a Map<String, Value>) -> Self {
        Self { members: Some(variables), history: None }
    }

    /// The same after these steps.
    pub(super) fn after(self, history: Option<&'a Value>) -> Self {
        Self { history, ..self }
    }

    pub(super) fn value(self, name: &str) -> Option<&'a Value> {
        self.history.filter(|_| name == "history").or_else(|| self.members?.get(name))
    }

    /// Empty if there is no such text.
    pub(super) fn text(self, name: &str) -> &'a str {
        self.value(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn number(self, name: &str) -> Option<u64> {
        self.value(name)?.as_u64()
    }

    fn members(self, name: &str) -> &'a [Value] {
        self.value(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// One object; empty if there is none of that name.
    pub(super) fn object(self, name: &str) -> Given<'a> {
        Given { members: self.value(name).and_then(Value::as_object), history: None }
    }

    /// The objects in a list.
    pub(super) fn all(self, name: &str) -> impl Iterator<Item = Given<'a>> {
        self.members(name).iter().filter_map(Value::as_object).map(Given::new)
    }

    /// The texts in a list.
    pub(super) fn texts(self, name: &str) -> Vec<&'a str> {
        self.members(name).iter().filter_map(Value::as_str).collect()
    }

    /// The numbers in a list.
    pub(super) fn numbers(self, name: &str) -> Vec<u64> {
        self.members(name).iter().filter_map(Value::as_u64).collect()
    }

    /// The names of the objects in a list: an option set.
    pub(super) fn names(self, name: &str) -> Vec<&'a str> {
        self.all(name).map(|option| option.text("name")).filter(|name| !name.is_empty()).collect()
    }

    pub(super) fn question(self) -> &'a str {
        self.text("question")
    }
}
