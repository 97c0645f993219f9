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
use crate::queries::{Asker, Attended, Program, Queries, QuerySettings};
use crate::view::{Bounds, Cancellation, Job, QueryError, View, ViewError};
use patience::{LOOKS, SCANS, patiently};
use projections::Projections;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{RunId, SessionId, Workspace};
use trellis_orchestrator::ports::{Answer, Asking, BoxFuture, Graph, GraphError, QuadPattern, QueryLimits};
use trellis_provenance::iri;
use trellis_provenance::vocabulary::{tg, trellis};

/// How long a look for quads may take.
const LOOKING: Duration = Duration::from_secs(30);

/// Quads of runs outside the view that one look may hold in this process.
const LAID_OVER: usize = 150_000;

/// The embedded graph. Its own methods block; those of the port do not.
#[derive(Debug, Clone)]
pub struct EmbeddedGraph {
    view: Arc<View>,
    journal: EmbeddedJournal,
    projections: Arc<Projections>,
    /// One absorber at a time.
    absorbing: Arc<Mutex<()>>,
    /// What evaluates SPARQL, if there is something.
    queries: Arc<OnceLock<Queries>>,
}

impl EmbeddedGraph {
    pub(crate) fn open(path: &Path, journal: EmbeddedJournal) -> Result<Self, ViewError> {
        let view = Arc::new(View::open(path)?);
        Ok(Self { view, journal, projections: Arc::default(), absorbing: Arc::default(), queries: Arc::default() })
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
        asking: Asking<'a>,
        sparql: &'a str,
        limits: QueryLimits,
    ) -> BoxFuture<'a, Result<Answer, GraphError>> {
        Box::pin(self.evaluate(asking, sparql, limits))
    }
}

impl EmbeddedGraph {
    /// Says what evaluates SPARQL from now on; without it there is none. Call it once, inside the runtime.
    pub fn evaluate_with(&self, program: Program, settings: QuerySettings) {
        self.queries.get_or_init(|| Queries::new(program, settings));
    }

    async fn evaluate(&self, asking: Asking<'_>, sparql: &str, limits: QueryLimits) -> Result<Answer, GraphError> {
        let queries = self.queries.get().ok_or(GraphError::NoSparql)?;
        let time = limits.time.min(queries.settings.time);
        let job = Job {
            sparql: sparql.to_owned(),
            max_rows: limits.max_rows,
            max_overlay_quads: Bounds::default().max_overlay_quads,
            memory: queries.settings.memory,
            time,
        };
        job.check()?;
        let asker = Asker { workspace: asking.workspace.clone(), caller: asking.caller.map(str::to_owned) };
        let (graph, workspace) = (self.clone(), asking.workspace.clone());
        let attend = move |attended: &mut Attended| {
            let overlay = graph.overlay(&workspace)?;
            let (pipes, cancellation) = (&mut attended.pipes, &attended.cancellation);
            graph.view.attend(workspace.as_str(), &job, &overlay, cancellation, (&mut pipes.from, &mut pipes.to))
        };
        queries.with_worker(asker, time, attend).await
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
        patiently(&SCANS, LOOKING, move |cancellation| Ok(graph.find(&place, &wanted, &bounds(limit, cancellation))?))
            .await
    }
}

fn bounds(max_rows: usize, cancellation: Cancellation) -> Bounds {
    Bounds { max_rows, max_overlay_quads: LAID_OVER, cancellation, ..Bounds::default() }
}

fn unusable(error: ViewError) -> GraphError {
    error.into()
}
