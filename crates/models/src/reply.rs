//! Reads a model's reply as what its prompt asks for.

use jsonschema::{ValidationError, Validator};
use serde_json::Value;
use trellis_domain::config::PromptReply as Expected;
use trellis_domain::reply::json_in;
use trellis_orchestrator::ports::{PromptError, ReplyContent};

/// What a call expects: the template's kind of reply, under the call's schema if it has one.
pub(crate) fn expected(template: &Expected, of_call: Option<Value>) -> Expected {
    match template {
        Expected::Text => Expected::Text,
        Expected::Json { schema } => Expected::Json { schema: of_call.or_else(|| schema.clone()) },
        Expected::JsonLines { schema } => Expected::JsonLines { schema: of_call.or_else(|| schema.clone()) },
    }
}

/// Reads the reply to one prompt.
#[derive(Debug)]
pub(crate) struct ReplyReader {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Text,
    Json(Option<Validator>),
    JsonLines(Option<Validator>),
}

impl ReplyReader {
    pub(crate) fn new(id: &str, expected: &Expected) -> Result<Self, PromptError> {
        let validator = |schema: &Option<Value>| {
            let compiled = schema.as_ref().map(jsonschema::validator_for).transpose();
            compiled.map_err(|error| PromptError::Template {
                id: id.to_owned(),
                reason: format!("its schema is not a JSON schema: {error}"),
            })
        };
        let kind = match expected {
            Expected::Text => Kind::Text,
            Expected::Json { schema } => Kind::Json(validator(schema)?),
            Expected::JsonLines { schema } => Kind::JsonLines(validator(schema)?),
        };
        Ok(Self { kind })
    }

    pub(crate) fn read(&self, raw: &str) -> ReplyContent {
        match &self.kind {
            Kind::Text => ReplyContent::Text,
            Kind::Json(validator) => {
                let value = json_in(raw).and_then(|value| checked_leniently(value, validator.as_ref()));
                value.map_or_else(|reason| ReplyContent::Wrong { reason }, list_or_object)
            }
            Kind::JsonLines(validator) => {
                let values = raw.lines().filter_map(|line| serde_json::from_str(line).ok());
                let valid = values.filter(|value| check(value, validator.as_ref()).is_ok());
                ReplyContent::List(valid.collect())
            }
        }
    }
}

fn list_or_object(value: Value) -> ReplyContent {
    if let Value::Array(members) = value { ReplyContent::List(members) } else { ReplyContent::Object(value) }
}

/// A null where a member may be missing says that it is missing: providers that enforce schemas know no other way.
fn checked_leniently(value: Value, validator: Option<&Validator>) -> Result<Value, String> {
    let Err(reason) = check(&value, validator) else { return Ok(value) };
    let value = without_nulls(value);
    check(&value, validator).map(|()| value).map_err(|_| reason)
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let said = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(said.map(|(name, member)| (name, without_nulls(member))).collect())
        }
        Value::Array(members) => members.into_iter().map(without_nulls).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

fn check(value: &Value, validator: Option<&Validator>) -> Result<(), String> {
    let Some(validator) = validator else { return Ok(()) };
    let wrong = |error: ValidationError<'_>| format!("{error} (at {:?})", error.instance_path().to_string());
    validator.validate(value).map_err(wrong)
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
