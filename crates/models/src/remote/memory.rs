//! What a model was found to take. It is tried again after an hour: a server may be updated, and a refusal misread.

use super::Strength;
use super::members::KEPT as KEPT_FOR;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
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
    /// What the provider said when it refused more.
    why: Option<Arc<str>>,
    /// The strongest form that was ever taken.
    taken: Strength,
    prompts: BTreeMap<String, (Strength, Arc<str>)>,
}

/// A form that was refused, and the provider's words.
#[derive(Debug, Clone)]
pub(super) struct RefusedForm {
    pub(super) strength: Strength,
    pub(super) why: Arc<str>,
}

impl Default for Known {
    fn default() -> Self {
        Self { since: None, strongest: Strength::Strict, why: None, taken: Strength::Free, prompts: BTreeMap::new() }
    }
}

impl Known {
    fn forget_after_an_hour(&mut self) {
        if self.since.is_some_and(|since| since.elapsed() >= KEPT_FOR) {
            *self = Self { taken: self.taken, ..Self::default() };
        }
    }
}

impl Memory {
    /// The strongest form that is worth trying.
    pub(super) fn strongest(&self, prompt: &str) -> Strength {
        let mut known = self.0.lock();
        known.forget_after_an_hour();
        known.prompts.get(prompt).map_or(known.strongest, |(strongest, _)| known.strongest.min(*strongest))
    }

    /// Why a stronger form is not tried; none if the strongest is.
    pub(super) fn why_not(&self, prompt: &str) -> Option<Arc<str>> {
        let mut known = self.0.lock();
        known.forget_after_an_hour();
        known.prompts.get(prompt).map(|(_, why)| why).or(known.why.as_ref()).cloned()
    }

    /// A request was taken in one form after it was refused in another.
    pub(super) fn learn(&self, prompt: &str, refused: Option<RefusedForm>, taken: Strength) {
        let mut known = self.0.lock();
        if refused.is_some() {
            known.since.get_or_insert_with(Instant::now);
        }
        match refused {
            Some(refused) if known.taken < refused.strength => {
                (known.strongest, known.why) = (taken, Some(refused.why));
            }
            Some(refused) if known.prompts.len() < KEPT => {
                known.prompts.insert(prompt.to_owned(), (taken, refused.why));
            }
            Some(_) | None => {}
        }
        known.taken = known.taken.max(taken);
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
