//! The rehearsal as somebody who decides questions about a state: by the words that an option shares with it.

use super::given::Given;
use super::line;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use trellis_orchestrator::documents::words;

/// What an option gets without and with each shared word, and at most.
const FEW: usize = 5;
const EACH: usize = 40;
const MOST: usize = 95;

/// The reply to `decision-scoring`.
pub(super) fn decide(given: Given<'_>) -> Value {
    let state = meaning(given.text("state"));
    let decided = |question: Given<'_>| (question.text("id").to_owned(), one(question, &state));
    given.all("questions").map(decided).collect::<Map<_, _>>().into()
}

fn one(question: Given<'_>, state: &BTreeSet<String>) -> Value {
    let weigh = |option: Given<'_>| {
        let said = meaning(&[option.text("name"), option.text("about")].join(" "));
        (FEW + EACH * state.intersection(&said).count()).min(MOST)
    };
    let options: Vec<(Given<'_>, usize)> = question.all("options").map(|option| (option, weigh(option))).collect();
    let points: Map<_, _> =
        options.iter().map(|(option, points)| (option.text("id").to_owned(), json!(points))).collect();
    // The first of equals.
    let best = options.iter().rev().max_by_key(|(_, points)| *points);
    let choice = best.map(|(option, _)| option.text("name")).unwrap_or_default();
    let reason = format!("Scripted: {} shares most words with the state.", line(choice, 60));
    json!({"reason": reason, "choice": choice, "points": points})
}

fn meaning(text: &str) -> BTreeSet<String> {
    words(text).map(|word| word.text).collect()
}
