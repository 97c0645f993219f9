//! The critique of an action: its name, its value, and how it is read.

use crate::react::IterationNames;
use crate::reader::ReadReply;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trellis_domain::decision::Decision;
use trellis_domain::record::{Name, Reading};
use trellis_domain::reply::json_in;

/// The record of the critique in iteration `n`.
pub(super) fn name_of(n: u32) -> Name {
    Name::new(format!("{}/critique", Name::iteration(n)))
}

/// The iteration that a critique of this name is about, whether it was asked for once or twice.
pub(super) fn iteration_of(name: &Name) -> Option<u32> {
    let n = name.iteration_of()?;
    (name.first_asking() == name_of(n)).then_some(n)
}

/// What the model thinks of what it did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Critique {
    /// Whether the step brought the question further.
    pub(super) sound: bool,
    #[serde(default)]
    pub(super) problem: String,
    /// What the next step should do.
    #[serde(default)]
    pub(super) advice: String,
}

impl Critique {
    /// In one line.
    pub(super) fn in_words(&self) -> String {
        let parts = [&self.problem, &self.advice].into_iter().filter(|part| !part.is_empty());
        let text = parts.map(String::as_str).collect::<Vec<_>>().join(" ");
        match (text.is_empty(), self.sound) {
            (true, true) => "the step is sound".to_owned(),
            (true, false) => "the step is not sound".to_owned(),
            (false, _) => text,
        }
    }
}

const FORM: &str = r#"reply with {"sound": true or false, "problem": "...", "advice": "..."}"#;
/// More of a critique is not kept: it is shown in every later step.
const CHARS: usize = 2_000;

pub(super) fn read(raw: &str, offered: Vec<Decision>) -> ReadReply {
    match critique_in(raw) {
        Ok(critique) => ReadReply::new("", Reading::decided(critique), offered),
        Err(reason) => ReadReply::unusable(format!("{reason}; {FORM}"), offered),
    }
}

fn critique_in(raw: &str) -> Result<Critique, String> {
    let value = json_in(raw)?;
    let text = |name: &str| -> String {
        value.get(name).and_then(Value::as_str).unwrap_or_default().trim().chars().take(CHARS).collect()
    };
    let (problem, advice) = (text("problem"), text("advice"));
    let sound = match value.get("sound") {
        Some(Value::Bool(sound)) => *sound,
        Some(Value::String(word)) if word.trim().eq_ignore_ascii_case("true") => true,
        Some(Value::String(word)) if word.trim().eq_ignore_ascii_case("false") => false,
        Some(_) | None => return Err("the reply does not say whether the step was sound".to_owned()),
    };
    if !sound && problem.is_empty() {
        return Err("a step that is not sound has a problem; name it".to_owned());
    }
    Ok(Critique { sound, problem, advice })
}
