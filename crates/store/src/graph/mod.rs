//! The graph of a folder.
//!
//! What is asked about one run is projected from its records on the fly. What may concern any run is read from the
//! view, which holds finished runs up to a cursor; what is newer or still open is laid over it. Either way an answer
//! has everything that was committed before it was asked for, unless more is newer than can be laid over the view: then
//! the answer is the view's, and says how many runs it lacks. What was loaded is read beside both.

mod absorbing;
mod checking;
mod ended_runs;
mod identity;
mod lazy;
mod newer;
mod projections;
mod questions;

pub use checking::CheckedView;

use crate::journal::EmbeddedJournal;
use crate::knowledge::EmbeddedKnowledge;
use crate::view::{Bounds, Cancellation, Job, NoOverlay, Overlay, QueryError, Unanswered, View, ViewError};
use lazy::LazyView;
use parking_lot::Mutex;
use projections::Projections;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, SessionId, Workspace};
use trellis_orchestrator::ports::{Answer, Asking, BoxFuture, Found, Graph, GraphError, QuadPattern, QueryLimits};
use trellis_orchestrator::reach::Reach;
use trellis_provenance::iri;
use trellis_queries::timeout::{LOOKS, SCANS, within_timeout};
use trellis_queries::{Asker, Attended, Program, Queries, QuerySettings};

/// How long a look for quads may take.
const LOOKING: Duration = Duration::from_secs(30);

/// Quads of runs outside the view that one look may hold in this process.
const LAID_OVER: usize = 150_000;

/// The embedded graph. Its own methods block; those of the port do not.
#[derive(Debug, Clone)]
pub struct EmbeddedGraph {
    view: Arc<LazyView>,
    journal: EmbeddedJournal,
    knowledge: EmbeddedKnowledge,
    projections: Arc<Projections>,
    /// One absorber at a time.
    absorbing: Arc<Mutex<()>>,
    /// What evaluates SPARQL, if there is something.
    queries: Arc<OnceLock<Queries>>,
}

impl EmbeddedGraph {
    /// The graph of this journal, with its view at that place. Nothing is opened yet.
    pub(crate) fn new(view: PathBuf, journal: EmbeddedJournal, knowledge: EmbeddedKnowledge) -> Self {
        let view = Arc::new(LazyView::new(view));
        let (projections, absorbing, queries) = (Arc::default(), Arc::default(), Arc::default());
        Self { view, journal, knowledge, projections, absorbing, queries }
    }

    fn view(&self) -> Result<Arc<View>, GraphError> {
        self.view.get(&self.journal.tables)
    }

    /// Empties the view, so that it is derived anew.
    fn forget(&self) -> Result<(), GraphError> {
        self.view()?.clear().map_err(unusable)
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

    fn find(
        &self,
        workspace: &Workspace,
        pattern: &QuadPattern,
        bounds: &Bounds,
    ) -> Result<Found<Vec<Quad>>, GraphError> {
        self.read(workspace, |view, overlay| {
            let loaded = self.knowledge.readers(workspace, pattern.collection.as_ref(), &bounds.cancellation)?;
            view.matching_with(workspace.as_str(), pattern, overlay, loaded, bounds)
        })
    }

    /// What runs say, and behind it what was loaded: as much of it as there is room for.
    fn with_loaded(
        &self,
        workspace: &Workspace,
        pattern: &QuadPattern,
        mut found: Vec<Quad>,
        bounds: &Bounds,
    ) -> Result<Vec<Quad>, GraphError> {
        if found.len() >= bounds.max_rows {
            return Ok(found);
        }
        let loaded = self.knowledge.readers(workspace, pattern.collection.as_ref(), &bounds.cancellation)?;
        // Nothing of it is about a node of a run, so that hardly anything is found twice.
        let known: BTreeSet<Quad> = found.iter().cloned().collect();
        let more = loaded.matching(pattern, bounds)?;
        found.extend(more.into_iter().filter(|quad| !known.contains(quad)));
        found.truncate(bounds.max_rows);
        Ok(found)
    }

    /// Reads the view with what is newer, or without if that is too much.
    fn read<T>(
        &self,
        workspace: &Workspace,
        read: impl Fn(&View, &dyn Overlay) -> Result<T, QueryError>,
    ) -> Result<Found<T>, GraphError> {
        let view = self.view()?;
        let overlay = self.overlay(&view, workspace).map_err(|error| self.failed(error))?;
        let found = match read(&view, &overlay) {
            Err(QueryError::OverlayTooLarge { .. }) => {
                read(&view, &NoOverlay).map(|found| Found { found, missing_runs: overlay.count() })
            }
            found => found.map(Found::whole),
        };
        found.map_err(|error| self.failed(error))
    }

    /// What the view says, in the words of the port. A damaged one is derived anew.
    fn failed(&self, error: QueryError) -> GraphError {
        if let QueryError::Index(error) = &error
            && error.is_damage
        {
            self.derive_anew(error);
        }
        error.into()
    }

    fn derive_anew(&self, error: &dyn std::error::Error) {
        tracing::error!(%error, "the graph view is damaged; it is derived anew");
        match self.forget() {
            Ok(()) => self.journal.shared.finished.notify_one(),
            Err(error) => tracing::error!(%error, "the damaged graph view cannot be removed"),
        }
    }
}

impl Graph for EmbeddedGraph {
    fn run<'a>(&'a self, workspace: &'a Workspace, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Quad>, GraphError>> {
        let (graph, workspace, run) = (self.clone(), workspace.clone(), run.clone());
        Box::pin(within_timeout(&LOOKS, LOOKING, move |_| Ok(graph.project(&workspace, &run)?.to_vec())))
    }

