//! The runs that the view lacks.

use super::EmbeddedGraph;
use crate::keys;
use crate::tables::read_failed;
use crate::view::{QueryError, View};
use std::collections::BTreeSet;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::ports::{GraphError, JournalError};
use trellis_queries::{Newer, StoredRuns};

/// The runs of a workspace during one query.
pub(super) struct RunsHere<'a> {
    graph: &'a EmbeddedGraph,
    workspace: Workspace,
}

impl EmbeddedGraph {
    /// The runs of a workspace that the view lacks: finished since its cursor, or still open.
    pub(super) fn overlay(&self, view: &View, workspace: &Workspace) -> Result<Newer<RunsHere<'_>>, QueryError> {
        let runs = self.newer_than(workspace, view.cursor()?.number)?;
        Ok(Newer::new(RunsHere { graph: self, workspace: workspace.clone() }, runs))
    }

    /// The runs of a workspace that have finished behind a cursor, or are still open.
    pub(super) fn newer_than(&self, workspace: &Workspace, cursor: u64) -> Result<BTreeSet<RunId>, JournalError> {
        let of_workspace = |(found, run): (Workspace, RunId)| (found == *workspace).then_some(run);
        // Open runs first: one that finishes meanwhile is then among the finished.
        let mut runs: BTreeSet<RunId> = {
            let turns = self.journal.shared.turns();
            turns.keys().filter(|turn| turn.scope.workspace == *workspace).map(|turn| turn.run.clone()).collect()
        };
        let (finished, _) = self.finished_after(cursor, usize::MAX)?;
        runs.extend(finished.into_iter().filter_map(of_workspace));
        Ok(runs)
    }
}

impl StoredRuns for RunsHere<'_> {
    type Error = GraphError;

    fn run_of(&self, node: &str) -> Result<Option<RunId>, GraphError> {
        self.graph.run_of(&self.workspace, node)
    }

    fn conversation_of(&self, run: &RunId) -> Result<Vec<RunId>, GraphError> {
        let reader = self.graph.journal.tables.read();
        let conversation = reader.run(&self.workspace, run)?.and_then(|summary| summary.conversation);
        let Some(conversation) = conversation else { return Ok(Vec::new()) };
        let list = keys::conversation(&self.workspace, &conversation);
        let mut runs = Vec::new();
        for row in reader.index_prefix(&list) {
            runs.extend(keys::listed_run(&row.key().map_err(read_failed)?, &list));
        }
        Ok(runs)
    }

    fn quads_of(&self, run: &RunId) -> Result<Vec<Quad>, GraphError> {
        Ok(self.graph.project(&self.workspace, run)?.to_vec())
    }
}
