//! The graph of a store whose view is at an endpoint.
//!
//! What is asked about one run follows from its records, which the store has. What may concern any run is read from the
//! endpoint, with what is newer laid over it, and with what was loaded into the store beside both.

use crate::absorbing::OtherProcess;
use crate::address::Address;
use crate::client::Client;
use crate::error::RemoteError;
use crate::mark::{self, Found as FoundMark, Mark};
use crate::names::Names;
use crate::newer::{self, RunsThere, quads_of, run_of};
use crate::reading::Reading;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Handle;
use trellis_domain::rdf::Quad;
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::ports::{
    Answer, Asking, BoxFuture, Found, Graph, GraphError, Journal, Knowledge, KnowledgeError, KnowledgePlace,
    QuadPattern, QueryLimits,
};
use trellis_orchestrator::reach::Reach;
use trellis_provenance::PROJECTION;
use trellis_queries::find::find;
use trellis_queries::timeout::{SCANS, within_timeout};
use trellis_queries::{
    Asker, Attended, Bounds, Cancellation, EndedRuns, Job, Newer, NoOverlay, Overlay, Program, Queries, QueryError,
    QuerySettings, Unanswered, attend, constants,
};

/// How long a look for quads may take.
const LOOKING: Duration = Duration::from_secs(30);
/// Quads of runs outside the view that one look may hold in this process.
const LAID_OVER: usize = 150_000;

/// The store whose runs the view follows.
#[derive(Debug, Clone)]
pub struct Followed {
    /// Tells its graphs from those of other stores in the same dataset, for ever.
    pub name: String,
    pub journal: Arc<dyn Journal>,
    pub ended: Arc<dyn EndedRuns>,
    /// What the store itself says of single runs and of what was loaded.
    pub local: Arc<dyn Graph>,
    pub knowledge: Arc<dyn Knowledge>,
}

/// The graph of all processes that share an endpoint and a store. Each process has one.
#[derive(Debug, Clone)]
pub struct RemoteGraph(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) client: Client,
    pub(crate) followed: Followed,
    pub(crate) names: Names,
    /// Nobody else calls himself so.
    pub(crate) process: String,
    pub(crate) other: Mutex<OtherProcess>,
    queries: OnceLock<Queries>,
}

/// What a reading starts from.
struct View {
    /// Runs that ended up to here are in it.
    place: u64,
    generation: u64,
    can_be_read: bool,
}

impl RemoteGraph {
    /// The graph at this address. No request of it takes longer than that. Nothing is sent there yet.
    pub fn new(address: Address, time: Duration, followed: Followed, process: String) -> Result<Self, RemoteError> {
        let (client, names) = (Client::new(address, time)?, Names::new(&followed.name));
        let (other, queries) = (Mutex::default(), OnceLock::new());
        Ok(Self(Arc::new(Inner { client, followed, names, process, other, queries })))
    }

    /// Says what evaluates SPARQL from now on; without it there is none. Call it once, inside the runtime.
    pub fn evaluate_with(&self, program: Program, settings: QuerySettings) {
        self.0.queries.get_or_init(|| Queries::new(program, settings));
    }

    /// The endpoint, as it may be shown.
    pub fn address(&self) -> String {
        self.0.client.shown()
    }

    /// Whether a mark belongs to the history that the store has.
    pub(crate) async fn is_ours(&self, mark: &Mark) -> Result<bool, GraphError> {
        Ok(mark.place == 0 || self.0.followed.ended.identity(mark.place).await? == mark.identity)
    }

    pub(crate) async fn mark(&self) -> Result<FoundMark, RemoteError> {
        mark::read(&self.0.client, &self.0.names.mark()).await
    }

    /// What of the view can be read.
    async fn view(&self) -> Result<View, GraphError> {
        match self.mark().await? {
            FoundMark::One(mark) => {
                let is_derived_so = mark.projection == PROJECTION && !mark.clearing;
                let can_be_read = is_derived_so && mark.place > 0 && self.is_ours(&mark).await?;
                let place = if can_be_read { mark.place } else { 0 };
                Ok(View { place, generation: mark.generation, can_be_read })
            }
            FoundMark::Nothing | FoundMark::Broken => Ok(View { place: 0, generation: 0, can_be_read: false }),
        }
    }

    /// Reads on a thread. What the endpoint did is told in its own words.
    fn read<T, E: From<QueryError>>(
        &self,
        (workspace, pattern): (&Workspace, &QuadPattern),
        cancellation: &Cancellation,
        read: impl FnOnce(&Reading<'_>, &Newer<RunsThere<'_>>) -> Result<T, E>,
    ) -> Result<T, ReadError<E>> {
        let inner = &*self.0;
        let runtime = Handle::current();
        let view = runtime.block_on(self.view()).map_err(ReadError::Graph)?;
        let ports = (&inner.client, &inner.followed);
        let reading = Reading::new(ports, workspace, pattern.collection.as_ref(), cancellation)
            .map_err(|error| ReadError::Other(error.into()))?;
        let reading = if view.can_be_read { reading.with_view(&inner.names, workspace) } else { reading };
        // Taken before anything is read: a run that is taken in meanwhile is seen twice, and counted once.
        let newer = newer::of(&inner.followed, workspace, view.place, reading.terms())
            .map_err(|error| ReadError::Other(error.into()))?;
        let found = match read(&reading, &newer) {
            Ok(found) => found,
            Err(error) => {
                let failure = reading.take_failure();
                return Err(failure.map_or(ReadError::Other(error), |failure| ReadError::Graph(failure.into())));
            }
        };
        if view.can_be_read && runtime.block_on(self.view()).map_err(ReadError::Graph)?.generation != view.generation {
            let endpoint = inner.client.shown();
            return Err(ReadError::Graph(RemoteError::BegunAnew { endpoint }.into()));
        }
        Ok(found)
    }

