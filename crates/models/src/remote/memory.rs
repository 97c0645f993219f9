//! What a model was found to take. It is tried again after an hour: a server may be updated, and a refusal misread.

use super::Strength;
use super::members::KEPT as KEPT_FOR;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Prompts that are remembered; a workspace has a dozen.
const KEPT: usize = 256;

/// Remembers refusals, so that each is paid for with one round trip only. Where nothing was ever taken in a form, a
/// refusal counts for all prompts: the server does not know it. Where something was, it counts for the prompt: its
/// schema is odd.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Known>);

#[derive(Debug)]
struct Known {
    /// Since when something is known; none while nothing was refused.
    since: Option<Instant>,
    strongest: Strength,
    /// The strongest form that was ever taken.
    taken: Strength,
    prompts: BTreeMap<String, Strength>,
}

impl Default for Known {
    fn default() -> Self {
        Self { since: None, strongest: Strength::Strict, taken: Strength::Free, prompts: BTreeMap::new() }
    }
}

impl Memory {
    /// The strongest form that is worth trying.
    pub(super) fn strongest(&self, prompt: &str) -> Strength {
        let mut known = self.0.lock();
        if known.since.is_some_and(|since| since.elapsed() >= KEPT_FOR) {
            *known = Known { taken: known.taken, ..Known::default() };
        }
        known.prompts.get(prompt).map_or(known.strongest, |strongest| known.strongest.min(*strongest))
    }

    /// A request was taken in one form after it was refused in another.
    pub(super) fn learn(&self, prompt: &str, refused: Option<Strength>, taken: Strength) {
        let mut known = self.0.lock();
        if refused.is_some() {
            known.since.get_or_insert_with(Instant::now);
        }
        match refused {
            Some(refused) if known.taken < refused => known.strongest = taken,
            Some(_) if known.prompts.len() < KEPT => {
                known.prompts.insert(prompt.to_owned(), taken);
            }
            Some(_) | None => {}
        }
        known.taken = known.taken.max(taken);
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
