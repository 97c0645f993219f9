//! Several processes that share a state: a database, and a broker if one is named. Everything that they know of each other
//! goes through these two.

mod graph;
mod settings;

pub(crate) use graph::{address as graph_address, with_graph};
pub(crate) use settings::Cluster;

use crate::failure::{Exit, Failure};
use crate::state::{Kept, Material, Purpose, Shared, State};
use std::sync::Arc;
use trellis_brokers::{Bus, BusError, BusOptions, QueueKind, Timing};
use trellis_orchestrator::memory::MemoryStream;
use trellis_orchestrator::ports::{RealWorld, World};
use trellis_orchestrator::queue::FairQueue;
use trellis_postgres::{
    Database, DatabaseSettings, DatabaseWorld, OpenError, PostgresConfig, PostgresGraph, PostgresJournal,
    PostgresKnowledge, PostgresLibrary, PostgresLog, PostgresNotes, PostgresQueue, PostgresSearch, PostgresStream,
    PostgresTables, without_password,
};

/// Opens the state that processes share, with its queue and stream, and its time. Whoever only looks does without a broker
/// that is gone.
pub(crate) async fn open(
    cluster: &Cluster,
    command: &str,
    purpose: Purpose,
) -> Result<(State, Arc<dyn World>), Failure> {
    let database = database(cluster, &cluster.state, "--state", command).await?;
    let world: Arc<dyn World> = DatabaseWorld::open(&database, Arc::new(RealWorld)).await?;
    let world = &world;
    let journal = Arc::new(PostgresJournal::new(database.clone(), &**world));
    let config = Arc::new(PostgresConfig::new(&journal, Arc::clone(world)));
    let library = Arc::new(PostgresLibrary::new(&journal, Arc::clone(world)));
    let log = PostgresLog::open(&journal).await.map_err(|error| failure(&cluster.state, "--state", &error))?;
    let bus = match (bus(cluster, &database, command, world).await, purpose) {
        (Ok(bus), _) => bus,
        (Err(failure), Purpose::Write) => return Err(failure),
        (Err(failure), Purpose::Read) => {
            tracing::warn!("{}; what happens is seen a few seconds later", failure.message);
            Bus { queue: Arc::new(FairQueue::new(Arc::clone(world))), stream: Arc::new(MemoryStream::default()) }
        }
    };
    let graph = Arc::new(PostgresGraph::new(database.clone()));
    let material = material(&database, &graph);
    let notes = Arc::new(PostgresNotes::new(&database, cluster.claim_life, &**world));
    let address = without_password(&cluster.state);
    let presence = Arc::clone(&journal) as _;
    let kept: Kept = (journal as _, config as _, library as _, Arc::new(log) as _);
    Ok((State::of_database(kept, material, Shared { bus, graph, presence, notes, address }), Arc::clone(world)))
}

/// What a database has besides the journal.
fn material(database: &Database, graph: &Arc<PostgresGraph>) -> Material {
    let search = PostgresSearch::of_documents(database.clone());
    Material {
        graph: Arc::clone(graph) as _,
        knowledge: Arc::new(PostgresKnowledge::new(database.clone())),
        tables: Arc::new(PostgresTables::new(database.clone())),
        entities: Arc::new(search.of_entities()),
        search: Arc::new(search),
    }
}

async fn database(cluster: &Cluster, address: &str, flag: &str, command: &str) -> Result<Database, Failure> {
    let settings = DatabaseSettings {
        schema: cluster.deployment.clone(),
        application: application(&cluster.deployment, command),
        connections: cluster.connections,
        ..DatabaseSettings::of(address)
    };
    Database::open(settings).await.map_err(|error| failure(address, flag, &error))
}

/// Wake-ups and notices: over the broker that was named, else over the database.
async fn bus(cluster: &Cluster, state: &Database, command: &str, world: &Arc<dyn World>) -> Result<Bus, Failure> {
    let Some(address) = &cluster.bus else { return over_database(state).await };
    if settings::is_database(address) {
        return over_database(&database(cluster, address, "--bus", command).await?).await;
    }
    // A wake-up that is neither settled nor renewed for so long comes to somebody else. Claims are what keeps two from one
    // turn, so there is no need to wait much longer than for these.
    let acknowledged_within = cluster.claim_life * 2;
    let timing = Timing { acknowledged_within, ..Timing::default() };
    let queue_kind = if cluster.replicas > 1 { QueueKind::Quorum } else { QueueKind::Classic };
    let (deployment, replicas) = (cluster.deployment.clone(), cluster.replicas);
    let options = BusOptions { deployment, timing, queue_kind, replicas, ..BusOptions::default() };
    trellis_brokers::connect(address, &options, Arc::clone(world)).await.map_err(|error| match error {
        BusError::Address(error) => {
            Failure::usage(format!("--bus: {error}; or postgres://USER:PASSWORD@HOST:5432/NAME"))
        }
        BusError::Unusable { .. } => Failure::new(
            Exit::Unreachable,
            format!("{error}; is this the address of the broker (--bus, TRELLIS_BUS), and does it run?"),
        ),
    })
}

async fn over_database(database: &Database) -> Result<Bus, Failure> {
    let stream = PostgresStream::open(database).await?;
    Ok(Bus { queue: Arc::new(PostgresQueue::new(database)), stream: Arc::new(stream) })
}

/// What is wrong with a database, and where it is; never its password.
fn failure(address: &str, flag: &str, error: &OpenError) -> Failure {
    let shown = without_password(address);
    match error {
        OpenError::Address(_) | OpenError::Encryption(_) => Failure::usage(format!("{flag}: {error}")),
        // In the server's words: it has no rule for connections of this kind.
        OpenError::Unreachable(why) if why.contains("no encryption") => {
            let write = format!("this server wants encryption: end the address ({flag}) with ?sslmode=verify-full");
            Failure::new(Exit::Unreachable, format!("{shown}: {error}; {write}"))
        }
        OpenError::Unreachable(_) | OpenError::Store(_) => {
            let ask = format!("is this the address ({flag}), and does the server run?");
            Failure::new(Exit::Unreachable, format!("{shown}: {error}; {ask}"))
        }
        OpenError::Newer { .. }
        | OpenError::Migration(_)
        | OpenError::TooOld(_)
        | OpenError::Encoding(_)
        | OpenError::Key(_) => Failure::new(Exit::DataFolder, format!("{shown}: {error}")),
    }
}

/// As which the server lists the connections of this process, so that it can be told who is alive.
fn application(deployment: &str, command: &str) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    trellis_postgres::application(deployment, command, std::process::id(), host.trim())
}
