//! Which turns are in hand.

use crate::ports::TurnKey;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use trellis_domain::{RunId, Workspace};

/// At most one task of this process handles a turn.
#[derive(Debug, Default)]
pub(crate) struct Claims(Mutex<HashSet<TurnKey>>);

pub(crate) struct Claim {
    claims: Arc<Claims>,
    turn: TurnKey,
}

impl Claims {
    fn set(&self) -> std::sync::MutexGuard<'_, HashSet<TurnKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn claim(claims: &Arc<Self>, turn: &TurnKey) -> Option<Claim> {
        let new = claims.set().insert(turn.clone());
        new.then(|| Claim { claims: Arc::clone(claims), turn: turn.clone() })
    }

    pub(crate) fn holds(&self, turn: &TurnKey) -> bool {
        self.set().contains(turn)
    }

    /// The runs of a workspace whose turns are handled.
    pub(crate) fn runs(&self, workspace: &Workspace) -> HashSet<RunId> {
        self.set().iter().filter(|turn| turn.scope.workspace == *workspace).map(|turn| turn.run.clone()).collect()
    }

    pub(crate) fn held(&self) -> Vec<TurnKey> {
        self.set().iter().cloned().collect()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.set().remove(&self.turn);
    }
}
