//! What only Pulsar does.

use crate::scene::{Kind, Server, nothing, options, publish_at_last, session, take, turn, until};
use pulsar::producer::Message;
use pulsar::{Authentication, ProducerOptions, TokioExecutor};
use std::sync::Arc;
use std::time::Duration;
use trellis_brokers::{BusOptions, Timing};
use trellis_orchestrator::ports::QueueError;

fn server(server: &Server) -> &trellis_servers::Pulsar {
    let Server::Pulsar(pulsar) = server else { panic!("it is Pulsar") };
    pulsar
}

fn escaped(options: &BusOptions) -> String {
    options.deployment.replace('.', "=2E")
}

fn lane(options: &BusOptions) -> String {
    format!("{}.wake-ups.agent.0", escaped(options))
}

/// What the broker says of a topic.
fn statistics(pulsar: &trellis_servers::Pulsar, kind: &str, topic: &str) -> serde_json::Value {
    let answer = pulsar.admin("GET", &format!("/admin/v2/{kind}/public/default/{topic}/stats"));
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

/// Somebody else's client, with messages one by one and several in one.
#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_no_wake_ups_are_dropped_and_the_next_one_comes() {
    let (shared, options) = (Kind::Pulsar.shared(), BusOptions { lanes: 1, prefetch: 4, ..options() });
    let bus = shared.connect(&options).await;
    let pulsar = server(&shared);
    let authentication =
        Authentication { name: "basic".to_owned(), data: format!("trellis:{}", pulsar.password()).into_bytes() };
    let address = format!("pulsar://127.0.0.1:{}", pulsar.port());
    let client = pulsar::Pulsar::builder(address, TokioExecutor).with_auth(authentication).build().await.unwrap();
    for together in [1, 3] {
        let how = ProducerOptions { batch_size: Some(together), ..ProducerOptions::default() };
        let topic = format!("persistent://public/default/{}", lane(&options));
        let mut producer = Box::pin(client.producer().with_topic(topic).with_options(how).build()).await.unwrap();
        let poisons = [&b"\xff\x00 poison"[..], br#"{"format":9}"#, &vec![b'x'; 100_000]];
        let poisons = poisons.map(|payload| Message { payload: payload.to_vec(), ..Message::default() });
        for sent in Box::pin(producer.send_all(poisons)).await.unwrap() {
            sent.await.unwrap();
        }
    }
    for n in 1..=8 {
        bus.queue.publish(turn(n)).await.unwrap();
        let delivery = take(&*bus.queue).await;
        assert_eq!(session(&delivery), format!("s{n}"));
        bus.queue.acknowledge(&delivery).await.unwrap();
    }
    let left = || statistics(pulsar, "persistent", &lane(&options))["subscriptions"]["trellis"]["msgBacklog"].as_u64();
    until("nothing is left of them", async || left() == Some(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_unloaded_or_deleted_is_found_or_made_again() {
    let (shared, options) = (Kind::Pulsar.shared(), BusOptions { lanes: 1, ..options() });
    let bus = shared.connect(&options).await;
    bus.queue.publish(turn(1)).await.unwrap();
    let delivery = take(&*bus.queue).await;
    bus.queue.acknowledge(&delivery).await.unwrap();
    let topic = format!("/admin/v2/persistent/public/default/{}", lane(&options));
    // As it is when another broker of a cluster takes it over.
    let unloaded = server(&shared).admin("PUT", &format!("{topic}/unload"));
    assert!(unloaded.contains(" 204 "), "{unloaded}");
    publish_at_last(&*bus.queue, turn(2)).await;
    let delivery = take(&*bus.queue).await;
    assert_eq!(session(&delivery), "s2");
    let deleted = server(&shared).admin("DELETE", &format!("{topic}?force=true"));
    assert!(deleted.contains(" 204 "), "{deleted}");
    let settled = bus.queue.acknowledge(&delivery).await;
    assert!(matches!(settled, Ok(()) | Err(QueueError::Stale | QueueError::Unavailable(_))), "{settled:?}");
    let again = async {
        loop {
            publish_at_last(&*bus.queue, turn(3)).await;
            // What was published at the moment of the deletion is gone with the topic; the sweep publishes it again.
            let taken = tokio::time::timeout(Duration::from_secs(10), take(&*bus.queue)).await;
            if let Ok(delivery) = taken {
                break delivery;
            }
        }
    };
    let delivery = tokio::time::timeout(crate::scene::PATIENCE, again).await.unwrap();
    assert_eq!(session(&delivery), "s3");
    bus.queue.acknowledge(&delivery).await.unwrap();
}

/// Those who listen are told, those who publish are not.
#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_is_deleted_is_made_again() {
    let (shared, options) = (Kind::Pulsar.shared(), BusOptions { lanes: 1, ..options() });
    let bus = shared.connect(&options).await;
    let topic = format!("/admin/v2/persistent/public/default/{}", lane(&options));
    let deleted = server(&shared).admin("DELETE", &format!("{topic}/subscription/trellis?force=true"));
    assert!(deleted.contains(" 204 "), "{deleted}");
    publish_at_last(&*bus.queue, turn(1)).await;
    let delivery = take(&*bus.queue).await;
    assert_eq!(session(&delivery), "s1");
    bus.queue.acknowledge(&delivery).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_hand_stays_there_without_a_word() {
    let (shared, options) = (Kind::Pulsar.shared(), options());
    let (one, two) = (shared.connect(&options).await, shared.connect(&options).await);
    one.queue.publish(turn(1)).await.unwrap();
    let delivery = take(&*one.queue).await;
    assert_eq!(delivery.renew_every, None);
    for _ in 0..8 {
        nothing(&*two.queue).await;
    }
    one.queue.acknowledge(&delivery).await.unwrap();
    drop(one);
    nothing(&*two.queue).await;
}

/// Otherwise turns that take hours, and those that nobody has any more, would take all places.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_for_long_makes_room_for_the_next() {
    let timing = Timing { held_at_most: Duration::from_secs(1), ..options().timing };
    let (shared, options) = (Kind::Pulsar.shared(), BusOptions { timing, lanes: 1, prefetch: 1, ..options() });
    let bus = shared.connect(&options).await;
    bus.queue.publish(turn(1)).await.unwrap();
    bus.queue.publish(turn(2)).await.unwrap();
    let (long, next) = (take(&*bus.queue).await, take(&*bus.queue).await);
    assert_eq!((session(&long).as_str(), session(&next).as_str()), ("s1", "s2"));
    bus.queue.acknowledge(&long).await.unwrap();
    bus.queue.acknowledge(&next).await.unwrap();
    let pulsar = server(&shared);
    let left = || statistics(pulsar, "persistent", &lane(&options))["subscriptions"]["trellis"]["msgBacklog"].as_u64();
    until("nothing is left of them", async || left() == Some(0)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_at_the_broker_is_left_of_a_process_that_has_gone() {
    let (shared, options) = (Kind::Pulsar.shared(), BusOptions { lanes: 1, ..options() });
    let (stays, goes) = (shared.connect(&options).await, shared.connect(&options).await);
    let queue = Arc::clone(&goes.queue);
    tokio::spawn(async move { tokio::time::timeout(Duration::from_millis(100), take(&*queue)).await.unwrap_err() })
        .await
        .unwrap();
    let pulsar = server(&shared);
    let listeners = || {
        let lane = statistics(pulsar, "persistent", &lane(&options));
        let notices = statistics(pulsar, "non-persistent", &format!("{}.notices", escaped(&options)));
        let count = |value: &serde_json::Value| value.as_array().map_or(0, Vec::len);
        let subscriptions = notices["subscriptions"].as_object().map_or(0, serde_json::Map::len);
        (count(&lane["publishers"]), count(&lane["subscriptions"]["trellis"]["consumers"]), subscriptions)
    };
    until("both are there", async || listeners() == (2, 3, 2)).await;
    drop(goes);
    until("one is there", async || listeners() == (1, 1, 1)).await;
    drop(stays);
}
