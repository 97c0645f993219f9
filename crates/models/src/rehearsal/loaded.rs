//! What documents say: the sentence that has most in common with the question, and where it stands.

use super::inquiry::LOADED;
use super::quote::defused;
use super::react::PastStep;
use std::collections::BTreeSet;

/// An answer from the passages that step `n` brought; none if it brought none.
pub(super) fn answer(question: &str, step: &PastStep<'_>, n: usize) -> Option<String> {
    if step.action != LOADED.tool || step.error().is_some() {
        return None;
    }
    let asked = words(question);
    let passages = (1..).map_while(|number| Some((number, passage(step.observation, number)?)));
    let sentences = passages.flat_map(|(number, (place, text))| {
        // What the heading says, all sentences under it are about.
        let asked: BTreeSet<_> = asked.difference(&words(place)).cloned().collect();
        let score = move |sentence: &str| words(sentence).intersection(&asked).count();
        text.split_inclusive(". ").map(move |sentence| (score(sentence), (number, place, sentence)))
    });
    // Of two that fit alike, the first: it is from the better passage.
    let (_, (number, place, sentence)) =
        sentences.fold(None::<(usize, (u32, &str, &str))>, |best, found| match best {
            Some(best) if best.0 >= found.0 => Some(best),
            _ => Some(found),
        })?;
    Some(format!("{} [{n}] (p{number})\n\n(p{number}) {}", defused(sentence.trim()), defused(place)))
}

/// Where a passage stands, and its text.
fn passage(observation: &str, number: u32) -> Option<(&str, &str)> {
    let begun = observation.split_once(&format!("\n\n(p{number}) "))?.1;
    let whole = begun.split_once(&format!("\n\n(p{}) ", number + 1)).map_or(begun, |(whole, _)| whole);
    whole.split_once('\n')
}

/// The words that mean something, roughly.
fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 2);
    words.map(str::to_lowercase).filter(|word| !["the", "was", "and", "who", "when"].contains(&word.as_str())).collect()
}
