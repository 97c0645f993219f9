//! What only RabbitMQ does.

use crate::scene::{Kind, Server, log_of, nothing, options, publish_at_last, session, take, turn, until};
use lapin::options::{BasicGetOptions, BasicPublishOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use std::sync::Arc;
use std::time::Duration;
use trellis_brokers::{BusOptions, QueueKind, Timing};
use trellis_orchestrator::ports::QueueError;
use trellis_servers::{RabbitMq, RabbitMqOptions};

/// As an operator would look into it.
async fn operator(server: &Server) -> (Connection, Channel) {
    let connection =
        Connection::connect(&server.address_at(server.port()), ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    (connection, channel)
}

fn escaped(options: &BusOptions) -> String {
    options.deployment.replace('.', "=2E")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_no_wake_up_is_set_aside_and_the_next_one_comes() {
    let (server, options) = (Kind::RabbitMq.shared(), BusOptions { lanes: 1, ..options() });
    let bus = server.connect(&options).await;
    let (_connection, channel) = operator(&server).await;
    let queue = format!("{}.wake-ups.agent.0", escaped(&options));
    for poison in [&b"\xff\x00 poison"[..], br#"{"format":9}"#, &vec![b'x'; 100_000]] {
        let (publish, properties) = (BasicPublishOptions::default(), BasicProperties::default());
        channel
            .basic_publish("".into(), queue.as_str().into(), publish, poison, properties)
            .await
            .unwrap()
            .await
            .unwrap();
    }
    bus.queue.publish(turn(1)).await.unwrap();
    let delivery = take(&*bus.queue).await;
    assert_eq!(session(&delivery), "s1");
    bus.queue.acknowledge(&delivery).await.unwrap();
    let aside = format!("{}.wake-ups.set-aside", escaped(&options));
    for _ in 0..3 {
        until("what was set aside can be looked at", async || {
            channel.basic_get(aside.as_str().into(), BasicGetOptions { no_ack: true }).await.unwrap().is_some()
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quorum_queue_counts_and_sets_aside_what_is_handed_out_again_and_again() {
    let (server, kind) = (Kind::RabbitMq.shared(), QueueKind::Quorum);
    let options = BusOptions { queue_kind: kind, delivery_limit: 2, lanes: 1, ..options() };
    let bus = server.connect(&options).await;
    bus.queue.publish(turn(1)).await.unwrap();
    for count in 1..=3 {
        let process = server.connect(&options).await;
        assert_eq!(take(&*process.queue).await.count, count);
    }
    nothing(&*bus.queue).await;
    let (_connection, channel) = operator(&server).await;
    let aside = format!("{}.wake-ups.set-aside", escaped(&options));
    let message = channel.basic_get(aside.into(), BasicGetOptions { no_ack: true }).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&message.delivery.data).contains("\"s1\""));
    // The turn is still in the journal, and can be woken again.
    tokio::time::sleep(Duration::from_secs(1)).await;
    bus.queue.publish(turn(1)).await.unwrap();
    let delivery = take(&*bus.queue).await;
    assert_eq!(delivery.count, 1);
    bus.queue.acknowledge(&delivery).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_memory_is_an_error_and_its_connection_is_given_up_at_last() {
    let server = Server::RabbitMq(Arc::new(RabbitMq::start(RabbitMqOptions { out_of_memory: true })));
    let timing = Timing { answer: Duration::from_secs(2), blocked_at_most: Duration::from_secs(4), ..options().timing };
    let bus = server.connect(&BusOptions { timing, ..options() }).await;
    let began = tokio::time::Instant::now();
    let first = bus.queue.publish(turn(1)).await.unwrap_err().to_string();
    assert!(first.contains("takes no messages") && first.contains("memory"), "{first}");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    // The next ones fail at once.
    let began = tokio::time::Instant::now();
    assert!(matches!(bus.queue.publish(turn(2)).await, Err(QueueError::Unavailable(_))));
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let given_up = || log_of(server.port()).iter().any(|line| line.contains("has taken no messages for 4s"));
    until("the connection is given up", async || given_up()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_that_exist_with_other_settings_are_said_to() {
    let (server, options) = (Kind::RabbitMq.shared(), options());
    let _bus = server.connect(&options).await;
    let other = BusOptions { queue_kind: QueueKind::Quorum, ..options };
    let error = server.connect_at(server.port(), &other).await.unwrap_err().to_string();
    assert!(error.contains("exists with other settings"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_somebody_deletes_is_made_again() {
    let (server, options) = (Kind::RabbitMq.shared(), BusOptions { lanes: 1, ..options() });
    let bus = server.connect(&options).await;
    bus.queue.publish(turn(1)).await.unwrap();
    let delivery = take(&*bus.queue).await;
    bus.queue.acknowledge(&delivery).await.unwrap();
    let (_connection, channel) = operator(&server).await;
    let queue = format!("{}.wake-ups.agent.0", escaped(&options));
    channel.queue_delete(queue.as_str().into(), QueueDeleteOptions::default()).await.unwrap();
    publish_at_last(&*bus.queue, turn(2)).await;
    let delivery = take(&*bus.queue).await;
    assert_eq!(session(&delivery), "s2");
    bus.queue.acknowledge(&delivery).await.unwrap();
}

/// RabbitMQ closes a channel on which a message was not settled for too long.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_for_long_is_acknowledged_before_rabbitmq_minds() {
    let timing = Timing { held_at_most: Duration::from_secs(1), ..options().timing };
    let (server, options) = (Kind::RabbitMq.shared(), BusOptions { timing, lanes: 1, ..options() });
    let bus = server.connect(&options).await;
    bus.queue.publish(turn(1)).await.unwrap();
    let long = take(&*bus.queue).await;
    let (_connection, channel) = operator(&server).await;
    let queue = format!("{}.wake-ups.agent.0", escaped(&options));
    tokio::time::sleep(Duration::from_secs(2)).await;
    // Nobody has it any more, so it does not come back when the process goes.
    bus.queue.acknowledge(&long).await.unwrap();
    drop(bus);
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    until("the process has gone", async || {
        let queue = channel.queue_declare(queue.as_str().into(), passive, FieldTable::default()).await.unwrap();
        queue.consumer_count() == 0
    })
    .await;
    let queue = channel.queue_declare(queue.as_str().into(), passive, FieldTable::default()).await.unwrap();
    assert_eq!(queue.message_count(), 0);
}
