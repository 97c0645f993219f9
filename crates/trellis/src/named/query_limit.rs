//! One limit of queries of the graph.

use std::str::FromStr;
use std::time::Duration;
use trellis_store::QuerySettings;

const MEMORY: &str = "memory-mb";
const TIME: &str = "time-s";
const AT_ONCE: &str = "at-once";

/// Names, and the least and the most that each can be: less would not even start, more is surely a mistake.
const NAMES: [(&str, u64, u64); 3] = [(MEMORY, 16, 1 << 20), (TIME, 1, 86_400), (AT_ONCE, 1, 256)];

/// One setting by its name, such as `memory-mb=512`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryLimit {
    name: &'static str,
    value: u64,
}

impl QueryLimit {
    pub(crate) fn new(name: &str, value: &str) -> Result<Self, String> {
        let Some((name, least, most)) = NAMES.into_iter().find(|(known, ..)| *known == name) else {
            let names = NAMES.map(|(name, ..)| name).join(", ");
            return Err(format!("there is no limit `{name}` of queries; choose one of {names}"));
        };
        let number = value.trim().parse().ok().filter(|number| (least..=most).contains(number));
        let wrong = || format!("{name} is {value:?}; write a whole number from {least} to {most}");
        Ok(Self { name, value: number.ok_or_else(wrong)? })
    }

    /// Sets what it is about.
    pub(crate) fn apply(&self, settings: &mut QuerySettings) {
        match self.name {
            MEMORY => settings.memory = self.value << 20,
            TIME => settings.time = Duration::from_secs(self.value),
            _ => settings.at_once = usize::try_from(self.value).unwrap_or(usize::MAX),
        }
    }
}

impl FromStr for QueryLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || NAMES.map(|(name, ..)| name).join(", ");
        let (name, value) = text.split_once('=').ok_or_else(|| format!("write NAME=VALUE with one of {}", names()))?;
        Self::new(name.trim(), value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_names_and_bounds() {
        let mut settings = QuerySettings::default();
        for limit in ["memory-mb=512", "time-s = 5", "at-once=1"] {
            limit.parse::<QueryLimit>().unwrap().apply(&mut settings);
        }
        let expected =
            QuerySettings { memory: 512 << 20, time: Duration::from_secs(5), at_once: 1, ..QuerySettings::default() };
        assert_eq!(settings, expected);
        for (wrong, why) in [
            ("memory", "write NAME=VALUE with one of memory-mb, time-s, at-once"),
            ("speed=3", "there is no limit `speed` of queries; choose one of memory-mb"),
            ("time-s=0", "time-s is \"0\"; write a whole number from 1 to 86400"),
            ("memory-mb=much", "memory-mb is \"much\""),
            ("memory-mb=15", "from 16 to"),
        ] {
            let problem = wrong.parse::<QueryLimit>().unwrap_err();
            assert!(problem.contains(why), "{wrong}: {problem}");
        }
    }
}
