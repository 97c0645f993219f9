//! The only way from a request to the stores: through the check that the workspace is the caller's.
//!
//! What a gateway is connected to is private to this module. A route gets at it by an [`Inside`], and there is no other
//! way to one than [`Gateway::enter`]: a route that forgets to ask has nothing to answer from.

use crate::access::{Access, EnterError, Identity, Reach};
use crate::calls::Calls;
use crate::capacity::Capacity;
use crate::loads::{LoadPermit, Loads};
use crate::parquet::Parquet;
use crate::wiring::{Founder, Phase, RunText, Wiring};
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinError;
use trellis_domain::config::StoredItem;
use trellis_domain::limits::Limits;
use trellis_domain::{Caller, RunId, Surface, Timestamp, Workspace};
use trellis_orchestrator::documents::Loader;
use trellis_orchestrator::graph_rag::GraphRag;
use trellis_orchestrator::meter::TokenMeter;
use trellis_orchestrator::ports::{
    Asking, Config, ConfigError, Graph, JournalError, Knowledge, Library, Log, Presence, Prompter, ToolRunner, World,
};
use trellis_orchestrator::status::Status;
use trellis_orchestrator::tables::{Asker, TableLoader};
use trellis_orchestrator::toolbox;
use trellis_orchestrator::{
    AcceptError, Acceptance, Answered, Answering, Cancelling, DecideError, Earlier, Item, Question, RunService,
    RunSubscription, TellError, Telling, TurnError,
};

/// A server's connections to everything behind it.
#[derive(Debug)]
pub struct Gateway {
    behind: Arc<Behind>,
    access: Access,
    meter: Arc<TokenMeter>,
    founder: Arc<dyn Founder>,
    /// One at a time: whoever comes second finds the workspace made.
    founding: Semaphore,
    loopback_only: bool,
    phase: watch::Receiver<Phase>,
    calls: Calls,
    capacity: Capacity,
}

#[derive(Debug)]
struct Behind {
    /// Documents of the library that are being read to be searched.
    processing: Loads,
    runs: RunService,
    config: Arc<dyn Config>,
    prompter: Arc<dyn Prompter>,
    tools: Arc<dyn ToolRunner>,
    world: Arc<dyn World>,
    limits: Limits,
    library: Arc<dyn Library>,
    documents: Option<Loader>,
    graph: Arc<dyn Graph>,
    knowledge: Arc<dyn Knowledge>,
    graph_rag: Option<GraphRag>,
    tables: TableLoader,
    parquet: Option<Parquet>,
    log: Arc<dyn Log>,
    presence: Arc<dyn Presence>,
    run_text: Arc<dyn RunText>,
}

/// What came of something that is done in a task of its own: a caller who leaves in the middle must not leave half of
/// it behind, nor keep followers from hearing of it. The outer error is a bug.
pub(crate) type Uninterrupted<T, E> = Result<Result<T, E>, JoinError>;

/// A caller in a workspace that it may see and change.
#[derive(Debug, Clone)]
pub(crate) struct Inside {
    behind: Arc<Behind>,
    identity: Identity,
    workspace: Workspace,
}

