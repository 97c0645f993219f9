//! Flows that come and go while we serve them.

use crate::neighbours::{Held, Neighbours, configure, definition, ends, text};
use crate::{Ours, until_no_dialog_is_open};
use serde_json::json;
use std::sync::Arc;
use tempfile::TempDir;
use trellis_servers::{RabbitMq, RabbitMqOptions};

const FLOWS: &str = "processor:agent-manager";

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_that_goes_keeps_its_promises_and_its_queue_until_it_is_back() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    configure(&neighbours).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
    neighbours.hold(Some(Held { steps: 0, pieces: 0 }));
    let open = neighbours.begin(&json!({"question": "rain?", "streaming": true})).await;
    neighbours.until("prompt", |asked| asked["id"] == "agent-react").await;

    neighbours.remove(FLOWS, "main").await;
    neighbours.until_nobody_takes_requests().await;
    let waiting = neighbours.begin(&json!({"question": "rain again?"})).await;
    // A tool and one more prompt are still to come.
    neighbours.hold(None);
    let responses = neighbours.end_of(&open).await;
    assert_eq!((text(&responses, "answer").as_str(), ends(&responses)), ("It says: Rain.", 1));
    until_no_dialog_is_open(notes.path()).await;

    // Its queue belongs to the deployment, and whatever is in it waits.
    neighbours.until_nobody_takes_requests().await;
    assert!(neighbours.responses(&waiting).is_empty());
    neighbours.put(FLOWS, "main", &definition(&[])).await;
    let responses = neighbours.end_of(&waiting).await;
    assert_eq!((text(&responses, "answer").as_str(), ends(&responses)), ("It says: Rain.", 1));
    until_no_dialog_is_open(notes.path()).await;
    ours.stop().await;
}
