//! The graph of a folder: run-scoped projection, always current, and SPARQL over all runs.
//!
//! The view holds finished runs up to a cursor; what is newer or still open is laid over it, so that a
//! query sees everything that was committed before it began.

use crate::journal::EmbeddedJournal;
use crate::keys::{self, prefix};
use crate::tables::read_failed;
use crate::view::{Answer, Overlay, QueryError, QueryLimits, RunQuads, View, ViewError};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, SessionId, Workspace};
use trellis_orchestrator::ports::JournalError;
use trellis_provenance::{iri, project};

/// Runs that are absorbed into the view in one batch.
const BATCH: usize = 64;

#[derive(Debug)]
pub struct Graph {
    view: View,
    journal: EmbeddedJournal,
    /// One absorber at a time.
    absorbing: Mutex<()>,
}

#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    View(#[from] ViewError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl Graph {
    pub(crate) fn open(path: &Path, journal: EmbeddedJournal) -> Result<Self, ViewError> {
        Ok(Self { view: View::open(path)?, journal, absorbing: Mutex::default() })
    }

    /// The quads of one run, projected from its records.
    pub fn run(&self, workspace: &Workspace, run: &RunId) -> Result<Vec<Quad>, JournalError> {
        Ok(project(&self.journal.tables.read().events(workspace, run, 0, usize::MAX)?))
    }

    /// Takes finished runs into the view. How many; blocks until the view has caught up.
    pub fn catch_up(&self) -> Result<usize, GraphError> {
        let _alone = self.absorbing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut absorbed = 0;
        loop {
            let (runs, cursor) = self.finished_after(self.view.cursor()?, BATCH)?;
            if runs.is_empty() {
                return Ok(absorbed);
            }
            let mut quads = Vec::with_capacity(runs.len());
            for (workspace, run) in &runs {
                // A run that cannot be read must not keep all others out of the graph.
                match self.run(workspace, run) {
                    Ok(found) => quads.push(RunQuads { workspace: workspace.as_str().to_owned(), quads: found }),
                    Err(error) => tracing::error!(%error, %run, "a run could not be projected"),
                }
            }
            self.view.absorb(&quads, cursor)?;
            absorbed += runs.len();
        }
    }

    /// How many finished runs the view lacks.
    pub fn lag(&self) -> Result<usize, GraphError> {
        Ok(self.finished_after(self.view.cursor()?, usize::MAX)?.0.len())
    }

    /// Forgets the view and derives it anew.
    pub fn rebuild(&self) -> Result<usize, GraphError> {
        self.view.clear()?;
        self.catch_up()
    }

    /// Answers a SPARQL query over all runs of a workspace. Blocks until done.
    pub fn query(&self, workspace: &Workspace, sparql: &str, limits: &QueryLimits) -> Result<Answer, GraphError> {
        let overlay = self.overlay(workspace)?;
        Ok(self.view.query(workspace.as_str(), sparql, &overlay, limits)?)
    }

    /// Finished runs behind a cursor, and the cursor behind them.
    fn finished_after(&self, cursor: u64, limit: usize) -> Result<(BTreeSet<(Workspace, RunId)>, u64), JournalError> {
        let range = keys::numbered(prefix::FINISHED, cursor + 1)..=keys::numbered(prefix::FINISHED, u64::MAX);
        let (mut runs, mut last) = (BTreeSet::new(), cursor);
        let reader = self.journal.tables.read();
        for row in reader.index_range(range) {
            let (key, value) = row.into_inner().map_err(read_failed)?;
            runs.extend(keys::read_finished(&value));
            last = keys::number(&key).unwrap_or(last);
            if runs.len() >= limit {
                break;
            }
        }
        Ok((runs, last))
    }

    /// The runs of a workspace that the view lacks: finished since its cursor, or still open.
    fn overlay(&self, workspace: &Workspace) -> Result<Newer<'_>, GraphError> {
        let of_workspace = |(found, run): (Workspace, RunId)| (found == *workspace).then_some(run);
        // Open runs first: one that finishes meanwhile is then among the finished.
        let mut runs: BTreeSet<RunId> = {
            let turns = self.journal.shared.turns();
            turns.keys().filter(|turn| turn.scope.workspace == *workspace).map(|turn| turn.run.clone()).collect()
        };
        let (finished, _) = self.finished_after(self.view.cursor()?, usize::MAX)?;
        runs.extend(finished.into_iter().filter_map(of_workspace));
        Ok(Newer { graph: self, workspace: workspace.clone(), runs })
    }
}

/// The runs laid over the view during one query.
struct Newer<'a> {
    graph: &'a Graph,
    workspace: Workspace,
    runs: BTreeSet<RunId>,
}

impl Overlay for Newer<'_> {
    fn runs(&self) -> Vec<String> {
        self.runs.iter().map(|run| run.as_str().to_owned()).collect()
    }

    fn run_of(&self, iri: &str) -> Option<String> {
        let session = SessionId::new(iri::session_of(iri)?).ok()?;
        // A root session is its run; a subagent's records name theirs.
        let run = if self.runs.contains(&session) {
            session
        } else {
            let records = self.graph.journal.tables.read().session(&self.workspace, &session).ok()?;
            records.first()?.header.run.clone()
        };
        self.runs.contains(&run).then(|| run.as_str().to_owned())
    }

    fn project(&self, run: &str) -> Vec<Quad> {
        let quads = RunId::new(run).ok().map(|run| self.graph.run(&self.workspace, &run));
        match quads {
            Some(Ok(quads)) => quads,
            Some(Err(error)) => {
                tracing::error!(%error, run, "a run could not be projected");
                Vec::new()
            }
            None => Vec::new(),
        }
    }
}
