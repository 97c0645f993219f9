//! Reading that forgives what the shipped original sends: nulls anywhere, missing members, values of
//! a neighbouring type.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;

/// A null or a missing member is the default.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The collection defaults to `default`, also when it is null or empty.
pub(crate) fn collection<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name: String = nullable(deserializer)?;
    Ok(if name.is_empty() { default_collection() } else { name })
}

pub(crate) fn default_collection() -> String {
    "default".to_owned()
}

/// A list of strings; a bare string is a list of one.
pub(crate) fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Names {
        One(String),
        Many(Vec<String>),
    }
    Ok(Option::<Names>::deserialize(deserializer)?.map(|names| match names {
        Names::One(name) => vec![name],
        Names::Many(names) => names,
    }))
}

/// A map of texts; other values become their JSON text, null becomes an empty text.
pub(crate) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let map: BTreeMap<String, Value> = nullable(deserializer)?;
    Ok(map.into_iter().map(|(key, value)| (key, text_of(value))).collect())
}

pub(crate) fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}
