//! What the steps of a history say of a reply.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use trellis_domain::document::Document;
use trellis_domain::record::Replied;

pub(crate) fn thought_of(replied: &Replied) -> String {
    replied.thought.as_ref().map_or("", Document::text).to_owned()
}

/// The arguments of the tool that a reply named, each as text.
pub(crate) fn arguments_of(replied: &Replied) -> BTreeMap<String, String> {
    replied.reading.call().map(|(_, arguments)| texts(arguments)).unwrap_or_default()
}

/// The schema knows only texts here: everything else travels as JSON text.
fn texts(arguments: &Map<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    arguments.iter().map(|(name, value)| (name.clone(), text(value))).collect()
}
