//! Checkers: when an answer is right, decided without a model.

use crate::outcome::Outcome;
use crate::words::{bare, f1, folded};
use crate::{numbers, tree};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What makes an answer right.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Check {
    /// The answer is the value; case, white space and the punctuation around it do not matter.
    Exact { value: String },
    /// The value occurs as a number in the last sentence of the answer that has any. Separators, units and rounding to a
    /// millionth do not matter.
    Number { value: f64 },
    /// Every value occurs in the answer; case and the kind of white space do not matter.
    Contains { values: Vec<String> },
    /// The words of answer and value overlap so far.
    F1 { value: String, at_least: f64 },
    /// The run made these calls, whatever else it called. An empty list: it called nothing.
    Call { calls: Vec<ExpectedCall> },
}

/// A call that is expected. A list means one of these values; one that holds an empty text may be left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCall {
    pub name: String,
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

impl Check {
    /// Whether what came of a run is right, and if not, why.
    pub fn judge(&self, outcome: &Outcome) -> Result<(), String> {
        if let Self::Call { calls } = self {
            return judge_calls(calls, outcome);
        }
        let answer = &without_citations(outcome.answer.as_deref().unwrap_or_default());
        if answer.trim().is_empty() {
            return Err("there is no answer".to_owned());
        }
        match self {
            Self::Exact { value } if bare(answer) == bare(value) => Ok(()),
            Self::Exact { value } => Err(format!("the answer is not {value:?}")),
            Self::Number { value } if numbers::gives(answer, *value) => Ok(()),
            Self::Number { value } => Err(format!("the answer does not give the number {value}")),
            Self::Contains { values } => {
                let answer = folded(answer);
                let missing = values.iter().find(|value| !answer.contains(&folded(value)));
                missing.map_or(Ok(()), |value| Err(format!("{value:?} does not occur in the answer")))
            }
            Self::F1 { value, at_least } => {
                let reached = f1(answer, value);
                let wrong = || format!("the F1 with {value:?} is {reached:.2}, less than {at_least}");
                if reached >= *at_least { Ok(()) } else { Err(wrong()) }
            }
            Self::Call { .. } => Ok(()),
        }
    }

    /// Why this can judge nothing, if it cannot.
    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::Exact { value } | Self::F1 { value, .. } if bare(value).is_empty() => {
                Some("`value` has no letters or digits; write the right answer".to_owned())
            }
            Self::F1 { at_least, .. } if !(*at_least > 0.0 && *at_least <= 1.0) => {
                Some(format!("`at_least` is {at_least}; write a number between 0 and 1, such as 0.6"))
            }
            Self::Contains { values } if values.is_empty() => {
                Some("`values` is empty, so that any answer were right; list what must occur".to_owned())
            }
            Self::Contains { values } if values.iter().any(|value| value.trim().is_empty()) => {
                Some("`values` holds an empty text, which occurs everywhere; leave it out".to_owned())
            }
            Self::Exact { .. } | Self::Number { .. } | Self::Contains { .. } | Self::F1 { .. } | Self::Call { .. } => {
                None
            }
        }
    }
}

/// The answer without `[1]`, which says where something comes from and is no part of it.
fn without_citations(answer: &str) -> String {
    let mut parts = answer.split('[');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((number, after)) if !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit()) => {
                kept.truncate(kept.trim_end().len());
                kept.push_str(after);
            }
            Some(_) | None => kept.extend(["[", part]),
        }
    }
    kept
}

fn judge_calls(expected: &[ExpectedCall], outcome: &Outcome) -> Result<(), String> {
    if let (true, Some(call)) = (expected.is_empty(), outcome.tool_calls.first()) {
        return Err(format!("no tool fits the question, but `{}` was called", call.name));
    }
    let Some(missing) = tree::first_missing(expected, &outcome.tool_calls) else { return Ok(()) };
    let arguments = serde_json::to_string(&missing.arguments).unwrap_or_default();
    let made = outcome.tool_calls.iter().map(|call| format!("`{}`", call.name)).collect::<Vec<_>>();
    let made = if made.is_empty() { "nothing".to_owned() } else { made.join(", ") };
    Err(format!("no call of `{}` with {arguments} was made; {made} was called", missing.name))
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
