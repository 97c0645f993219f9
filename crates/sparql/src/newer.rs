//! The runs that the view at the endpoint lacks, laid over it.

use crate::graph::Followed;
use crate::reading::Terms;
use std::collections::BTreeSet;
use std::rc::Rc;
use tokio::runtime::Handle;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, SessionId, Workspace};
use trellis_orchestrator::ports::{JournalError, RunFilter};
use trellis_patterns::project;
use trellis_provenance::iri;
use trellis_queries::{Overlay, QueryError};

/// Runs of a conversation that are asked for together.
const PAGE: usize = 100;

/// All methods block: it is for threads that may.
pub(crate) struct Newer<'a> {
    followed: &'a Followed,
    workspace: Workspace,
    runs: BTreeSet<RunId>,
    /// What is laid over the view leads into it.
    terms: Rc<Terms>,
}

impl<'a> Newer<'a> {
    pub(crate) fn of(
        followed: &'a Followed,
        workspace: &Workspace,
        behind: u64,
        terms: &Rc<Terms>,
    ) -> Result<Self, QueryError> {
        let runs = Handle::current().block_on(followed.ended.newer(workspace, behind))?;
        Ok(Self { followed, workspace: workspace.clone(), runs, terms: Rc::clone(terms) })
    }

    pub(crate) fn count(&self) -> usize {
        self.runs.len()
    }

    fn of_conversation(&self, run: &RunId) -> Result<Vec<RunId>, JournalError> {
        Handle::current().block_on(async {
            let journal = &self.followed.journal;
            let summary = journal.run(&self.workspace, run).await?;
            let Some(conversation) = summary.and_then(|summary| summary.conversation) else { return Ok(Vec::new()) };
            let filter = RunFilter { conversation: Some(conversation), ..RunFilter::default() };
            let (mut runs, mut cursor) = (Vec::new(), None);
            loop {
                let page = journal.runs(&self.workspace, &filter, cursor.as_deref(), PAGE).await?;
                runs.extend(page.runs.into_iter().map(|run| run.run).filter(|run| self.runs.contains(run)));
                cursor = page.next;
                if cursor.is_none() {
                    return Ok(runs);
                }
            }
        })
    }
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

impl Overlay for Newer<'_> {
    fn runs(&self) -> Vec<String> {
        self.runs.iter().map(|run| run.as_str().to_owned()).collect()
    }

    fn run_of(&self, iri: &str) -> Option<String> {
        let run = Handle::current().block_on(run_of(self.followed, &self.workspace, iri)).unwrap_or_else(|error| {
            tracing::error!(%error, iri, "a session could not be read");
            None
        })?;
        self.runs.contains(&run).then(|| run.as_str().to_owned())
    }

    fn runs_naming(&self, iri: &str) -> Vec<String> {
        let mut runs: BTreeSet<String> = Overlay::run_of(self, iri).into_iter().collect();
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
        let Ok(run) = RunId::new(run) else { return Vec::new() };
        let quads = Handle::current().block_on(quads_of(self.followed, &self.workspace, &run));
        let quads = quads.unwrap_or_else(|error| {
            tracing::error!(%error, %run, "a run could not be projected");
            Vec::new()
        });
        for quad in &quads {
            self.terms.note_quad(quad);
        }
        quads
    }
}
