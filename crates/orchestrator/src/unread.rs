//! How often something of a turn could not be read.

use crate::ports::TurnKey;
use parking_lot::Mutex;
use std::collections::HashMap;

/// How often something of a turn could not be read.
#[derive(Debug, Default)]
pub(crate) struct Unread(Mutex<HashMap<TurnKey, u32>>);

impl Unread {
    pub(crate) fn count(&self, turn: &TurnKey) -> u32 {
        let mut counts = self.0.lock();
        let count = counts.entry(turn.clone()).or_default();
        *count += 1;
        *count
    }

    pub(crate) fn forget(&self, turn: &TurnKey) {
        self.0.lock().remove(turn);
    }
}
