//! Exchanges that are removed, made anew, or closed to us, while we serve the flow that they belong to.

use crate::neighbours::{Held, Neighbours, configure, definition, ends, text};
use crate::{Ours, PATIENCE, until_no_dialog_is_open};
use lapin::options::{ExchangeDeclareOptions, ExchangeDeleteOptions};
use lapin::types::FieldTable;
use lapin::{Channel, Connection, ConnectionProperties, ExchangeKind};
use serde_json::json;
use std::sync::Arc;
use tempfile::TempDir;
use trellis_servers::{RabbitMq, RabbitMqOptions};

const FLOWS: &str = "processor:agent-manager";

/// Whoever starts and stops flows.
struct Operator(Connection);

impl Operator {
    async fn of(server: &RabbitMq) -> Self {
        Self(Connection::connect(&server.address(), ConnectionProperties::default()).await.unwrap())
    }

    async fn channel(&self) -> Channel {
        self.0.create_channel().await.unwrap()
    }

    async fn make(&self, exchange: &str, kind: ExchangeKind, options: ExchangeDeclareOptions) {
        let made = self.channel().await;
        made.exchange_declare(exchange.into(), kind, options, FieldTable::default()).await.unwrap();
    }

    async fn remove(&self, exchange: &str) {
        let options = ExchangeDeleteOptions::default();
        self.channel().await.exchange_delete(exchange.into(), options).await.unwrap();
    }

    async fn has(&self, exchange: &str) -> bool {
        let passive = ExchangeDeclareOptions { passive: true, ..ExchangeDeclareOptions::default() };
        let channel = self.channel().await;
        channel.exchange_declare(exchange.into(), ExchangeKind::Fanout, passive, FieldTable::default()).await.is_ok()
    }
}

/// One that everybody may declare and nobody publish to, and one that is not what it should be.
#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_that_takes_nothing_from_us_costs_no_dialog_its_end() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    let operator = Operator::of(&server).await;
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    let internal = ExchangeDeclareOptions { internal: true, ..durable };
    operator.make("tg.flow.closed:default:main", ExchangeKind::Fanout, internal).await;
    operator.make("tg.flow.other:default:main", ExchangeKind::Direct, durable).await;
    configure(&neighbours).await;
    for topic in ["flow:tg:closed:default:main", "flow:tg:other:default:main"] {
        neighbours.put(FLOWS, "main", &definition(&[("explainability", topic)])).await;
        let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
        for _ in 0..2 {
            let question = json!({"question": "rain?", "streaming": true});
            let told = neighbours.ask(&question);
            let told = tokio::time::timeout(PATIENCE, told).await.expect("it is told without its explanations");
            assert_eq!((text(&told, "answer").as_str(), ends(&told)), ("It says: Rain.", 1), "{topic}");
        }
        until_no_dialog_is_open(notes.path()).await;
        ours.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_removed_with_a_flow_is_not_made_again_by_a_dialog_that_is_still_open() {
    const TRIPLES: &str = "tg.flow.triples-store:default:main";
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    let operator = Operator::of(&server).await;
    configure(&neighbours).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
    neighbours.hold(Some(Held { steps: 1, pieces: 0 }));
    let open = neighbours.begin(&json!({"question": "rain?", "streaming": true})).await;
    neighbours.until_told(&open, |response| response["message_type"] == "observation").await;
    neighbours.remove(FLOWS, "main").await;
    neighbours.until_nobody_takes_requests().await;
    operator.remove(TRIPLES).await;
    neighbours.hold(None);
    let responses = neighbours.end_of(&open).await;
    assert_eq!((text(&responses, "answer").as_str(), ends(&responses)), ("It says: Rain.", 1));
    until_no_dialog_is_open(notes.path()).await;
    assert!(!operator.has(TRIPLES).await);
    ours.stop().await;
}

/// The definition is the same as before, and the queues are still there.
#[tokio::test(flavor = "multi_thread")]
async fn a_flow_that_is_stopped_and_started_before_anybody_looks_is_served() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    let operator = Operator::of(&server).await;
    configure(&neighbours).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
    assert_eq!(text(&neighbours.ask(&json!({"question": "rain?"})).await, "answer"), "It says: Rain.");
    let durable = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
    for exchange in ["tg.request.agent:default:main", "tg.response.prompt:default:main"] {
        operator.remove(exchange).await;
        operator.make(exchange, ExchangeKind::Fanout, durable).await;
    }
    neighbours.put(FLOWS, "main", &definition(&[])).await;
    let question = json!({"question": "rain again?"});
    let answered = neighbours.ask(&question);
    let answered = tokio::time::timeout(PATIENCE, answered).await.expect("requests are heard again");
    assert_eq!(text(&answered, "answer"), "It says: Rain.");
    ours.stop().await;
}
