//! The contracts, and what goes wrong, against a real Fuseki that the tests start.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may fail loudly")]
#![allow(clippy::disallowed_methods, reason = "a test waits in real time")]

mod cluster;
mod endpoint;
mod failures;
mod graph;
mod tenants;

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use trellis_domain::Secret;
use trellis_orchestrator::contract::runs::StorePorts;
use trellis_orchestrator::ports::{Config, Journal, Log, RealWorld};
use trellis_servers::Fuseki;
use trellis_sparql::{Address, Credentials, Followed, RemoteGraph};
use trellis_store::{Holder, Program, QuerySettings, Store};

const QUERY_WORKER: &str = "TRELLIS_TEST_QUERY_WORKER";

/// Not a test: this program as it is started for a query.
#[test]
fn query_worker() {
    if std::env::var_os(QUERY_WORKER).is_some() {
        trellis_queries::work().unwrap();
    }
}

fn program() -> Program {
    Program {
        path: std::env::current_exe().unwrap(),
        arguments: ["query_worker", "--exact", "--nocapture"].map(Into::into).into(),
        variables: vec![(QUERY_WORKER.into(), "1".into())],
    }
}

/// An embedded store in a folder of its own.
struct Home {
    store: Store,
    _folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let holder = Holder { pid: std::process::id(), command: "test".into(), url: None };
        let store = Store::open(folder.path(), &holder, Arc::new(RealWorld)).unwrap();
        store.graph.evaluate_with(program(), QuerySettings::default());
        Self { store, _folder: folder }
    }

    fn ports(&self) -> StorePorts {
        let store = &self.store;
        (Arc::clone(&store.journal) as Arc<dyn Journal>, Arc::clone(&store.config) as Arc<dyn Config>)
    }

    fn followed(&self) -> Followed {
        let store = &self.store;
        Followed {
            name: store.log.public_key().split('+').next().unwrap().to_owned(),
            journal: Arc::clone(&store.journal) as _,
            ended: Arc::clone(&store.graph) as _,
            local: Arc::clone(&store.graph) as _,
            knowledge: Arc::clone(&store.knowledge) as _,
        }
    }

    /// The graph of a process that works on this store, with the view at that address.
    fn graph_at(&self, process: &str, address: &str, credentials: Credentials, time: Duration) -> RemoteGraph {
        let address = Address::parse(address, credentials).unwrap();
        let graph = RemoteGraph::new(address, time, self.followed(), process.to_owned()).unwrap();
        graph.evaluate_with(program(), QuerySettings::default());
        graph
    }

    fn graph(&self, fuseki: &Fuseki) -> RemoteGraph {
        self.graph_at("one", &fuseki.address(), password(fuseki), Duration::from_secs(30))
    }
}

fn password(fuseki: &Fuseki) -> Credentials {
    Credentials { password: Secret::new(fuseki.password()), token: None }
}

/// Stores that live as long as the test.
#[derive(Default)]
struct Homes(Mutex<Vec<Home>>);

impl Homes {
    fn keep(&self, home: Home) {
        self.0.lock().unwrap().push(home);
    }
}
