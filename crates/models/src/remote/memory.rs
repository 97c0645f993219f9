//! What a model was found to take, for as long as the process runs.

use super::Strength;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Prompts that are remembered; a workspace has a dozen.
const KEPT: usize = 256;

/// Remembers refusals, so that each is paid for with one round trip only. Where nothing was ever taken in a form, a
/// refusal counts for all prompts: the server does not know it. Where something was, it counts for the prompt: its
/// schema is odd.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<Known>);

#[derive(Debug)]
struct Known {
    strongest: Strength,
    /// The strongest form that was ever taken.
    taken: Strength,
    prompts: BTreeMap<String, Strength>,
}

impl Default for Known {
    fn default() -> Self {
        Self { strongest: Strength::Strict, taken: Strength::Free, prompts: BTreeMap::new() }
    }
}

impl Memory {
    /// The strongest form that is worth trying.
    pub(super) fn strongest(&self, prompt: &str) -> Strength {
        let known = self.0.lock();
        known.prompts.get(prompt).map_or(known.strongest, |strongest| known.strongest.min(*strongest))
    }

    /// A request was taken in one form after it was refused in another.
    pub(super) fn learn(&self, prompt: &str, refused: Option<Strength>, taken: Strength) {
        let mut known = self.0.lock();
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
