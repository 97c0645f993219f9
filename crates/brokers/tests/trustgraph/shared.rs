//! Several orchestrators of ours on one database.

use crate::neighbours::{Held, Neighbours, configure, ends, text};
use crate::{Kept, Ours, PATIENCE};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use trellis_orchestrator::Hub;
use trellis_orchestrator::ports::{RealWorld, World};
use trellis_orchestrator::workers::Stop;
use trellis_postgres::{
    Database, DatabaseSettings, PostgresConfig, PostgresJournal, PostgresNotes, PostgresQueue, PostgresStream,
};
use trellis_servers::{Postgres, RabbitMq, RabbitMqOptions};

async fn kept(server: &Postgres) -> Kept {
    let world: Arc<dyn World> = Arc::new(RealWorld);
    let settings = DatabaseSettings { connections: 8, ..DatabaseSettings::of(&server.address()) };
    let database = Database::open(settings).await.unwrap();
    let journal = Arc::new(PostgresJournal::new(database.clone(), &*world));
    Kept {
        config: Arc::new(PostgresConfig::new(&journal, Arc::clone(&world))),
        journal,
        queue: Arc::new(PostgresQueue::new(&database)),
        hub: Hub::shared(Arc::new(PostgresStream::open(&database).await.unwrap()), Arc::clone(&world)),
        notes: Arc::new(PostgresNotes::new(&database, Duration::from_secs(30), &*world)),
    }
}

/// Whoever asked hears the rest of an answer from another process, and nothing twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_goes_on_in_another_process() {
    let (server, database) = (RabbitMq::start(RabbitMqOptions::default()), Postgres::start());
    let neighbours = Neighbours::start(&server).await;
    configure(&neighbours).await;
    let first = Ours::start_on(&server, kept(&database).await).await;
    neighbours.hold(Some(Held { steps: 1, pieces: 0 }));
    let id = neighbours.begin(&json!({"question": "rain?", "streaming": true})).await;
    neighbours.until_told(&id, |response| response["message_type"] == "observation").await;

    let second = Ours::start_on(&server, kept(&database).await).await;
    first.stop.send_replace(true);
    first.serving.await.unwrap();
    neighbours.hold(None);
    first.stop_workers.send_replace(Some(Stop::Drain));
    first.working.await.unwrap();
    let responses = tokio::time::timeout(PATIENCE, neighbours.end_of(&id)).await.expect("the other one tells the rest");
    assert_eq!((text(&responses, "answer").as_str(), ends(&responses)), ("It says: Rain.", 1));
    assert_eq!(text(&responses, "observation"), "Rain.");
    assert_eq!(text(&neighbours.ask(&json!({"question": "rain again?"})).await, "answer"), "It says: Rain.");
    second.stop().await;
}
