//! What a committer remembers of sessions, so that it reads only what is new.

use std::collections::HashMap;
use trellis_domain::{SessionId, Workspace};
use trellis_orchestrator::ledger::SessionHead;

pub(crate) type Place = (Workspace, SessionId);

/// In two generations: what was not used for one is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    hot: HashMap<Place, SessionHead>,
    cold: HashMap<Place, SessionHead>,
}

impl Heads {
    /// So many sessions of a generation.
    const MOST: usize = 4_096;

    /// Takes what is known of a session. It is put back when it is certain that it is still so.
    pub(crate) fn take(&mut self, place: &Place) -> SessionHead {
        self.hot.remove(place).or_else(|| self.cold.remove(place)).unwrap_or_default()
    }

    pub(crate) fn put(&mut self, place: Place, head: SessionHead) {
        if self.hot.len() >= Self::MOST {
            self.cold = std::mem::take(&mut self.hot);
        }
        self.hot.insert(place, head);
    }
}
