//! The runs that the view at the endpoint lacks, laid over it.

use crate::graph::Followed;
use crate::reading::Terms;
use std::rc::Rc;
use tokio::runtime::Handle;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, SessionId, Workspace};
use trellis_orchestrator::ports::{JournalError, RunFilter};
use trellis_patterns::project;
use trellis_provenance::iri;
use trellis_queries::{Newer, QueryError, StoredRuns};

/// Runs of a conversation that are asked for together.
const PAGE: usize = 100;

/// The runs of a workspace in the store. All methods block: it is for threads that may.
pub(crate) struct RunsThere<'a> {
    followed: &'a Followed,
    workspace: Workspace,
    /// What is laid over the view leads into it.
    terms: Rc<Terms>,
}

/// The runs of a workspace that the view lacks which has those that ended up to a place.
pub(crate) fn of<'a>(
    followed: &'a Followed,
    workspace: &Workspace,
    behind: u64,
    terms: &Rc<Terms>,
) -> Result<Newer<RunsThere<'a>>, QueryError> {
    let runs = Handle::current().block_on(followed.ended.newer(workspace, behind))?;
    Ok(Newer::new(RunsThere { followed, workspace: workspace.clone(), terms: Rc::clone(terms) }, runs))
}

/// The run that a node belongs to.
pub(crate) async fn run_of(
    followed: &Followed,
    workspace: &Workspace,
    node: &str,
) -> Result<Option<RunId>, JournalError> {
    let Some(session) = iri::session_of(node).and_then(|session| SessionId::new(session).ok()) else {
        return Ok(None);
    };
    let log = followed.journal.load(workspace, &session).await?;
    Ok(log.and_then(|log| log.records.first().map(|record| record.header.run.clone())))
}

/// What a run says.
pub(crate) async fn quads_of(
    followed: &Followed,
    workspace: &Workspace,
    run: &RunId,
) -> Result<Vec<Quad>, JournalError> {
    let records = followed.journal.events(workspace, run, 0, usize::MAX).await?;
    let projected = tokio::task::spawn_blocking(move || project(&records)).await;
    projected.map_err(|error| JournalError::Read(error.to_string()))
}

impl StoredRuns for RunsThere<'_> {
    type Error = JournalError;

    fn run_of(&self, node: &str) -> Result<Option<RunId>, JournalError> {
        Handle::current().block_on(run_of(self.followed, &self.workspace, node))
    }

    fn conversation_of(&self, run: &RunId) -> Result<Vec<RunId>, JournalError> {
        Handle::current().block_on(async {
            let journal = &self.followed.journal;
            let summary = journal.run(&self.workspace, run).await?;
            let Some(conversation) = summary.and_then(|summary| summary.conversation) else { return Ok(Vec::new()) };
            let filter = RunFilter { conversation: Some(conversation), ..RunFilter::default() };
            let (mut runs, mut cursor) = (Vec::new(), None);
            loop {
                let page = journal.runs(&self.workspace, &filter, cursor.as_deref(), PAGE).await?;
                runs.extend(page.runs.into_iter().map(|run| run.run));
                cursor = page.next;
                if cursor.is_none() {
                    return Ok(runs);
                }
            }
        })
    }

    fn quads_of(&self, run: &RunId) -> Result<Vec<Quad>, JournalError> {
        let quads = Handle::current().block_on(quads_of(self.followed, &self.workspace, run))?;
        for quad in &quads {
            self.terms.note_quad(quad);
        }
        Ok(quads)
    }
}
