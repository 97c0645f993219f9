//! The graph of a database.
//!
//! What is asked about one run is projected from its records on the fly. What may concern any run is read from the view,
//! tables that hold finished runs up to a leaf of the log; what is newer or still open is laid over it. All of it is read
//! in one transaction, so that view, newer runs and loaded knowledge belong to the same moment, whichever process writes
//! them.

mod absorbing;
mod ended_runs;
mod newer;
mod questions;
pub(crate) mod reading;
pub(crate) mod stored;
pub(crate) mod tables;

use crate::database::Database;
use newer::{quads_of, run_of};
use reading::Reading;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use stored::Stored;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::ports::{Answer, Asking, BoxFuture, Found, Graph, GraphError, QuadPattern, QueryLimits};
use trellis_orchestrator::reach::Reach;
use trellis_queries::find::find;
use trellis_queries::timeout::{LOOKS, SCANS, within_timeout};
use trellis_queries::{
    Asker, Attended, Bounds, Cancellation, Job, NoOverlay, Overlay, Program, Queries, QueryError, QuerySettings,
    Unanswered, attend,
};

/// How long a look for quads may take.
const LOOKING: Duration = Duration::from_secs(30);

/// Quads of runs outside the view that one look may hold in this process.
const LAID_OVER: usize = 150_000;

/// The graph of all processes that share a database. Each process has one.
#[derive(Debug, Clone)]
pub struct PostgresGraph {
    database: Database,
    /// What evaluates SPARQL, if there is something.
    queries: Arc<OnceLock<Queries>>,
}

impl PostgresGraph {
    pub fn new(database: Database) -> Self {
        Self { database, queries: Arc::default() }
    }

    /// Says what evaluates SPARQL from now on; without it there is none. Call it once, inside the runtime.
    pub fn evaluate_with(&self, program: Program, settings: QuerySettings) {
        self.queries.get_or_init(|| Queries::new(program, settings));
    }

    fn database(&self) -> &Database {
        &self.database
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
                self.derive_anew(&error).await;
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
        let (database, workspace, time) = (self.database.clone(), asking.workspace.clone(), job.time);
        let only = asking.knowledge.cloned();
        let answer = move |attended: &mut Attended| {
            let (pipes, cancellation) = (&mut attended.pipes, &attended.cancellation);
            let ends = (&mut pipes.from, &mut pipes.to);
            Reading::with(&database, cancellation, |reading| {
                let loaded = Stored::loaded(reading, &workspace, only.as_ref())?;
                if only.is_some() {
                    return Ok(Found::whole(attend(&loaded, &NoOverlay, &job, ends)?));
                }
                let newer = newer::of(reading, &workspace)?;
                let stored = if newer.store.has_view { loaded.with_view(&workspace) } else { loaded };
                let overlay: &dyn Overlay = if with_newer { &newer } else { &NoOverlay };
                let found = attend(&stored, overlay, &job, ends)?;
                Ok::<_, Unanswered>(Found { found, missing_runs: if with_newer { 0 } else { newer.count() } })
            })
        };
        queries.with_worker(asker, time, answer).await
    }

    async fn look(
        &self,
        workspace: &Workspace,
        pattern: &QuadPattern,
        limit: usize,
    ) -> Result<Found<Vec<Quad>>, GraphError> {
        let near = match Reach::of(pattern) {
            Reach::Node(node) => {
                self.within(&LOOKS, workspace, pattern, limit, move |place, reading| {
                    let Some(run) = run_of(reading, &place.workspace, &node)? else { return Ok(None) };
                    let quads = quads_of(reading, &place.workspace, &run)?;
                    let found =
                        quads.into_iter().filter(|quad| place.pattern.matches(quad)).take(place.bounds.max_rows);
                    place.with_loaded(reading, found.collect()).map(Some)
                })
                .await?
            }
            Reach::Questions => {
                self.within(&LOOKS, workspace, pattern, limit, |place, reading| {
                    let found = questions::all(reading, &place.workspace, &place.pattern, &place.bounds)?;
                    place.with_loaded(reading, found).map(Some)
                })
                .await?
            }
            Reach::Anywhere => None,
        };
        if let Some(quads) = near {
            return Ok(Found::whole(quads));
        }
        let found = self.within(&SCANS, workspace, pattern, limit, Look::anywhere).await;
        if let Err(error @ GraphError::Index(_)) = &found {
            self.derive_anew(error).await;
        }
        found
    }

    /// Looks on a thread, in one transaction.
    async fn within<T: Send + 'static>(
        &self,
        places: &'static tokio::sync::Semaphore,
        workspace: &Workspace,
        pattern: &QuadPattern,
        limit: usize,
        look: impl FnOnce(&Look, &Rc<Reading>) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, GraphError> {
        let (database, workspace, pattern) = (self.database.clone(), workspace.clone(), pattern.clone());
        within_timeout(places, LOOKING, move |cancellation: Cancellation| {
            let bounds = Bounds { max_rows: limit, max_overlay_quads: LAID_OVER, cancellation, ..Bounds::default() };
            let place = Look { workspace, pattern, bounds };
            Ok(Reading::with(&database, &place.bounds.cancellation, |reading| look(&place, reading))?)
        })
        .await
    }

    /// A damaged view is derived anew, by whichever process is the first to see to it.
    async fn derive_anew(&self, error: &GraphError) {
        tracing::error!(%error, "the graph view is damaged; it is derived anew");
        if let Err(error) = self.forget().await {
            tracing::error!(%error, "the damaged graph view cannot be removed");
        }
    }
}

/// One look for quads.
struct Look {
    workspace: Workspace,
    pattern: QuadPattern,
    bounds: Bounds,
}

impl Look {
    /// What runs say, and behind it what was loaded: as much of it as there is room for.
    fn with_loaded(&self, reading: &Rc<Reading>, mut found: Vec<Quad>) -> Result<Vec<Quad>, QueryError> {
        if found.len() >= self.bounds.max_rows {
            return Ok(found);
        }
        let loaded = Stored::loaded(reading, &self.workspace, self.pattern.collection.as_ref())?;
        // Nothing of it is about a node of a run, so that hardly anything is found twice.
        let known: BTreeSet<Quad> = found.iter().cloned().collect();
        let more = find(&loaded, &self.pattern, &NoOverlay, &self.bounds)?;
        found.extend(more.into_iter().filter(|quad| !known.contains(quad)));
        found.truncate(self.bounds.max_rows);
        Ok(found)
    }

    /// Reads the view with what is newer, or without if that is too much.
    fn anywhere(&self, reading: &Rc<Reading>) -> Result<Found<Vec<Quad>>, QueryError> {
        let newer = newer::of(reading, &self.workspace)?;
        let loaded = Stored::loaded(reading, &self.workspace, self.pattern.collection.as_ref())?;
        let stored = if newer.store.has_view { loaded.with_view(&self.workspace) } else { loaded };
        match find(&stored, &self.pattern, &newer, &self.bounds) {
            Err(QueryError::OverlayTooLarge { .. }) => {
                let found = find(&stored, &self.pattern, &NoOverlay, &self.bounds)?;
                Ok(Found { found, missing_runs: newer.count() })
            }
            found => found.map(Found::whole),
        }
    }
}

impl Graph for PostgresGraph {
    fn run<'a>(&'a self, workspace: &'a Workspace, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Quad>, GraphError>> {
        let run = run.clone();
        let all = QuadPattern::default();
        Box::pin(async move {
            let look = move |place: &Look, reading: &Rc<Reading>| quads_of(reading, &place.workspace, &run);
            self.within(&LOOKS, workspace, &all, usize::MAX, look).await
        })
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
