//! How a view that is kept outside a store follows its runs.

use std::collections::BTreeSet;
use trellis_domain::{Hash, RunId, Workspace};
use trellis_orchestrator::ports::{BoxFuture, JournalError};

/// Runs that have ended, and where to go on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndedPage {
    pub runs: BTreeSet<(Workspace, RunId)>,
    /// What was asked for if nothing lies behind it. A page may have no runs although there is more behind it.
    pub next: u64,
}

/// The runs of a store in the order in which they ended. Places in it are numbers that only the store understands, but
/// for 0, which is its beginning.
pub trait EndedRuns: Send + Sync + std::fmt::Debug {
    /// The first runs that have ended behind a place. A run may come more than once.
    fn ended(&self, behind: u64, limit: usize) -> BoxFuture<'_, Result<EndedPage, JournalError>>;

    /// The runs of a workspace that somebody lacks who has all that ended up to a place: they ended behind it, or are
    /// still open.
    fn newer<'a>(
        &'a self,
        workspace: &'a Workspace,
        behind: u64,
    ) -> BoxFuture<'a, Result<BTreeSet<RunId>, JournalError>>;

    /// What tells this history up to a place from any other: another store, or an older copy of this one, has another or
    /// none.
    fn identity(&self, place: u64) -> BoxFuture<'_, Result<Option<Hash>, JournalError>>;
}
