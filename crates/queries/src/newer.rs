//! The runs that a view lacks, laid over it, in whichever store they are.

use crate::overlay::Overlay;
use std::collections::BTreeSet;
use std::fmt::Display;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, SessionId};
use trellis_provenance::iri;

/// What a store says of the runs of one workspace while it is read. All methods block.
pub trait StoredRuns {
    type Error: Display;

    /// The run that a node belongs to.
    fn run_of(&self, node: &str) -> Result<Option<RunId>, Self::Error>;

    /// The runs of the same conversation: a question that follows on another one names it.
    fn conversation_of(&self, run: &RunId) -> Result<Vec<RunId>, Self::Error>;

    /// What a run says.
    fn quads_of(&self, run: &RunId) -> Result<Vec<Quad>, Self::Error>;
}

/// The runs of a workspace that its view lacks.
#[derive(Debug)]
pub struct Newer<S> {
    pub store: S,
    runs: BTreeSet<RunId>,
}

impl<S: StoredRuns> Newer<S> {
    pub fn new(store: S, runs: BTreeSet<RunId>) -> Self {
        Self { store, runs }
    }

    pub fn count(&self) -> usize {
        self.runs.len()
    }
}

impl<S: StoredRuns> Overlay for Newer<S> {
    fn runs(&self) -> Vec<String> {
        self.runs.iter().map(|run| run.as_str().to_owned()).collect()
    }

    fn run_of(&self, iri: &str) -> Option<String> {
        let run = self.store.run_of(iri).unwrap_or_else(|error| {
            tracing::error!(%error, iri, "a session could not be read");
            None
        })?;
        self.runs.contains(&run).then(|| run.as_str().to_owned())
    }

    fn runs_naming(&self, iri: &str) -> Vec<String> {
        let mut runs: BTreeSet<String> = self.run_of(iri).into_iter().collect();
        let session = iri::session_of(iri).and_then(|session| SessionId::new(session).ok());
        if let Some(question) = session.filter(|_| iri::path_of(iri).is_none()) {
            let following = self.store.conversation_of(&question).unwrap_or_else(|error| {
                tracing::error!(%error, run = %question, "a conversation could not be read");
                Vec::new()
            });
            let following = following.iter().filter(|run| self.runs.contains(run));
            runs.extend(following.map(|run| run.as_str().to_owned()));
        }
        runs.into_iter().collect()
    }

    fn project(&self, run: &str) -> Vec<Quad> {
        let Ok(run) = RunId::new(run) else { return Vec::new() };
        self.store.quads_of(&run).unwrap_or_else(|error| {
            tracing::error!(%error, %run, "a run could not be projected");
            Vec::new()
        })
    }
}
