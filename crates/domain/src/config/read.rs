//! Reading the members of a configuration object, with complaints that name the member.

use super::Problem;
use serde_json::{Map, Value};

/// One configuration object being read.
pub(super) struct Members<'a> {
    pub(super) kind: &'a str,
    pub(super) key: &'a str,
    pub(super) map: &'a Map<String, Value>,
}

impl Members<'_> {
    pub(super) fn problem(&self, field: &str, what: impl Into<String>, mend: impl Into<String>) -> Problem {
        Problem {
            kind: self.kind.to_owned(),
            key: self.key.to_owned(),
            field: field.to_owned(),
            what: what.into(),
            mend: mend.into(),
        }
    }

    /// The value of the first of these names that is there and not null.
    fn first(&self, names: &[&str]) -> Option<(&Value, String)> {
        let found = names.iter().find_map(|name| self.map.get(*name).map(|value| (value, (*name).to_owned())));
        found.filter(|(value, _)| !value.is_null())
    }

    pub(super) fn text(&self, names: &[&str]) -> Result<Option<String>, Problem> {
        match self.first(names) {
            None => Ok(None),
            Some((Value::String(text), _)) => Ok(Some(text.clone())),
            Some((other, name)) => {
                Err(self.problem(&name, format!("expected a text, found {}", kind_of(other)), "write it in quotes"))
            }
        }
    }

    pub(super) fn required_text(&self, name: &str, mend: &str) -> Result<String, Problem> {
        match self.text(&[name])? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) | None => Err(self.problem(name, "is missing or empty", mend)),
        }
    }

    pub(super) fn texts(&self, names: &[&str]) -> Result<Option<Vec<String>>, Problem> {
        let Some((value, name)) = self.first(names) else { return Ok(None) };
        let wrong = |what: String| self.problem(&name, what, "write a list of texts such as [\"default\"]");
        let Value::Array(members) = value else {
            return Err(wrong(format!("expected a list of texts, found {}", kind_of(value))));
        };
        let text = |member: &Value| {
            let found = member.as_str().map(str::to_owned);
            found.ok_or_else(|| wrong(format!("the list contains {}", kind_of(member))))
        };
        members.iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        match self.first(&[name]) {
            None => Ok(None),
            Some((value, _)) => value.as_u64().map(Some).ok_or_else(|| {
                self.problem(name, format!("expected a whole number, found {value}"), "write a number such as 10")
            }),
        }
    }

    pub(super) fn limits(&self) -> Result<crate::limits::SomeLimits, Problem> {
        let Some((value, name)) = self.first(&["limits"]) else { return Ok(crate::limits::SomeLimits::default()) };
        let limits: crate::limits::SomeLimits = serde_json::from_value(value.clone()).map_err(|error| {
            self.problem(&name, error.to_string(), "use names such as max-iterations with whole numbers")
        })?;
        match limits.max_iterations {
            Some(0) => Err(self.problem(&name, "max-iterations is 0, so nothing could run", "write at least 1")),
            Some(_) | None => Ok(limits),
        }
    }
}

pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
