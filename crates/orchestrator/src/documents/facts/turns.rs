//! Whose facts are taken, and who waits for that: a document is in memory with all its passages until its facts are there,
//! and each of its passages is paid for.

use crate::documents::{Entered, Gate};
use crate::ports::KnowledgePlace;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Workspace;

/// Documents whose facts are extracted at once, in all and of one workspace, and how long one waits for its turn.
const AT_ONCE: (usize, usize) = (8, 2);
const WAITING: Duration = Duration::from_mins(1);
/// The same with those that wait. For more there is no room in memory.
const KEPT: (usize, usize) = (16, 4);

/// A document of a collection.
type Known = (KnowledgePlace, String);

/// Who may have facts taken.
#[derive(Debug, Clone)]
pub(super) struct Turns {
    kept: Gate,
    at_work: Gate,
    /// The documents whose facts are being taken, or which wait for that.
    documents: Arc<Mutex<BTreeSet<Known>>>,
}

/// Room in memory for what facts are taken from. Documents that are loaded together share one.
#[derive(Debug, Clone)]
pub(in crate::documents) struct Room {
    _entered: Arc<Entered>,
}

/// The right to have the facts of a document taken.
#[derive(Debug)]
pub(super) struct Turn {
    _alone: Alone,
    _entered: Entered,
}

/// Nobody else takes facts of the same document meanwhile.
#[derive(Debug)]
struct Alone {
    documents: Arc<Mutex<BTreeSet<Known>>>,
    known: Known,
}

impl Default for Turns {
    fn default() -> Self {
        let gate = |(all, of_one)| Gate::new(all, of_one, WAITING);
        Self { kept: gate(KEPT), at_work: gate(AT_ONCE), documents: Arc::default() }
    }
}

impl Turns {
    /// None if there are enough that wait already.
    pub(super) fn room(&self, workspace: &Workspace) -> Option<Room> {
        self.kept.try_enter(workspace).map(|entered| Room { _entered: Arc::new(entered) })
    }

    /// None if somebody is at this very document, or it is not its turn in time.
    pub(super) async fn begin(&self, place: &KnowledgePlace, document: &str) -> Option<Turn> {
        let known = (place.clone(), document.to_owned());
        if !self.documents.lock().insert(known.clone()) {
            return None;
        }
        let alone = Alone { documents: Arc::clone(&self.documents), known };
        let entered = self.at_work.enter(&place.workspace).await?;
        Some(Turn { _alone: alone, _entered: entered })
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.documents.lock().remove(&self.known);
    }
}