    fn matching<'a>(
        &'a self,
        workspace: &'a Workspace,
        pattern: &'a QuadPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Found<Vec<Quad>>, GraphError>> {
        Box::pin(self.look(workspace, pattern, limit))
    }

    fn query<'a>(
        &'a self,
        asking: Asking<'a>,
        sparql: &'a str,
        limits: QueryLimits,
    ) -> BoxFuture<'a, Result<Found<Answer>, GraphError>> {
        Box::pin(self.evaluate(asking, sparql, limits))
    }
}

impl EmbeddedGraph {
    /// Says what evaluates SPARQL from now on; without it there is none. Call it once, inside the runtime.
    pub fn evaluate_with(&self, program: Program, settings: QuerySettings) {
        self.queries.get_or_init(|| Queries::new(program, settings));
    }

    async fn evaluate(
        &self,
        asking: Asking<'_>,
        sparql: &str,
        limits: QueryLimits,
    ) -> Result<Found<Answer>, GraphError> {
        let queries = self.queries.get().ok_or(GraphError::NoSparql)?;
        let attend = |job, with_newer| self.attend(queries, asking, job, with_newer);
        match queries.answer(sparql, limits, attend).await {
            Err(error @ GraphError::Index(_)) => {
                self.derive_anew(&error);
                Err(error)
            }
            answer => answer,
        }
    }

    /// Has a worker evaluate a query, on the view with what is newer or without.
    async fn attend(
        &self,
        queries: &Queries,
        asking: Asking<'_>,
        job: Job,
        with_newer: bool,
    ) -> Result<Found<Answer>, GraphError> {
        let asker = Asker { workspace: asking.workspace.clone(), caller: asking.caller.map(str::to_owned) };
        let (graph, workspace, time) = (self.clone(), asking.workspace.clone(), job.time);
        let only = asking.knowledge.cloned();
        let attend = move |attended: &mut Attended| {
            let view = graph.view().map_err(Unanswered::Refused)?;
            let (pipes, cancellation) = (&mut attended.pipes, &attended.cancellation);
            let ends = (&mut pipes.from, &mut pipes.to);
            let loaded = graph.knowledge.readers(&workspace, only.as_ref(), cancellation)?;
            if only.is_some() {
                let found = view.attend(None, &job, (&NoOverlay, loaded), cancellation, ends)?;
                return Ok(Found::whole(found));
            }
            let newer = graph.overlay(&view, &workspace)?;
            let overlay: &dyn Overlay = if with_newer { &newer } else { &NoOverlay };
            let found = view.attend(Some(workspace.as_str()), &job, (overlay, loaded), cancellation, ends)?;
            Ok(Found { found, missing_runs: if with_newer { 0 } else { newer.count() } })
        };
        queries.with_worker(asker, time, attend).await
    }
}

impl EmbeddedGraph {
    async fn look(
        &self,
        workspace: &Workspace,
        pattern: &QuadPattern,
        limit: usize,
    ) -> Result<Found<Vec<Quad>>, GraphError> {
        let (graph, place, wanted) = (self.clone(), workspace.clone(), pattern.clone());
        let near = match Reach::of(pattern) {
            Reach::Node(node) => {
                within_timeout(&LOOKS, LOOKING, move |cancellation| {
                    let Some(run) = graph.run_of(&place, &node)? else { return Ok(None) };
                    let quads = graph.project(&place, &run)?;
                    let found = quads.iter().filter(|quad| wanted.matches(quad)).take(limit).cloned().collect();
                    graph.with_loaded(&place, &wanted, found, &bounds(limit, cancellation)).map(Some)
                })
                .await?
            }
            Reach::Questions => {
                within_timeout(&LOOKS, LOOKING, move |cancellation| {
                    let reader = graph.journal.tables.read();
                    let bounds = bounds(limit, cancellation);
                    let found = questions::all(&reader, &place, &wanted, &bounds)?;
                    graph.with_loaded(&place, &wanted, found, &bounds).map(Some)
                })
                .await?
            }
            Reach::Anywhere => None,
        };
        if let Some(quads) = near {
            return Ok(Found::whole(quads));
        }
        let (graph, place, wanted) = (self.clone(), workspace.clone(), pattern.clone());
        within_timeout(&SCANS, LOOKING, move |cancellation| graph.find(&place, &wanted, &bounds(limit, cancellation)))
            .await
    }
}

fn bounds(max_rows: usize, cancellation: Cancellation) -> Bounds {
    Bounds { max_rows, max_overlay_quads: LAID_OVER, cancellation, ..Bounds::default() }
}

fn unusable(error: ViewError) -> GraphError {
    error.into()
}
