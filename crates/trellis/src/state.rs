//! What keeps everything, as the ports that commands work with: the data folder of this process, or a database that several
//! processes share.

use crate::failure::Failure;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use trellis_brokers::Bus;
use trellis_orchestrator::hub::Hub;
use trellis_orchestrator::ports::{
    Config, Graph, Journal, Knowledge, Library, Log, Notes, Presence, Queue, Search, Tables, World,
};
use trellis_orchestrator::queue::FairQueue;
use trellis_postgres::PostgresGraph;
use trellis_search::EmbeddedSearch;
use trellis_sparql::{Address, EndedRuns, Followed, RemoteError, RemoteGraph};
use trellis_store::{Program, QuerySettings, Store};

/// How long an endpoint may take for one request.
const LONGEST_REQUEST: Duration = Duration::from_secs(30);

/// What a command does with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It only looks, so that it works also where nothing can be written.
    Read,
    Write,
}

/// An open store.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) config: Arc<dyn Config>,
    pub(crate) library: Arc<dyn Library>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) material: Material,
    /// That of the material, if its view is kept elsewhere.
    pub(crate) remote: Option<RemoteGraph>,
    /// Dropped last: until then a folder is ours.
    place: Place,
}

/// What is kept of runs, and what they go by.
pub(crate) type Kept = (Arc<dyn Journal>, Arc<dyn Config>, Arc<dyn Library>, Arc<dyn Log>);

/// What is derived from runs, and what was loaded.
#[derive(Debug)]
pub(crate) struct Material {
    pub(crate) graph: Arc<dyn Graph>,
    pub(crate) knowledge: Arc<dyn Knowledge>,
    pub(crate) tables: Arc<dyn Tables>,
    /// Passages of documents.
    pub(crate) search: Arc<dyn Search>,
    /// What entities of the knowledge are called.
    pub(crate) entities: Arc<dyn Search>,
}

#[derive(Debug)]
enum Place {
    Folder(Box<Store>),
    Database(Shared),
}

/// What only those stores have that several processes work on.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) bus: Bus,
    /// That of the material, for what only it can do.
    pub(crate) graph: Arc<PostgresGraph>,
    pub(crate) presence: Arc<dyn Presence>,
    pub(crate) notes: Arc<dyn Notes>,
    /// As it may be shown.
    pub(crate) address: String,
}

impl State {
    pub(crate) fn of_folder(store: Store) -> Self {
        let search = |name: &str| Arc::new(EmbeddedSearch::new(&store.path().join(name)));
        let material = Material {
            graph: Arc::clone(&store.graph) as _,
            knowledge: Arc::clone(&store.knowledge) as _,
            tables: Arc::clone(&store.tables) as _,
            search: search("search"),
            entities: search("entities"),
        };
        Self {
            journal: Arc::clone(&store.journal) as _,
            config: Arc::clone(&store.config) as _,
            library: Arc::clone(&store.library) as _,
            log: Arc::clone(&store.log) as _,
            material,
            remote: None,
            place: Place::Folder(Box::new(store)),
        }
    }

    pub(crate) fn of_database((journal, config, library, log): Kept, material: Material, shared: Shared) -> Self {
        Self { journal, config, library, log, material, remote: None, place: Place::Database(shared) }
    }

    /// With the view of its graph at an endpoint. Nothing is sent there yet.
    pub(crate) fn with_graph_at(mut self, address: Address, world: &dyn World) -> Result<Self, RemoteError> {
        let (ended, process) = match &self.place {
            // Whoever has the folder is alone with it, and goes on where the one before left off.
            Place::Folder(store) => (Arc::clone(&store.graph) as Arc<dyn EndedRuns>, "folder".to_owned()),
            Place::Database(shared) => (Arc::clone(&shared.graph) as Arc<dyn EndedRuns>, world.fresh_id()),
        };
        let followed = Followed {
            // The name of the log's key.
            name: self.log.public_key().split('+').next().unwrap_or_default().to_owned(),
            journal: Arc::clone(&self.journal),
            ended,
            local: Arc::clone(&self.material.graph),
            knowledge: Arc::clone(&self.material.knowledge),
        };
        let remote = RemoteGraph::new(address, LONGEST_REQUEST, followed, process)?;
        self.material.graph = Arc::new(remote.clone());
        self.remote = Some(remote);
        Ok(self)
    }

