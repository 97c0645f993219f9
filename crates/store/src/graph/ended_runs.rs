//! What a view follows that is kept outside the folder.

use super::EmbeddedGraph;
use super::identity::identity_at;
use std::collections::BTreeSet;
use trellis_domain::{Hash, RunId, Workspace};
use trellis_orchestrator::ports::{BoxFuture, JournalError};
use trellis_queries::{EndedPage, EndedRuns};

impl EmbeddedGraph {
    async fn off_the_runtime<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Self) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let graph = self.clone();
        let reading = tokio::task::spawn_blocking(move || read(&graph));
        reading.await.map_err(|error| JournalError::Read(error.to_string()))?
    }
}

/// A place is the number of the commit that ended a run.
impl EndedRuns for EmbeddedGraph {
    fn ended(&self, behind: u64, limit: usize) -> BoxFuture<'_, Result<EndedPage, JournalError>> {
        Box::pin(self.off_the_runtime(move |graph| {
            let (runs, next) = graph.finished_after(behind, limit)?;
            Ok(EndedPage { runs, next })
        }))
    }

    fn newer<'a>(
        &'a self,
        workspace: &'a Workspace,
        behind: u64,
    ) -> BoxFuture<'a, Result<BTreeSet<RunId>, JournalError>> {
        let workspace = workspace.clone();
        Box::pin(self.off_the_runtime(move |graph| graph.newer_than(&workspace, behind)))
    }

    fn identity(&self, place: u64) -> BoxFuture<'_, Result<Option<Hash>, JournalError>> {
        Box::pin(self.off_the_runtime(move |graph| identity_at(&graph.journal.tables, place)))
    }
}
