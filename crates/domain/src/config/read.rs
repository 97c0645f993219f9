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

    pub(super) fn texts<T: From<String>>(&self, names: &[&str]) -> Result<Option<Vec<T>>, Problem> {
        let Some((value, name)) = self.first(names) else { return Ok(None) };
        let wrong = |what: String| self.problem(&name, what, "write a list of texts such as [\"default\"]");
        let Value::Array(members) = value else {
            return Err(wrong(format!("expected a list of texts, found {}", kind_of(value))));
        };
        let text = |member: &Value| {
            let found = member.as_str().map(|text| text.to_owned().into());
            found.ok_or_else(|| wrong(format!("the list contains {}", kind_of(member))))
        };
        members.iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    /// One model or several in their order, as `provider/name`.
    pub(super) fn models(&self, name: &str) -> Result<Vec<String>, Problem> {
        const MEND: &str = r#"write "provider/name" such as "openai/gpt-4.1-mini", or a list of such names"#;
        let named = |value: &Value| match value.as_str().map(str::trim) {
            Some("") => Err(self.problem(name, "the name of a model is empty", MEND)),
            Some(model) if model.contains(char::is_whitespace) => {
                Err(self.problem(name, format!("`{model}` is not the name of a model"), MEND))
            }
            Some(model) => Ok(model.to_owned()),
            None => Err(self.problem(name, format!("expected the name of a model, found {}", kind_of(value)), MEND)),
        };
        match self.first(&[name]) {
            None => Ok(Vec::new()),
            Some((Value::Array(models), _)) if models.is_empty() => {
                Err(self.problem(name, "the list of models is empty", MEND))
            }
            Some((Value::Array(models), _)) => models.iter().map(named).collect(),
            Some((model, _)) => named(model).map(|model| vec![model]),
        }
    }

    /// A switch that is off unless it is on.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => {
                let what = format!("expected true or false, found {}", kind_of(other));
                Err(self.problem(name, what, "write true, or leave it out"))
            }
        }
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
        match limits.wrongly_zero() {
            Some(zero) => Err(self.problem(&name, format!("{zero} is 0, so nothing could run"), "write at least 1")),
            None => Ok(limits),
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
