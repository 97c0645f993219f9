//! The embedded engine keeps the contracts of its ports, and survives what happens to files.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may fail loudly")]

mod crashes;
mod damage;
mod graph;
mod knowledge;
mod library;
mod proof;
mod service;
mod tables;
mod unreadable;
mod view;
mod view_damage;

use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use trellis_orchestrator::contract::{
    cancels, config, graph as graph_contract, journal, knowledge as knowledge_contract, runs, teams, trouble,
};
use trellis_orchestrator::ports::{Config, Graph, Journal, Knowledge, RealWorld, Tables};
use trellis_store::{Holder, OpenError, Program, QuerySettings, Store};

pub(crate) fn holder() -> Holder {
    Holder { pid: std::process::id(), command: "test".into(), url: None }
}

pub(crate) fn open(path: &Path) -> Result<Store, OpenError> {
    let store = Store::open(path, &holder(), Arc::new(RealWorld))?;
    let arguments = ["query_worker", "--exact", "--nocapture"].map(Into::into).into();
    let program = Program {
        path: std::env::current_exe().unwrap(),
        arguments,
        variables: vec![(QUERY_WORKER.into(), "1".into())],
    };
    store.graph.evaluate_with(program, QuerySettings::default());
    Ok(store)
}

const QUERY_WORKER: &str = "TRELLIS_TEST_QUERY_WORKER";

/// Not a test: this program as it is started for a query.
#[test]
fn query_worker() {
    if std::env::var_os(QUERY_WORKER).is_some() {
        trellis_store::view::work().unwrap();
    }
}

pub(crate) fn ports(store: &Store) -> runs::StorePorts {
    (Arc::clone(&store.journal) as Arc<dyn Journal>, Arc::clone(&store.config) as Arc<dyn Config>)
}

/// Folders and stores that live as long as the test.
#[derive(Default)]
struct Stores(Mutex<Vec<(TempDir, Store)>>);

impl Stores {
    fn fresh(&self) -> runs::StorePorts {
        self.with_graph().0
    }

    fn with_graph(&self) -> graph_contract::GraphStore {
        self.with_knowledge().0
    }

    fn with_tables(&self) -> Arc<dyn Tables> {
        let folder = TempDir::new().unwrap();
        let store = open(folder.path()).unwrap();
        let tables = Arc::clone(&store.tables) as Arc<dyn Tables>;
        self.0.lock().unwrap().push((folder, store));
        tables
    }

    fn with_knowledge(&self) -> knowledge_contract::KnowledgeStore {
        let folder = TempDir::new().unwrap();
        let store = open(folder.path()).unwrap();
        let graph = (ports(&store), Arc::clone(&store.graph) as Arc<dyn Graph>);
        let knowledge = Arc::clone(&store.knowledge) as Arc<dyn Knowledge>;
        self.0.lock().unwrap().push((folder, store));
        (graph, knowledge)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_journal_keeps_the_commit_contract() {
    let stores = Stores::default();
    journal::suite(async || stores.fresh().0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_configuration_keeps_its_contract() {
    let stores = Stores::default();
    config::suite(async || stores.fresh().1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_graph_keeps_its_contract() {
    let stores = Stores::default();
    graph_contract::suite(async || stores.with_graph()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_graph_answers_sparql() {
    let stores = Stores::default();
    graph_contract::sparql_suite(async || stores.with_graph()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_knowledge_keeps_its_contract() {
    let stores = Stores::default();
    knowledge_contract::suite(async || stores.with_knowledge()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn embedded_knowledge_answers_sparql() {
    let stores = Stores::default();
    knowledge_contract::sparql_suite(async || stores.with_knowledge()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_on_the_embedded_engine_keep_the_promises() {
    let stores = Stores::default();
    runs::suite(async || stores.fresh()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn teams_on_the_embedded_engine_keep_the_promises() {
    let stores = Stores::default();
    teams::suite(async || stores.fresh()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_on_the_embedded_engine_can_be_cancelled_at_any_moment() {
    let stores = Stores::default();
    let fresh = async || {
        // One at a time: the run before is over.
        stores.0.lock().unwrap().clear();
        stores.fresh()
    };
    cancels::suite(fresh).await;
    // A plan; the other scenes are cancelled in memory, where it costs less.
    let (scene, pattern) = trouble::scenes().pop().unwrap();
    cancels::at_any_moment(fresh, &scene, pattern).await;
}

/// A folder that is opened anew by every process.
struct Folder {
    path: TempDir,
    open: Mutex<Option<Store>>,
}

impl trouble::Reopenable for Folder {
    async fn open(&self) -> runs::StorePorts {
        // The process before has died: its store goes first, and the lock with it.
        drop(self.open.lock().unwrap().take());
        let store = open(self.path.path()).unwrap();
        let ports = ports(&store);
        *self.open.lock().unwrap() = Some(store);
        ports
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_may_be_closed_between_any_two_commits() {
    let fresh = || Folder { path: TempDir::new().unwrap(), open: Mutex::default() };
    // Nested and with two rounds; the other scenes die in memory, where it costs less.
    let (scene, pattern) = trouble::scenes().remove(0);
    trouble::a_run_survives_a_restart_between_any_two_commits(fresh, &scene, pattern).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn disorder_on_the_embedded_engine_changes_nothing() {
    let stores = Stores::default();
    for seed in 1..=5 {
        for (scene, pattern) in trouble::scenes() {
            trouble::disorder_changes_nothing(async || stores.fresh(), &scene, pattern, seed * 104_729).await;
        }
    }
}
