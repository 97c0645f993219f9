//! The materialised graph: an index of all quads of finished runs, and SPARQL over it.
//!
//! It has a database of its own and owns nothing that cannot be derived again: clear it or delete
//! its folder, and absorbing the runs anew gives the same bytes. It does not know how quads are
//! projected, nor which runs exist; it is told, together with a cursor that says how far.
//!
//! A batch of runs and the cursor are one atomic write. Batches are not synced one by one: after a
//! power cut the view may be some batches behind, and its cursor says so. fjall syncs its journal
//! before it flushes a memtable, so no part of a batch can outlive the rest.

mod additions;
pub mod answer;
mod attendant;
mod convert;
mod dataset;
mod evaluate;
mod matching;
mod merge;
mod order;
mod overlay;
mod query;
mod reader;
mod recent_terms;
mod remote;
mod session;
mod size;
mod source;
mod survey;
mod tables;
mod term_id;
mod wire;
mod worker;

#[cfg(test)]
mod evaluate_tests;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod overlay_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod query_tests;
#[cfg(test)]
mod term_id_tests;
#[cfg(test)]
mod view_tests;

pub use overlay::{NoOverlay, Overlay};
pub use query::{Bounds, Cancellation, QueryError};
pub use term_id::TermId;
pub use worker::work;

pub(crate) use attendant::Unanswered;
pub(crate) use size::Size;
pub(crate) use worker::Job;

use additions::Additions;
use fjall::Database;
use reader::{Reader, TermKey};
use recent_terms::RecentTerms;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use tables::{Tables, open_database};
use term_id::WorkspaceId;
use trellis_domain::rdf::Quad;

/// Shorter than any index prefix, so that no scan takes it for a quad.
const CURSOR_KEY: &[u8] = b"cursor";
const RECENT_TERMS: usize = 8_192;

/// What a run adds to the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunQuads {
    pub workspace: String,
    pub quads: Vec<Quad>,
}

#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    #[error("the graph view's database failed")]
    Engine(#[from] fjall::Error),
    #[error("the graph view knows no term {id}; rebuild it")]
    TermMissing { id: TermId },
    #[error("the graph view's term {id} is damaged; rebuild it")]
    TermDamaged { id: TermId },
    #[error("the graph view has a damaged key {key:02x?}; rebuild it")]
    KeyDamaged { key: Vec<u8> },
}

/// The index. Readers and the one writer do not block each other.
///
/// ```
/// use trellis_domain::rdf::{Quad, Term};
/// use trellis_orchestrator::ports::QuadPattern;
/// use trellis_store::view::{Bounds, NoOverlay, RunQuads, View};
///
/// let folder = tempfile::tempdir()?;
/// let view = View::open(folder.path())?;
/// let quad = Quad { s: Term::iri("urn:s"), p: Term::iri("urn:p"), o: Term::literal("o"), g: None };
/// view.absorb(&[RunQuads { workspace: "w".into(), quads: vec![quad] }], 1)?;
///
/// let about = QuadPattern { s: Some(Term::iri("urn:s")), ..QuadPattern::default() };
/// let known = view.matching("w", &about, &NoOverlay, &Bounds::default())?;
/// assert_eq!((known.len(), view.cursor()?), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct View {
    db: Database,
    tables: RwLock<Tables>,
    /// Held while writing; knows which terms need no second write.
    recent_terms: Mutex<RecentTerms<TermKey>>,
    visited: Arc<AtomicU64>,
}

impl View {
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ViewError> {
        let db = open_database(path.as_ref())?;
        let tables = RwLock::new(Tables::open(&db)?);
        let recent_terms = Mutex::new(RecentTerms::new(RECENT_TERMS));
        Ok(Self { db, tables, recent_terms, visited: Arc::default() })
    }

    /// How far the view is: what [`View::absorb`] was last told, 0 in an empty view.
    pub fn cursor(&self) -> Result<u64, ViewError> {
        let stored = self.tables().quads.get(CURSOR_KEY)?;
        Ok(stored.and_then(|bytes| Some(u64::from_be_bytes(bytes.as_ref().try_into().ok()?))).unwrap_or(0))
    }

    /// Adds the quads and moves the cursor, both or neither. Absorbing again what is there changes
    /// nothing; the cursor never goes back.
    pub fn absorb(&self, runs: &[RunQuads], cursor: u64) -> Result<(), ViewError> {
        let mut recent_terms = self.writer();
        let cursor = cursor.max(self.cursor()?);
        let tables = self.tables();
        let mut batch = self.db.batch();
        let new_terms = Additions::of(runs, &mut recent_terms).write(&mut batch, &tables);
        batch.insert(&tables.quads, CURSOR_KEY, cursor.to_be_bytes());
        batch.commit()?;
        // Only now: a term of a failed batch must be written again.
        for key in new_terms {
            recent_terms.remember(key);
        }
        Ok(())
    }

    /// Forgets everything, for a rebuild. Queries under way finish on what they began with.
    pub fn clear(&self) -> Result<(), ViewError> {
        let mut recent_terms = self.writer();
        let renewed = self.tables().renew(&self.db)?;
        *self.tables.write().expect("no holder of this lock panics") = renewed;
        recent_terms.forget_all();
        Ok(())
    }

    /// Index keys read since the view was opened: what a query costs, free of clock and cache.
    pub fn keys_visited(&self) -> u64 {
        self.visited.load(Ordering::Relaxed)
    }

    fn reader(&self, workspace: &str, cancellation: Cancellation) -> Reader {
        let (tables, visited) = (self.tables(), Arc::clone(&self.visited));
        Reader::new(self.db.snapshot(), tables, WorkspaceId::of(workspace), cancellation, visited)
    }

    fn tables(&self) -> Tables {
        self.tables.read().expect("no holder of this lock panics").clone()
    }

    fn writer(&self) -> MutexGuard<'_, RecentTerms<TermKey>> {
        self.recent_terms.lock().expect("no holder of this lock panics")
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").finish_non_exhaustive()
    }
}
