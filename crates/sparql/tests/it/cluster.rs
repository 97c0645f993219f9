//! The view of a database that several processes share.

use crate::graph::{ALL, triples};
use crate::{endpoint, password, program};
use std::sync::Arc;
use std::time::Duration;
use trellis_orchestrator::contract::graph::{self, GraphStore, Scene};
use trellis_orchestrator::contract::runs::StorePorts;
use trellis_orchestrator::contract::teams::agent;
use trellis_orchestrator::ports::{Graph, Log, RealWorld};
use trellis_postgres::{
    Database, DatabaseSettings, PostgresConfig, PostgresGraph, PostgresJournal, PostgresKnowledge, PostgresLog,
};
use trellis_queries::QuerySettings;
use trellis_servers::{Fuseki, Postgres};
use trellis_sparql::{Address, Followed, RemoteGraph};

/// The ports of a process, its graph, and the name of the store.
async fn process(name: &str, postgres: &Postgres, schema: &str, fuseki: &Fuseki) -> (StorePorts, RemoteGraph, String) {
    let settings = DatabaseSettings { schema: schema.to_owned(), ..DatabaseSettings::of(&postgres.address()) };
    let database = Database::open(settings).await.unwrap();
    let journal = Arc::new(PostgresJournal::new(database.clone(), &RealWorld));
    let config = Arc::new(PostgresConfig::new(&journal, Arc::new(RealWorld)));
    let log = PostgresLog::open(&journal).await.unwrap();
    let local = Arc::new(PostgresGraph::new(database.clone()));
    local.evaluate_with(program(), QuerySettings::default());
    let followed = Followed {
        name: log.public_key().split('+').next().unwrap().to_owned(),
        journal: Arc::clone(&journal) as _,
        ended: Arc::clone(&local) as _,
        local,
        knowledge: Arc::new(PostgresKnowledge::new(database)),
    };
    let store = followed.name.clone();
    let address = Address::parse(&fuseki.address(), password(fuseki)).unwrap();
    let graph = RemoteGraph::new(address, Duration::from_secs(30), followed, name.to_owned()).unwrap();
    graph.evaluate_with(program(), QuerySettings::default());
    ((journal, config), graph, store)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_view_of_a_database_keeps_the_contract() {
    let (postgres, fuseki) = (Postgres::shared(), Fuseki::shared());
    let next = std::sync::atomic::AtomicUsize::new(0);
    let fresh = async || -> GraphStore {
        let schema = format!("t{}", next.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let (ports, graph, _) = process("one", &postgres, &schema, &fuseki).await;
        (ports, Arc::new(graph) as Arc<dyn Graph>)
    };
    graph::suite(fresh).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_a_database_are_taken_in_by_one_process_and_read_by_all() {
    let (postgres, fuseki) = (Postgres::shared(), Fuseki::shared());
    let (ports, one, store) = process("one", &postgres, "shared", &fuseki).await;
    let (_, two, _) = process("two", &postgres, "shared", &fuseki).await;
    let mut scene = Scene::of((ports, Arc::new(one.clone()) as Arc<dyn Graph>)).await;
    scene.ask(&agent("a"), "react", "").await;
    scene.ask(&agent("b"), "react", "").await;
    scene.begin(&agent("c"), "react", "").await;
    let said = scene.quads().await.len();
    assert_eq!(triples(&two, ALL).await.len(), said);
    // The log has a run a moment after it is committed.
    let caught_up = async {
        while endpoint::graphs(&fuseki, &store).await.len() < 2 || one.lag().await.unwrap() > 0 {
            one.catch_up().await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), caught_up).await.expect("the log has what was committed");
    assert_eq!(triples(&two, ALL).await.len(), said);
    assert_eq!(one.rebuild().await.unwrap(), 2);
    assert_eq!(triples(&two, ALL).await.len(), said);
}