    async fn evaluate(
        &self,
        asking: Asking<'_>,
        sparql: &str,
        limits: QueryLimits,
    ) -> Result<Found<Answer>, GraphError> {
        if asking.knowledge.is_some() {
            return self.0.followed.local.query(asking, sparql, limits).await;
        }
        let queries = self.0.queries.get().ok_or(GraphError::NoSparql)?;
        let attend = |job, with_newer| self.attend(queries, asking, job, with_newer);
        queries.answer(sparql, limits, attend).await
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
        let answer = move |attended: &mut Attended| {
            let (pipes, cancellation) = (&mut attended.pipes, &attended.cancellation);
            let ends = (&mut pipes.from, &mut pipes.to);
            let found = graph.read((&workspace, &QuadPattern::default()), cancellation, |reading, newer| {
                // A query that cannot be parsed is refused by whoever evaluates it.
                for term in constants(&job.sparql).unwrap_or_default() {
                    reading.terms().note(&term);
                }
                let overlay: &dyn Overlay = if with_newer { newer } else { &NoOverlay };
                let found = attend(reading, overlay, &job, ends)?;
                Ok(Found { found, missing_runs: if with_newer { 0 } else { newer.count() } })
            });
            found.map_err(|error| match error {
                ReadError::Graph(error) => Unanswered::Refused(error),
                ReadError::Other(error) => error,
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
        match Reach::of(pattern) {
            Reach::Node(node) => {
                if let Some(run) = run_of(&self.0.followed, workspace, &node).await? {
                    let quads = quads_of(&self.0.followed, workspace, &run).await?;
                    let found = quads.into_iter().filter(|quad| pattern.matches(quad)).take(limit).collect();
                    return self.with_loaded(workspace, pattern, limit, found).await.map(Found::whole);
                }
            }
            Reach::Questions => return self.0.followed.local.matching(workspace, pattern, limit).await,
            Reach::Anywhere => {}
        }
        let (graph, place, wanted) = (self.clone(), workspace.clone(), pattern.clone());
        within_timeout(&SCANS, LOOKING, move |cancellation| graph.anywhere(&place, &wanted, limit, cancellation)).await
    }

    /// Reads the view with what is newer, or without if that is too much.
    fn anywhere(
        &self,
        workspace: &Workspace,
        pattern: &QuadPattern,
        limit: usize,
        cancellation: Cancellation,
    ) -> Result<Found<Vec<Quad>>, GraphError> {
        let bounds = Bounds { max_rows: limit, max_overlay_quads: LAID_OVER, cancellation, ..Bounds::default() };
        let found = self.read((workspace, pattern), &bounds.cancellation, |reading, newer| {
            for term in [&pattern.s, &pattern.p, &pattern.o].into_iter().flatten() {
                reading.terms().note(term);
            }
            if let Some(graph) = &pattern.g {
                reading.terms().note(&trellis_domain::rdf::Term::iri(graph));
            }
            match find(reading, pattern, newer, &bounds) {
                Err(QueryError::OverlayTooLarge { .. }) => {
                    let found = find(reading, pattern, &NoOverlay, &bounds)?;
                    Ok(Found { found, missing_runs: newer.count() })
                }
                found => found.map(Found::whole),
            }
        });
        found.map_err(|error| match error {
            ReadError::Graph(error) => error,
            ReadError::Other(error) => error.into(),
        })
    }

    /// What a run says, and behind it what was loaded: as much of it as there is room for.
    async fn with_loaded(
        &self,
        workspace: &Workspace,
        pattern: &QuadPattern,
        limit: usize,
        mut found: Vec<Quad>,
    ) -> Result<Vec<Quad>, GraphError> {
        let known: BTreeSet<Quad> = found.iter().cloned().collect();
        let knowledge = &self.0.followed.knowledge;
        for loaded in knowledge.collections(workspace).await.map_err(of_knowledge)? {
            if found.len() >= limit || pattern.collection.as_ref().is_some_and(|only| *only != loaded.collection) {
                continue;
            }
            let place = KnowledgePlace { workspace: workspace.clone(), collection: loaded.collection };
            let more = knowledge.matching(&place, pattern, limit).await.map_err(of_knowledge)?;
            found.extend(more.into_iter().filter(|quad| !known.contains(quad)));
        }
        found.truncate(limit);
        Ok(found)
    }
}

/// Why a reading gave nothing.
enum ReadError<E> {
    /// Before anything was read, or because of the endpoint.
    Graph(GraphError),
    Other(E),
}

fn of_knowledge(error: KnowledgeError) -> GraphError {
    match error {
        KnowledgeError::Store(error) => error.into(),
        KnowledgeError::Busy(why) => GraphError::Busy(why),
        KnowledgeError::Refused(why) => GraphError::Query(why),
    }
}

impl Graph for RemoteGraph {
    fn run<'a>(&'a self, workspace: &'a Workspace, run: &'a RunId) -> BoxFuture<'a, Result<Vec<Quad>, GraphError>> {
        self.0.followed.local.run(workspace, run)
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
