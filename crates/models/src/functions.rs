//! Functions that a model is offered, and whether it kept to their schemas.

use crate::strict::strict;
use serde_json::Value;
use trellis_domain::parts::ReplyPart;
use trellis_patterns::react::functions::{Function, Functions};

/// The schema in the form that providers can enforce, if there is one.
pub(crate) fn strict_schema(function: &Function) -> Option<Value> {
    strict(&function.schema())
}

/// The schema as it is sent, strict where that is wanted and possible, and whether it is.
pub(crate) fn sent_schema(function: &Function, strict: bool) -> (Value, bool) {
    match strict.then(|| strict_schema(function)).flatten() {
        Some(schema) => (schema, true),
        None => (function.schema(), false),
    }
}

/// Whether a provider that enforces schemas leaves no way around the set.
pub(crate) fn can_be_enforced(functions: &Functions) -> bool {
    functions.iter().all(|function| strict_schema(function).is_some())
}

/// Whether something was called, and nothing but what was offered, with what its schema allows.
pub(crate) fn were_kept(functions: &Functions, parts: &[ReplyPart]) -> bool {
    let mut calls = parts.iter().filter_map(|part| match part {
        ReplyPart::Call { function, arguments, .. } => Some((function, arguments.text())),
        ReplyPart::Thought { .. } | ReplyPart::Text { .. } | ReplyPart::Refusal { .. } => None,
    });
    let is_kept = |(name, arguments): (&String, &str)| {
        let schema = functions.meant(name).and_then(strict_schema);
        let Some((schema, value)) = schema.zip(serde_json::from_str(arguments).ok()) else { return false };
        jsonschema::validator_for(&schema).is_ok_and(|validator| validator.is_valid(&value))
    };
    let first = calls.next().is_some_and(is_kept);
    first && calls.all(is_kept)
}

#[cfg(test)]
#[path = "functions_tests.rs"]
pub(crate) mod tests;
