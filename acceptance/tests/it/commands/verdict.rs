//! What came of a command, in one of four ways.

use super::cases::{Case, Here};
use acceptance::Output;

/// How a command that ended badly tells it.
const WRONG: [&str; 6] = ["Exception:", "Error:", "Error querying", "Fatal error:", "❌", "✗"];
/// A command that stumbled over a reply and caught it itself.
const STUMBLED: [&str; 6] =
    ["TypeError", "KeyError", "object is not", "indices must be", "NoneType", "has no attribute"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    Works,
    /// It said so, in these words.
    NotHere(String),
    /// The server has no part in it.
    NotApplicable,
    /// What none may do.
    Bad(String),
}

#[derive(Debug)]
pub(super) struct Result {
    pub(super) command: &'static str,
    pub(super) note: &'static str,
    pub(super) way: Way,
}

impl Result {
    pub(super) fn failure(&self) -> Option<String> {
        match &self.way {
            Way::Bad(what) => Some(format!("{}: {what}", self.command)),
            Way::Works | Way::NotHere(_) | Way::NotApplicable => None,
        }
    }
}

/// No output: it had to be stopped.
pub(super) fn verdict(case: &'static Case, output: Option<Output>) -> Result {
    let way = match (&case.here, output) {
        (Here::NotApplicable, _) => Way::NotApplicable,
        (Here::Works(_) | Here::Missing, None) => Way::Bad("it did not end".to_owned()),
        (Here::Works(proof), Some(output)) => works(proof, &output),
        (Here::Missing, Some(output)) => missing(&output),
    };
    Result { command: case.command, note: case.note, way }
}

fn works(proof: &str, output: &Output) -> Way {
    let said = said(output);
    let is_fine = output.succeeded && sentence(&said).is_none() && !is_traceback(&said) && said.contains(proof);
    if is_fine { Way::Works } else { Way::Bad(format!("it was to say {proof:?}\n{output}")) }
}

fn missing(output: &Output) -> Way {
    let said = said(output);
    match sentence(&said) {
        Some(words) if !is_traceback(&said) && !STUMBLED.iter().any(|word| said.contains(word)) => Way::NotHere(words),
        _ => Way::Bad(format!("it was to say in words that this is not here\n{output}")),
    }
}

fn said(output: &Output) -> String {
    format!("{}\n{}", output.stdout, output.stderr)
}

fn is_traceback(said: &str) -> bool {
    said.contains("Traceback (most recent call last)")
}

/// The line that tells of an error, without the word for it.
fn sentence(said: &str) -> Option<String> {
    let told =
        |line: &str| WRONG.iter().find_map(|word| line.trim().strip_prefix(word).map(|rest| rest.trim().to_owned()));
    // One command has no other way to say that it found nothing.
    let found_nothing = |line: &str| line.starts_with("Unknown: ").then(|| line.to_owned());
    said.lines().find_map(|line| told(line).or_else(|| found_nothing(line)))
}
