//! The contract of notes.

use crate::fresh;
use crate::server::Server;
use std::sync::Arc;
use std::time::Duration;
use trellis_orchestrator::contract::notes;
use trellis_orchestrator::ports::{Notes, RealWorld};
use trellis_postgres::PostgresNotes;

const LONG: Duration = Duration::from_mins(10);

async fn process(server: &Server, schema: &str, patience: Duration) -> PostgresNotes {
    PostgresNotes::new(&server.database(schema).await, patience, &RealWorld)
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_keep_the_contract() {
    let server = Server::start();
    notes::suite(async || Arc::new(process(&server, &fresh(), LONG).await) as Arc<dyn Notes>).await;
    notes::two_processes(&process(&server, "two", LONG).await, &process(&server, "two", LONG).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_of_whoever_is_gone_are_taken_over() {
    const PATIENCE: Duration = Duration::from_millis(500);
    let server = Server::start();
    let [gone, other] = [process(&server, "t", PATIENCE).await, process(&server, "t", PATIENCE).await];
    notes::whoever_is_gone_loses_notes(&gone, &other, async || tokio::time::sleep(PATIENCE * 2).await).await;
}