    /// The folder, if it is one.
    pub(crate) fn folder(&self) -> Option<&Store> {
        match &self.place {
            Place::Folder(store) => Some(store),
            Place::Database(_) => None,
        }
    }

    /// For what only a folder can do.
    pub(crate) fn only_folder(&self) -> Result<&Store, Failure> {
        let instead =
            || Failure::usage(format!("this works on a data folder, and {self} is none; name one with --data"));
        self.folder().ok_or_else(instead)
    }

    const fn shared(&self) -> Option<&Shared> {
        match &self.place {
            Place::Folder(_) => None,
            Place::Database(shared) => Some(shared),
        }
    }

    /// Whether other processes may work on it, too.
    pub(crate) const fn is_shared(&self) -> bool {
        self.shared().is_some()
    }

    /// Whether somebody else may ask its graph while this process serves.
    pub(crate) const fn is_asked(&self) -> bool {
        self.is_shared() || self.remote.is_some()
    }

    /// Who works on it, if that may be others.
    pub(crate) fn presence(&self) -> Option<Arc<dyn Presence>> {
        self.shared().map(|shared| Arc::clone(&shared.presence))
    }

    /// What was promised to others, if any process may do it.
    pub(crate) fn notes(&self) -> Option<Arc<dyn Notes>> {
        self.shared().map(|shared| Arc::clone(&shared.notes))
    }

    /// Lets SPARQL be evaluated from now on.
    pub(crate) fn evaluate_with(&self, program: Program, mut settings: QuerySettings) {
        if let Some(remote) = &self.remote {
            remote.evaluate_with(program.clone(), settings);
            // The store's own graph is asked about loaded knowledge alone: seldom.
            settings.spares = 0;
        }
        match &self.place {
            Place::Folder(store) => store.graph.evaluate_with(program, settings),
            Place::Database(shared) => shared.graph.evaluate_with(program, settings),
        }
    }

    /// Takes finished runs into the view, until it is told to stop. The future keeps nothing of this.
    pub(crate) fn index(&self, stop: watch::Receiver<bool>) -> impl Future<Output = ()> + Send + use<> {
        let remote = self.remote.clone();
        let (folder, database) = match &self.place {
            Place::Folder(store) => (Some(Arc::clone(&store.graph)), None),
            Place::Database(shared) => (None, Some(Arc::clone(&shared.graph))),
        };
        async move {
            if let Some(graph) = remote {
                graph.keep_up(stop).await;
            } else if let Some(graph) = folder {
                graph.keep_up(stop).await;
            } else if let Some(graph) = database {
                graph.keep_up(stop).await;
            }
        }
    }

    /// Takes finished runs into the view of a folder for about that long. A query does without what fails.
    pub(crate) async fn catch_up_within(&self, time: Duration) {
        let Some(store) = self.folder() else { return };
        let Some(remote) = &self.remote else { return store.graph.catch_up_within(time).await };
        if let Ok(Err(error)) = tokio::time::timeout(time, remote.catch_up()).await {
            tracing::warn!(%error, "the remote graph cannot follow the runs");
        }
    }

    /// Wake-ups: those of all processes, or of this one.
    pub(crate) fn queue(&self, world: &Arc<dyn World>) -> Arc<dyn Queue> {
        match self.shared() {
            Some(shared) => Arc::clone(&shared.bus.queue),
            None => Arc::new(FairQueue::new(Arc::clone(world))),
        }
    }

    /// Who follows runs here, and what others tell of them.
    pub(crate) fn hub(&self, world: &Arc<dyn World>) -> Hub {
        match self.shared() {
            Some(shared) => Hub::shared(Arc::clone(&shared.bus.stream), Arc::clone(world)),
            None => Hub::default(),
        }
    }
}

impl fmt::Display for State {
    /// Where it is. No password is in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Folder(store) => store.path().display().fmt(f),
            Place::Database(shared) => f.write_str(&shared.address),
        }
    }
}
