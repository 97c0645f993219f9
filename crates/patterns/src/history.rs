//! What a session has done so far, as neighbours in TrustGraph are told: what its steps say of a reply.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use trellis_domain::document::Document;
use trellis_domain::record::Replied;

/// The values of `step_type`.
pub mod step_type {
    pub const REACT: &str = "react";
    pub const PLAN: &str = "plan";
    pub const EXECUTE: &str = "execute";
    pub const DECOMPOSE: &str = "decompose";
    pub const SYNTHESISE: &str = "synthesise";
    pub const COMPLETION: &str = "subagent-completion";
}

pub(crate) fn thought_of(replied: &Replied) -> String {
    replied.thought.as_ref().map_or("", Document::text).to_owned()
}

/// The arguments of the tool that a reply named, each as text.
pub(crate) fn arguments_of(replied: &Replied) -> BTreeMap<String, String> {
    replied.reading.call().map(|(_, arguments)| texts(arguments)).unwrap_or_default()
}

/// The schema knows only texts here: everything else travels as JSON text.
pub(crate) fn texts(arguments: &Map<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    arguments.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}
