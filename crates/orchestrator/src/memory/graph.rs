//! The graph without an index: every question projects what it needs.

use super::MemoryKnowledge;
use crate::ports::{
    Answer, Asking, BoxFuture, Found, Graph, GraphError, Journal, JournalError, QuadPattern, QueryLimits, RunFilter,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{RunId, Workspace};
use trellis_patterns::project;
use trellis_provenance::{iri, vocabulary};

/// Reads all runs of the workspace for every pattern, so it is for small journals. Knows no SPARQL.
#[derive(Debug, Clone)]
pub struct MemoryGraph {
    journal: Arc<dyn Journal>,
    knowledge: Arc<MemoryKnowledge>,
}

impl MemoryGraph {
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        Self::with_knowledge(journal, Arc::default())
    }

    /// The graph of this journal, and of what is loaded there.
    pub fn with_knowledge(journal: Arc<dyn Journal>, knowledge: Arc<MemoryKnowledge>) -> Self {
        Self { journal, knowledge }
    }

    async fn project(&self, workspace: &Workspace, run: &RunId) -> Result<Vec<Quad>, JournalError> {
        Ok(project(&self.journal.events(workspace, run, 0, usize::MAX).await?))
    }

    /// Newest run first, and sorted within a run; then what was loaded.
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
        let loaded = self.knowledge.of(workspace, pattern.collection.as_ref());
        let known: BTreeSet<_> = roots.iter().cloned().collect();
        roots.extend(loaded.into_iter().filter(|quad| pattern.matches(quad) && !known.contains(quad)));
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
