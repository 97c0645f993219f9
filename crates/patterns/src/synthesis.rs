//! The answer of a plan or a supervisor: text that cites what it rests on.

use crate::reader::ReadReply;
use std::collections::BTreeMap;
use trellis_domain::decision::Decision;
use trellis_domain::reading::Citation;
use trellis_domain::record::{Name, Reading};

pub(crate) fn read(raw: &str, known: &[u32], offered: Vec<Decision>) -> ReadReply {
    if raw.trim().is_empty() {
        return ReadReply::unusable("the reply is empty; write the answer", offered);
    }
    // As it was streamed, to the last character.
    ReadReply { citations: citations(raw, known), ..ReadReply::new("", Reading::answered(raw), offered) }
}

/// The name that answers of this kind have in common.
pub trait SynthesisName {
    /// The turn in which the answer is put together, and the record of it.
    fn synthesis() -> Self;
}

impl SynthesisName for Name {
    fn synthesis() -> Self {
        Self::new("synthesis")
    }
}

/// The numbers in brackets that name something known, such as `[finding 2]`, `[step 0, step 3]` or `[1]`, each once,
/// with the confidence that is stated on the same line.
pub(crate) fn citations(text: &str, known: &[u32]) -> Vec<Citation> {
    let mut found: BTreeMap<u32, Option<String>> = BTreeMap::new();
    for line in text.lines() {
        let numbers = numbers_in(line);
        let confidence = if numbers.is_empty() { None } else { confidence_in(line) };
        for index in numbers.into_iter().filter(|index| known.contains(index)) {
            let stated = found.entry(index).or_default();
            if stated.is_none() {
                stated.clone_from(&confidence);
            }
        }
    }
    found.into_iter().map(|(index, confidence)| Citation { index, confidence }).collect()
}

fn numbers_in(line: &str) -> Vec<u32> {
    let brackets = line.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    // A link's text is no citation.
    let inside = brackets.filter(|(_, after)| !after.starts_with('(')).map(|(inside, _)| inside);
    inside.flat_map(|inside| inside.split([',', ';'])).filter_map(number_in).collect()
}

fn number_in(part: &str) -> Option<u32> {
    let lower = part.trim().to_lowercase();
    let number = ["findings", "finding", "steps", "step", "observations", "observation"]
        .iter()
        .find_map(|word| lower.strip_prefix(word));
    number.unwrap_or(&lower).trim().trim_start_matches('#').parse().ok()
}

/// How sure the line says it is: `confidence: high`, `confidence 0.8`, `with high confidence`.
fn confidence_in(line: &str) -> Option<String> {
    const WORD: &str = "confidence";
    // Letters outside ASCII keep their length this way.
    let start = line.to_ascii_lowercase().find(WORD)?;
    let (before, after) = (line.get(..start)?, line.get(start + WORD.len()..)?);
    let named = after.trim_start_matches([' ', '*', '_']).starts_with([':', '=', '(']);
    let behind = words(after.trim_start_matches([' ', ':', '=', '*', '_', '('])).next();
    let behind = behind.filter(|word| !word.is_empty() && (named || is_level(word)));
    let ahead = words(before.trim_end()).last().filter(|word| is_level(word));
    behind.or(ahead).map(str::to_owned)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !(c.is_alphanumeric() || ".%-".contains(c)));
    parts.map(|word| word.trim_end_matches('.'))
}

/// In a sentence about confidence only these words tell how much there is.
fn is_level(word: &str) -> bool {
    const LEVELS: [&str; 4] = ["low", "medium", "moderate", "high"];
    word.starts_with(|c: char| c.is_ascii_digit()) || LEVELS.contains(&word.to_lowercase().as_str())
}

#[cfg(test)]
#[path = "synthesis_tests.rs"]
mod tests;
