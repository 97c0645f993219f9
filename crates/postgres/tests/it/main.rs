//! The contracts, against a real server that the tests start.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may fail loudly")]
#![allow(clippy::disallowed_methods, reason = "a test waits in real time")]

mod encryption;
mod failures;
mod graph;
mod journal;
mod notes;
mod others;
mod proof;
mod runs;
mod search;
mod server;
mod throughput;

use server::Server;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trellis_orchestrator::contract::runs::StorePorts;
use trellis_orchestrator::ports::RealWorld;
use trellis_postgres::{PostgresConfig, PostgresJournal};

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The name of a schema that is not there yet.
fn fresh() -> String {
    format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A process of its own, as far as the database knows.
async fn process(server: &Server, schema: &str) -> Arc<PostgresJournal> {
    Arc::new(PostgresJournal::new(server.database(schema).await, &RealWorld))
}

/// The ports of a new process.
async fn ports(server: &Server, schema: &str) -> StorePorts {
    let journal = process(server, schema).await;
    let config = Arc::new(PostgresConfig::new(&journal, Arc::new(RealWorld)));
    (journal, config)
}