impl Inside {
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The same for the graph: nobody keeps others from asking.
    pub(crate) fn asking(&self) -> Asking<'_> {
        Asking { workspace: &self.workspace, caller: self.identity.name.as_deref(), knowledge: None }
    }

    /// Who is here, for the record.
    pub(crate) fn caller(&self, surface: Surface) -> Caller {
        Caller::new(self.identity.name.clone(), surface)
    }

    /// For looking at runs and following them. What changes one is done by the methods here.
    pub(crate) fn runs(&self) -> &RunService {
        &self.behind.runs
    }

    pub(crate) fn config(&self) -> &dyn Config {
        &*self.behind.config
    }

    pub(crate) fn prompter(&self) -> &dyn Prompter {
        &*self.behind.prompter
    }

    pub(crate) fn tools(&self) -> &dyn ToolRunner {
        &*self.behind.tools
    }

    pub(crate) fn world(&self) -> &dyn World {
        &*self.behind.world
    }

    /// The operator's, for what belongs to no run.
    pub(crate) fn limits(&self) -> &Limits {
        &self.behind.limits
    }

    pub(crate) fn library(&self) -> &dyn Library {
        &*self.behind.library
    }

    /// Documents that are searched, if any are.
    /// The right to process one document of the library; none if there are enough already.
    pub(crate) fn begin_processing(&self) -> Option<LoadPermit> {
        self.behind.processing.begin(&self.workspace)
    }

    pub(crate) fn documents(&self) -> Option<&Loader> {
        self.behind.documents.as_ref()
    }

    pub(crate) fn graph(&self) -> &dyn Graph {
        &*self.behind.graph
    }

    pub(crate) fn knowledge(&self) -> &dyn Knowledge {
        &*self.behind.knowledge
    }

    /// Answers from it, if there is anybody to answer.
    pub(crate) fn graph_rag(&self) -> Option<&GraphRag> {
        self.behind.graph_rag.as_ref()
    }

    /// The same for a load, which has a thread of its own.
    pub(crate) fn shared_knowledge(&self) -> Arc<dyn Knowledge> {
        Arc::clone(&self.behind.knowledge)
    }

    pub(crate) fn tables(&self) -> &TableLoader {
        &self.behind.tables
    }

    /// Reads Parquet files.
    pub(crate) fn parquet(&self) -> Option<&Parquet> {
        self.behind.parquet.as_ref()
    }

    /// Puts questions about tables to a model.
    pub(crate) fn asker(&self) -> Asker {
        let behind = &self.behind;
        Asker {
            prompter: Arc::clone(&behind.prompter),
            tables: Arc::clone(behind.tables.tables()),
            world: Arc::clone(&behind.world),
        }
    }

    /// What proves the records of the workspace.
    pub(crate) fn log(&self) -> &Arc<dyn Log> {
        &self.behind.log
    }

    /// Runs as people read them.
    pub(crate) fn run_text(&self) -> &dyn RunText {
        &*self.behind.run_text
    }

    /// Writes items of configuration. Tools that the operator does not offer are refused here; whoever writes them some
    /// other way cannot call them either.
    pub(crate) async fn configure(&self, items: Vec<StoredItem>, by: Caller) -> Result<u64, ConfigError> {
        let refused = toolbox::refused(&items, &self.workspace, self.tools().servers());
        if refused.is_empty() {
            self.config().put(&self.workspace, items, by).await
        } else {
            Err(ConfigError::Invalid(refused))
        }
    }

    /// Accepts a question.
    pub(crate) async fn accept(&self, question: Question) -> Uninterrupted<Acceptance, AcceptError> {
        self.accept_after(question, Earlier::OfConversation).await
    }

    /// Accepts a question that has something else before it than its conversation.
    pub(crate) async fn accept_after(
        &self,
        question: Question,
        earlier: Earlier,
    ) -> Uninterrupted<Acceptance, AcceptError> {
        let runs = self.runs().clone();
        tokio::spawn(async move { runs.accept_after(question, &earlier).await }).await
    }

    /// Ends a run for the caller.
    pub(crate) async fn cancel(&self, run: &RunId, surface: Surface) -> Uninterrupted<Cancelling, TurnError> {
        let (here, run, by) = (self.clone(), run.clone(), self.caller(surface));
        tokio::spawn(async move { here.runs().cancel(&here.workspace, &run, &by).await }).await
    }

    /// Answers a question that a run waits for.
    pub(crate) async fn decide(&self, run: &RunId, answer: Answering) -> Uninterrupted<Answered, DecideError> {
        let (here, run) = (self.clone(), run.clone());
        tokio::spawn(async move { here.runs().decide(&here.workspace, &run, &answer).await }).await
    }

    /// Tells a run something for the caller.
    pub(crate) async fn tell(&self, run: &RunId, text: String, surface: Surface) -> Uninterrupted<Telling, TellError> {
        let (here, run, by) = (self.clone(), run.clone(), self.caller(surface));
        tokio::spawn(async move { here.runs().tell(&here.workspace, &run, &text, &by).await }).await
    }
}

impl Gateway {
    pub fn new(wiring: Wiring) -> Self {
        let behind = Behind {
            processing: Loads::default(),
            runs: wiring.runs,
            config: wiring.config,
            prompter: wiring.prompter,
            tools: wiring.tools,
            world: wiring.world,
            limits: wiring.limits.usual,
            library: wiring.library,
            documents: wiring.documents,
            graph: wiring.graph,
            knowledge: wiring.knowledge,
            graph_rag: wiring.graph_rag,
            tables: wiring.tables,
            parquet: wiring.parquet.map(Parquet::new),
            log: wiring.log,
            presence: wiring.presence,
            run_text: wiring.run_text,
        };
        Self {
            behind: Arc::new(behind),
            access: wiring.access,
            meter: wiring.meter,
            founder: wiring.founder,
            founding: Semaphore::new(1),
            loopback_only: wiring.loopback_only,
            phase: wiring.phase,
            calls: wiring.calls,
            capacity: Capacity::new(),
        }
    }

    /// Lets a caller into the workspace of that name, or into its own if there is no name.
    ///
    /// A workspace that the operator gave to a caller exists as soon as the caller uses it.
    pub(crate) async fn enter(&self, identity: &Identity, name: &str) -> Result<Inside, EnterError> {
        let workspace = Self::named(identity, name)?;
        if !self.exists(&workspace).await? {
            match identity.reach {
                Reach::All => return Err(EnterError::NoWorkspace),
                Reach::Only { .. } => drop(self.found(identity, &workspace).await?),
            }
        }
        Ok(self.inside(identity, workspace))
    }

