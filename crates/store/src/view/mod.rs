//! The materialised graph: an index of all quads of finished runs, and SPARQL over it.
//!
//! It has a database of its own and owns nothing that cannot be derived again: clear it or delete
//! its folder, and absorbing the runs anew gives the same bytes. It does not know how quads are
//! projected, nor which runs exist; it is told, together with a cursor that says how far.
//!
//! A batch of runs and the cursor are one atomic write. Batches are in memory at first: after a crash the view may be
//! some of them behind, and its cursor says so. The cursor also says which log it means, so that a view of another
//! one, or of one that was put back to an earlier state, is noticed.

mod additions;
mod asserted;
mod compare;
mod cursor;
mod matching;
mod reader;
mod recent_terms;
mod sources;
mod trees;

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

pub use cursor::Cursor;
pub use trellis_queries::{Bounds, CancelOnDrop, Cancellation, NoOverlay, Overlay, QueryError, TermId, answer, work};

pub(crate) use asserted::Asserted;
pub(crate) use compare::Comparison;
pub(crate) use sources::LoadedReaders;
pub(crate) use trellis_queries::{Job, Size, Unanswered};

use crate::engine_fault::EngineFault;
use additions::Additions;
use reader::{TermKey, ViewReader};
use recent_terms::RecentTerms;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use term_id::WorkspaceId;
use trees::Trees;
use trellis_domain::rdf::Quad;
use trellis_orchestrator::ports::{GraphError, JournalError};
use trellis_queries::{IndexFault, merge, order, overlay, query, source, term_id};
#[cfg(test)]
use trellis_queries::{convert, evaluate};

const RECENT_TERMS: usize = 8_192;

/// What a run adds to the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunQuads {
    pub workspace: String,
    pub quads: Vec<Quad>,
}

#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    #[error("the graph view's files cannot be used: {0}")]
    Files(#[from] std::io::Error),
    #[error("the graph view's database failed: {0}")]
    Engine(lsm_tree::Error),
    #[error("the graph view is damaged: {0}")]
    Damaged(String),
    #[error("the graph view knows no term {id}; rebuild it")]
    TermMissing { id: TermId },
    #[error("the graph view's term {id} is damaged; rebuild it")]
    TermDamaged { id: TermId },
    #[error("the graph view has a damaged key {key:02x?}; rebuild it")]
    KeyDamaged { key: Vec<u8> },
}

impl ViewError {
    /// Whether the view itself is wrong, so that it has to be derived anew; else the machine is.
    pub fn is_damage(&self) -> bool {
        let Self::Files(error) = self else { return true };
        // A file that is shorter than it was, or gone.
        matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::NotFound | ErrorKind::InvalidData)
    }
}

impl ViewError {
    /// The same, where it concerns loaded knowledge.
    pub(crate) fn of_loaded(self) -> JournalError {
        sources::loaded_failed(self)
    }
}

impl From<ViewError> for QueryError {
    fn from(error: ViewError) -> Self {
        IndexFault { is_damage: error.is_damage(), reason: error.to_string() }.into()
    }
}

impl From<ViewError> for GraphError {
    fn from(error: ViewError) -> Self {
        Self::Index(error.to_string())
    }
}

impl From<EngineFault> for ViewError {
    fn from(fault: EngineFault) -> Self {
        match fault {
            EngineFault::Io(error) => Self::Files(error),
            EngineFault::Damaged(what) => Self::Damaged(what),
        }
    }
}

impl From<lsm_tree::Error> for ViewError {
    fn from(error: lsm_tree::Error) -> Self {
        if let lsm_tree::Error::Io(error) = error { Self::Files(error) } else { Self::Engine(error) }
    }
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
/// assert_eq!((known.len(), view.cursor()?.number), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct View {
    path: PathBuf,
    projection: u32,
    trees: RwLock<Arc<Trees>>,
    /// Held while writing; knows which terms need no second write.
    recent_terms: Mutex<RecentTerms<TermKey>>,
    visited: Arc<AtomicU64>,
}

