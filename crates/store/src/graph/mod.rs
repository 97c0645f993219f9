//! The graph of a folder.
//!
//! What is asked about one run is projected from its records on the fly. What may concern any run is read from the
//! view, which holds finished runs up to a cursor; what is newer or still open is laid over it. Either way an answer
//! has everything that was committed before it was asked for.

mod absorbing;
mod newer;
mod patience;
mod projections;
mod questions;

use crate::journal::EmbeddedJournal;
use crate::view::{Bounds, Cancellation, QueryError, View, ViewError};
use patience::{LOOKS, SCANS, patiently};
use projections::Projections;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{RunId, SessionId, Workspace};
use trellis_orchestrator::ports::{Answer, BoxFuture, Graph, GraphError, QuadPattern, QueryLimits};
use trellis_provenance::iri;
use trellis_provenance::vocabulary::{tg, trellis};

/// How long a look for quads may take.
const LOOKING: Duration = Duration::from_secs(30);

/// The embedded graph. Its own methods block; those of the port do not.
#[derive(Debug, Clone)]
pub struct EmbeddedGraph {
    view: Arc<View>,
    journal: EmbeddedJournal,
    projections: Arc<Projections>,
    /// One absorber at a time.
    absorbing: Arc<Mutex<()>>,
}

impl EmbeddedGraph {
    pub(crate) fn open(path: &Path, journal: EmbeddedJournal) -> Result<Self, ViewError> {
        let view = Arc::new(View::open(path)?);
        Ok(Self { view, journal, projections: Arc::default(), absorbing: Arc::default() })
    }

    fn project(&self, workspace: &Workspace, run: &RunId) -> Result<Arc<[Quad]>, GraphError> {
        Ok(self.projections.of(&self.journal.tables.read(), workspace, run)?)
    }

    /// The run that a pattern cannot leave, if there is one.
    fn run_of(&self, workspace: &Workspace, node: &str) -> Result<Option<RunId>, GraphError> {
        let Some(session) = iri::session_of(node).and_then(|session| SessionId::new(session).ok()) else {
            return Ok(None);
        };
        Ok(self.journal.tables.read().run_of(workspace, &session)?)
    }

    fn find(&self, workspace: &Workspace, pattern: &QuadPattern, bounds: &Bounds) -> Result<Vec<Quad>, QueryError> {
        let overlay = self.overlay(workspace)?;
        self.view.matching(workspace.as_str(), pattern, &overlay, bounds)
    }
}

/// Where the quads of a pattern can be.
enum Reach {
    /// In the run of this node.
    Node(String),
    /// Where questions are accepted.
    Questions,
    Anywhere,
}

impl Reach {
    /// Statements about a node are made by its own run only. So are those that point at one, but for the links
    /// between the questions of a conversation.
    fn of(pattern: &QuadPattern) -> Self {
        let node = |term: &Option<Term>| {
            let iri = term.as_ref().and_then(Term::as_iri)?;
            iri::session_of(iri).map(|_| iri.to_owned())
        };
        let property = pattern.p.as_ref().and_then(Term::as_iri);
        match (node(&pattern.s), node(&pattern.o), property) {
            (Some(subject), _, _) => Self::Node(subject),
            (None, Some(object), Some(property)) if property != trellis::EARLIER_QUESTION => Self::Node(object),
            (None, None, Some(tg::QUERY)) if pattern.s.is_none() && pattern.o.is_none() => Self::Questions,
            (None, _, _) => Self::Anywhere,
        }
    }
}

impl Graph for EmbeddedGraph {
    fn run<'a>(&'a self, workspace: &'a Workspace, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Quad>, GraphError>> {
        let (graph, workspace, run) = (self.clone(), workspace.clone(), run.clone());
        Box::pin(patiently(&LOOKS, LOOKING, move |_| Ok(graph.project(&workspace, &run)?.to_vec())))
    }

    fn matching<'a>(
        &'a self,
        workspace: &'a Workspace,
        pattern: &'a QuadPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Quad>, GraphError>> {
        Box::pin(self.look(workspace, pattern, limit))
    }

    fn query<'a>(
        &'a self,
        workspace: &'a Workspace,
        sparql: &'a str,
        limits: QueryLimits,
    ) -> BoxFuture<'a, Result<Answer, GraphError>> {
        let (graph, workspace, sparql) = (self.clone(), workspace.clone(), sparql.to_owned());
        Box::pin(patiently(&SCANS, limits.time, move |cancellation| {
            let bounds = bounds(limits.max_rows, cancellation);
            let overlay = graph.overlay(&workspace).map_err(failed)?;
            graph.view.query(workspace.as_str(), &sparql, &overlay, &bounds).map_err(failed)
        }))
    }
}

impl EmbeddedGraph {
    async fn look(&self, workspace: &Workspace, pattern: &QuadPattern, limit: usize) -> Result<Vec<Quad>, GraphError> {
        let (graph, place, wanted) = (self.clone(), workspace.clone(), pattern.clone());
        let near = match Reach::of(pattern) {
            Reach::Node(node) => {
                patiently(&LOOKS, LOOKING, move |_| {
                    let Some(run) = graph.run_of(&place, &node)? else { return Ok(None) };
                    let quads = graph.project(&place, &run)?;
                    Ok(Some(quads.iter().filter(|quad| wanted.matches(quad)).take(limit).cloned().collect()))
                })
                .await?
            }
            Reach::Questions => {
                patiently(&LOOKS, LOOKING, move |cancellation| {
                    let reader = graph.journal.tables.read();
                    questions::all(&reader, &place, &wanted, &bounds(limit, cancellation)).map(Some)
                })
                .await?
            }
            Reach::Anywhere => None,
        };
        if let Some(quads) = near {
            return Ok(quads);
        }
        let (graph, place, wanted) = (self.clone(), workspace.clone(), pattern.clone());
        patiently(&SCANS, LOOKING, move |cancellation| {
            graph.find(&place, &wanted, &bounds(limit, cancellation)).map_err(failed)
        })
        .await
    }
}

fn bounds(max_rows: usize, cancellation: Cancellation) -> Bounds {
    Bounds { max_rows, cancellation, ..Bounds::default() }
}

/// What the view says, in the words of the port. A reading that was cancelled is one that nobody waits for.
fn failed(error: QueryError) -> GraphError {
    match error {
        QueryError::Syntax(_)
        | QueryError::UpdateRefused
        | QueryError::ServiceRefused { .. }
        | QueryError::TooLong { .. }
        | QueryError::TooComplex { .. }
        | QueryError::Evaluation(_)
        | QueryError::Cancelled => GraphError::Query(error.to_string()),
        QueryError::OverlayTooLarge { .. } | QueryError::GraphTooLarge { .. } | QueryError::NoThread(_) => {
            GraphError::TooLarge(error.to_string())
        }
        QueryError::View(error) => unusable(error),
        QueryError::Journal(error) => error.into(),
    }
}

fn unusable(error: ViewError) -> GraphError {
    GraphError::Index(error.to_string())
}