    /// The workspace of that name, if it is the caller's.
    fn named(identity: &Identity, name: &str) -> Result<Workspace, EnterError> {
        // An invalid name matches no workspace. A caller that does not see all is not told which of the others exist.
        let nothing = match identity.reach {
            Reach::All => EnterError::NoWorkspace,
            Reach::Only { .. } => EnterError::Denied,
        };
        let workspace = match name {
            "" => identity.reach.home(),
            name => Workspace::new(name).map_err(|_| nothing)?,
        };
        if identity.reach.includes(&workspace) { Ok(workspace) } else { Err(EnterError::Denied) }
    }

    fn inside(&self, identity: &Identity, workspace: Workspace) -> Inside {
        Inside { behind: Arc::clone(&self.behind), identity: identity.clone(), workspace }
    }

    /// Makes the workspace of that name, and enters it. None if it exists already.
    pub(crate) async fn create(&self, identity: &Identity, name: &str) -> Result<Option<Inside>, EnterError> {
        let workspace = Self::named(identity, name)?;
        let made = self.found(identity, &workspace).await?;
        Ok(made.then(|| self.inside(identity, workspace)))
    }

    /// Whether it had to be made.
    async fn found(&self, identity: &Identity, workspace: &Workspace) -> Result<bool, ConfigError> {
        let _one = self.founding.acquire().await.expect("the semaphore is never closed");
        let missing = !self.exists(workspace).await?;
        if missing {
            self.founder.found(workspace).await?;
            tracing::info!(%workspace, by = identity.shown(), "a workspace was made");
        }
        Ok(missing)
    }

    /// Every workspace of a caller's, entered, sorted by name.
    pub(crate) async fn everywhere(&self, identity: &Identity) -> Result<Vec<Inside>, ConfigError> {
        let all = match &identity.reach {
            Reach::All => self.behind.config.workspaces().await?,
            Reach::Only { home, others } => {
                let mut all = others.clone();
                all.insert(home.clone());
                all.into_iter().collect()
            }
        };
        Ok(all.into_iter().map(|workspace| self.inside(identity, workspace)).collect())
    }

    /// The log over all workspaces, for whoever sees them all.
    pub(crate) fn log(&self, identity: &Identity) -> Option<Arc<dyn Log>> {
        match identity.reach {
            Reach::All => Some(Arc::clone(&self.behind.log)),
            Reach::Only { .. } => None,
        }
    }

    /// Whether the workspace exists: it has a configuration, be it only that of its making.
    async fn exists(&self, workspace: &Workspace) -> Result<bool, ConfigError> {
        Ok(self.behind.config.version(workspace).await? > 0)
    }

    /// How many runs of all workspaces have no end, if the store answers.
    pub(crate) async fn open_runs(&self) -> Result<usize, ConfigError> {
        self.behind.config.workspaces().await?;
        Ok(self.behind.runs.count_open().await?)
    }

    /// How those are getting on who work on the store.
    pub(crate) async fn status(&self) -> Result<Status, JournalError> {
        self.behind.runs.status(&*self.behind.presence).await
    }

    /// Tokens that models have read and written since the start, of all workspaces.
    pub(crate) fn tokens(&self) -> (u64, u64) {
        (self.meter.read(), self.meter.written())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.behind.world.now()
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// Nobody but this machine can reach the server: other names for it are a trick.
    pub(crate) fn is_loopback_only(&self) -> bool {
        self.loopback_only
    }

    pub(crate) fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    pub(crate) fn takes_questions(&self) -> bool {
        *self.phase.borrow() == Phase::Serving
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.phase.borrow() == Phase::Closed
    }

    /// Waits until the server closes.
    pub(crate) async fn closed(&self) {
        let mut phase = self.phase.clone();
        // An error means that whoever could close is gone, which is the same.
        drop(phase.wait_for(|phase| *phase == Phase::Closed).await);
    }

    /// The next item of a run that somebody follows, and the room that was made for it before it was read: nothing is
    /// held while there is nothing to tell. None if the server closes before the run's end: a run that has ended is heard
    /// to its end.
    pub(crate) async fn follow<R: Future>(
        &self,
        subscription: &mut RunSubscription,
        make_room: impl Fn() -> R,
    ) -> Option<Result<(Item, R::Output), JournalError>> {
        loop {
            let memory = make_room().await;
            match subscription.look().await {
                Ok(None) => drop(memory),
                Ok(Some(item)) => return Some(Ok((item, memory))),
                Err(error) => return Some(Err(error)),
            }
            if self.is_closed() {
                match subscription.end().await {
                    Ok(None) => return None,
                    Ok(Some(_)) => {}
                    Err(error) => return Some(Err(error)),
                }
                subscription.changed().await;
            } else {
                tokio::select! {
                    biased;
                    () = subscription.changed() => {}
                    () = self.closed() => {}
                }
            }
        }
    }
}
