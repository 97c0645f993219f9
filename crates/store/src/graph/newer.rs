//! The runs that the view lacks.

use super::EmbeddedGraph;
use crate::keys;
use crate::tables::read_failed;
use crate::view::{Overlay, QueryError, View};
use std::collections::BTreeSet;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, SessionId, Workspace};
use trellis_orchestrator::ports::JournalError;
use trellis_provenance::iri;

/// The runs laid over the view during one query.
pub(super) struct Newer<'a> {
    graph: &'a EmbeddedGraph,
    workspace: Workspace,
    runs: BTreeSet<RunId>,
}

impl EmbeddedGraph {
    /// The runs of a workspace that the view lacks: finished since its cursor, or still open.
    pub(super) fn overlay(&self, view: &View, workspace: &Workspace) -> Result<Newer<'_>, QueryError> {
        let runs = self.newer_than(workspace, view.cursor()?.number)?;
        Ok(Newer { graph: self, workspace: workspace.clone(), runs })
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

impl Newer<'_> {
    pub(super) fn count(&self) -> usize {
        self.runs.len()
    }

    /// Runs of the same conversation: a question that follows on another one names it.
    fn of_conversation(&self, run: &RunId) -> Result<Vec<RunId>, JournalError> {
        let reader = self.graph.journal.tables.read();
        let conversation = reader.run(&self.workspace, run)?.and_then(|summary| summary.conversation);
        let Some(conversation) = conversation else { return Ok(Vec::new()) };
        let list = keys::conversation(&self.workspace, &conversation);
        let mut runs = Vec::new();
        for row in reader.index_prefix(&list) {
            let run = keys::listed_run(&row.key().map_err(read_failed)?, &list);
            runs.extend(run.filter(|run| self.runs.contains(run)));
        }
        Ok(runs)
    }
}

impl Overlay for Newer<'_> {
    fn runs(&self) -> Vec<String> {
        self.runs.iter().map(|run| run.as_str().to_owned()).collect()
    }

    fn run_of(&self, iri: &str) -> Option<String> {
        let session = SessionId::new(iri::session_of(iri)?).ok()?;
        let run = self.graph.journal.tables.read().run_of(&self.workspace, &session).unwrap_or_else(|error| {
            tracing::error!(%error, %session, "a session could not be read");
            None
        })?;
        self.runs.contains(&run).then(|| run.as_str().to_owned())
    }

    fn runs_naming(&self, iri: &str) -> Vec<String> {
        let mut runs: BTreeSet<String> = self.run_of(iri).into_iter().collect();
        let session = iri::session_of(iri).and_then(|session| SessionId::new(session).ok());
        if let Some(question) = session.filter(|_| iri::path_of(iri).is_none()) {
            let following = self.of_conversation(&question).unwrap_or_else(|error| {
                tracing::error!(%error, run = %question, "a conversation could not be read");
                Vec::new()
            });
            runs.extend(following.into_iter().map(|run| run.as_str().to_owned()));
        }
        runs.into_iter().collect()
    }

    fn project(&self, run: &str) -> Vec<Quad> {
        let quads = RunId::new(run).ok().map(|run| self.graph.project(&self.workspace, &run));
        match quads {
            Some(Ok(quads)) => quads.to_vec(),
            Some(Err(error)) => {
                tracing::error!(%error, run, "a run could not be projected");
                Vec::new()
            }
            None => Vec::new(),
        }
    }
}
