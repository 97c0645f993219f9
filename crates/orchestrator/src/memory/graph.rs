//! The graph without an index: every question projects what it needs.

use crate::ports::{
    Answer, Asking, BoxFuture, Found, Graph, GraphError, Journal, JournalError, QuadPattern, QueryLimits, RunFilter,
};
use std::sync::Arc;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{RunId, Workspace};
use trellis_patterns::project;
use trellis_provenance::{iri, vocabulary};

/// Reads all runs of the workspace for every pattern, so it is for small journals. Knows no SPARQL.
#[derive(Debug, Clone)]
pub struct MemoryGraph {
    journal: Arc<dyn Journal>,
}

impl MemoryGraph {
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal }
    }

    async fn project(&self, workspace: &Workspace, run: &RunId) -> Result<Vec<Quad>, JournalError> {
        Ok(project(&self.journal.events(workspace, run, 0, usize::MAX).await?))
    }

    /// Newest run first, and sorted within a run.
    async fn find(&self, workspace: &Workspace, pattern: &QuadPattern, limit: usize) -> Result<Vec<Quad>, GraphError> {
        let (mut roots, mut others) = (Vec::new(), Vec::new());
        let all = self.journal.runs(workspace, &RunFilter::default(), None, usize::MAX).await?;
        for run in all.runs {
            let root = Term::iri(iri::session(&run.run));
            for quad in self.project(workspace, &run.run).await? {
                if pattern.matches(&quad) {
                    let first = quad.p.as_iri() == Some(vocabulary::tg::QUERY) && quad.s == root;
                    if first { &mut roots } else { &mut others }.push(quad);
                }
            }
        }
        roots.append(&mut others);
        roots.truncate(limit);
        Ok(roots)
    }
}

impl Graph for MemoryGraph {
    fn run<'a>(&'a self, workspace: &'a Workspace, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Quad>, GraphError>> {
        Box::pin(async { Ok(self.project(workspace, run).await?) })
    }

    fn matching<'a>(
        &'a self,
        workspace: &'a Workspace,
        pattern: &'a QuadPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Found<Vec<Quad>>, GraphError>> {
        Box::pin(async move { self.find(workspace, pattern, limit).await.map(Found::whole) })
    }

    fn query<'a>(
        &'a self,
        _asking: Asking<'a>,
        _sparql: &'a str,
        _limits: QueryLimits,
    ) -> BoxFuture<'a, Result<Found<Answer>, GraphError>> {
        Box::pin(std::future::ready(Err(GraphError::NoSparql)))
    }
}
