//! One limit of runs.

use serde_json::{Map, Value};
use std::str::FromStr;
use trellis_domain::limits::SomeLimits;

/// One limit by its name, such as `max-iterations=20`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limit {
    name: String,
    value: u64,
}

/// All names, in the order in which they are defined. Each has a maximum; of the usual limits, some are not written.
fn names() -> Vec<String> {
    match serde_json::to_value(SomeLimits::built_in_maximum()) {
        Ok(Value::Object(limits)) => limits.into_iter().map(|(name, _)| name).collect(),
        Ok(_) | Err(_) => Vec::new(),
    }
}

impl Limit {
    /// A value that this limit can have.
    pub(crate) fn new(name: &str, value: &str) -> Result<Self, String> {
        if !names().iter().any(|known| known == name) {
            return Err(format!("there is no limit `{name}`; choose one of {}", names().join(", ")));
        }
        let wrong = || format!("the limit {name} is {value:?}; write a whole number");
        let limit = Self { name: name.to_owned(), value: value.trim().parse().map_err(|_| wrong())? };
        let too_large = |_| format!("the limit {name} is {value}, which is too large");
        match some([&limit]).map_err(too_large)?.wrongly_zero() {
            Some(_) => Err(format!("the limit {name} is 0; write at least 1")),
            None => Ok(limit),
        }
    }
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("write NAME=VALUE with one of {}", names().join(", ")))?;
        Self::new(name.trim(), value)
    }
}

/// Some limits as the core knows them; a later one of the same name counts.
pub(crate) fn some<'a>(limits: impl IntoIterator<Item = &'a Limit>) -> Result<SomeLimits, serde_json::Error> {
    let members: Map<_, _> = limits.into_iter().map(|limit| (limit.name.clone(), limit.value.into())).collect();
    serde_json::from_value(Value::Object(members))
}

/// The limits that one source sets, and the most that it allows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitSource {
    pub(crate) usual: Vec<Limit>,
    pub(crate) maximum: Vec<Limit>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_read_with_its_name_and_value() {
        for wrong in ["max-depth", "max-depth=", "max-depth=2s", "depth=2", "max-rounds=0"] {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
        for known in
            ["max-model-calls=5", "max-tokens=1", "max-cost-micros=9", "max-agents=2", "conversation-bytes=4000"]
        {
            assert!(known.parse::<Limit>().is_ok(), "{known}");
        }
        assert_eq!("max-replans=0".parse(), Ok(Limit { name: "max-replans".to_owned(), value: 0 }));
    }
}