impl View {
    /// Opens the view of what [`trellis_patterns::project`] makes of runs.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ViewError> {
        Self::open_for(path, trellis_provenance::PROJECTION)
    }

    /// Opens the view of a projection with this number. What another projection left there is removed.
    pub fn open_for(path: impl AsRef<Path>, projection: u32) -> Result<Self, ViewError> {
        let path = path.as_ref().to_owned();
        let trees = RwLock::new(Arc::new(Trees::open(&path, projection)?));
        let recent_terms = Mutex::new(RecentTerms::new(RECENT_TERMS));
        Ok(Self { path, projection, trees, recent_terms, visited: Arc::default() })
    }

    /// How far the view is: what [`View::absorb`] was last told, zero in an empty view.
    pub fn cursor(&self) -> Result<Cursor, ViewError> {
        Cursor::read(&self.trees().snapshot())
    }

    /// Adds the quads of whole runs and moves the cursor, both or neither. What a run said before and does not say any
    /// more is removed. Absorbing again what is there changes nothing; the cursor never goes back.
    pub fn absorb(&self, runs: &[RunQuads], cursor: impl Into<Cursor>) -> Result<(), ViewError> {
        let mut recent_terms = self.writer();
        let trees = self.trees();
        // Before anything is added: what finds no room on disk must not fill the memory.
        trees.make_room()?;
        let mut by_workspace: BTreeMap<&str, Vec<&RunQuads>> = BTreeMap::new();
        for run in runs {
            by_workspace.entry(&run.workspace).or_default().push(run);
        }
        let mut all = Vec::with_capacity(by_workspace.len());
        for (workspace, runs) in by_workspace {
            let mut additions = Additions::of(workspace, runs.into_iter(), &mut recent_terms);
            additions.find_stale(&self.reader(workspace, Cancellation::default()))?;
            all.push(additions);
        }
        let cursor = cursor.into().max(self.cursor()?);
        let writing = trees.write();
        for additions in all {
            let (written, removed) = additions.write(&writing);
            for key in written {
                recent_terms.remember(key);
            }
            for key in &removed {
                recent_terms.forget(key);
            }
        }
        cursor.write(&writing);
        writing.show();
        Ok(())
    }

    /// Forgets everything, for a rebuild. Queries under way finish on what they began with.
    pub fn clear(&self) -> Result<(), ViewError> {
        let mut recent_terms = self.writer();
        let renewed = Arc::new(self.trees().renew(&self.path, self.projection)?);
        *self.trees.write().expect("no holder of this lock panics") = renewed;
        recent_terms.forget_all();
        Ok(())
    }

    /// Writes everything anew, so that the disk has nothing left of what was removed.
    pub fn purge(&self) -> Result<(), ViewError> {
        let _alone = self.writer();
        self.trees().purge()
    }

    /// Every file of the view at this place against its checksum: what is wrong with which. None if there is no view.
    pub(crate) fn damages(path: &Path) -> std::io::Result<Option<Vec<String>>> {
        trees::damages(path, trellis_provenance::PROJECTION)
    }

    /// The view as of now, to be held against what it was derived from.
    pub(crate) fn compare(&self) -> Comparison {
        Comparison::new(self.trees().snapshot())
    }

    /// Index keys read since the view was opened: what a query costs, free of clock and cache.
    pub fn keys_visited(&self) -> u64 {
        self.visited.load(Ordering::Relaxed)
    }

    fn reader(&self, workspace: &str, cancellation: Cancellation) -> ViewReader {
        let visited = Arc::clone(&self.visited);
        ViewReader::new(Arc::new(self.trees().snapshot()), WorkspaceId::of(workspace), cancellation, visited)
    }

    fn trees(&self) -> Arc<Trees> {
        Arc::clone(&self.trees.read().expect("no holder of this lock panics"))
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
