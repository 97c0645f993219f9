//! What only NATS does.

use crate::scene::{Kind, Server, nothing, options, publish_at_last, session, take, turn, until};
use async_nats::jetstream;
use std::time::Duration;
use trellis_brokers::BusOptions;
use trellis_orchestrator::ports::QueueError;

/// As an operator would look into it.
async fn operator(server: &Server) -> jetstream::Context {
    let Server::Nats(nats) = server else { panic!("it is NATS") };
    let options = async_nats::ConnectOptions::with_user_and_password("trellis".to_owned(), nats.password().to_owned());
    jetstream::new(options.connect(format!("127.0.0.1:{}", nats.port())).await.unwrap())
}

fn escaped(options: &BusOptions) -> String {
    options.deployment.replace('.', "=2E")
}

async fn stored(context: &jetstream::Context, options: &BusOptions) -> u64 {
    let stream = context.get_stream(format!("{}-wake-ups", escaped(options))).await.unwrap();
    stream.cached_info().state.messages
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_no_wake_up_is_dropped_and_the_next_one_comes() {
    let (server, options) = (Kind::Nats.shared(), BusOptions { lanes: 1, ..options() });
    let bus = server.connect(&options).await;
    let context = operator(&server).await;
    for (n, poison) in ["\u{0} poison", r#"{"format":9}"#].iter().enumerate() {
        let subject = format!("{}.wake-ups.agent.0.w.f.{n}", escaped(&options));
        context.publish(subject, (*poison).into()).await.unwrap().await.unwrap();
    }
    bus.queue.publish(turn(1)).await.unwrap();
    let delivery = take(&*bus.queue).await;
    assert_eq!(session(&delivery), "s1");
    bus.queue.acknowledge(&delivery).await.unwrap();
    until("nothing is left of it", async || stored(&context, &options).await == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_renewed_is_not_handed_out_again_and_what_is_not_renewed_is() {
    let (server, options) = (Kind::Nats.shared(), options());
    let (one, two) = (server.connect(&options).await, server.connect(&options).await);
    one.queue.publish(turn(1)).await.unwrap();
    let delivery = take(&*one.queue).await;
    let every = delivery.renew_every.expect("JetStream wants to hear of it");
    for _ in 0..6 {
        tokio::time::sleep(every).await;
        one.queue.renew(&delivery).await.unwrap();
        nothing(&*two.queue).await;
    }
    // Both ask for more, so either may get it.
    let (queue, again) = tokio::select! {
        again = take(&*one.queue) => (&one.queue, again),
        again = take(&*two.queue) => (&two.queue, again),
    };
    assert_eq!((session(&again), again.count), ("s1".to_owned(), 2));
    queue.acknowledge(&again).await.unwrap();
    let late = one.queue.acknowledge(&delivery).await;
    assert!(matches!(late, Ok(()) | Err(QueueError::Stale)), "{late:?}");
}

/// A batch that was asked for lasts 20 s, and nothing in between may make the client deaf.
#[tokio::test(flavor = "multi_thread")]
async fn a_wake_up_comes_at_once_after_a_long_silence() {
    let bus = Kind::Nats.shared().connect(&options()).await;
    let early = tokio::time::timeout(Duration::from_secs(7), bus.queue.take(trellis_orchestrator::ports::Role::Agent));
    assert!(early.await.is_err(), "nothing was published");
    let began = tokio::time::Instant::now();
    bus.queue.publish(turn(1)).await.unwrap();
    let delivery = take(&*bus.queue).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    bus.queue.acknowledge(&delivery).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_for_a_place_stays_with_the_process_that_has_it() {
    let (server, options) = (Kind::Nats.shared(), options());
    let (one, two) = (server.connect(&options).await, server.connect(&options).await);
    for n in 1..=3 {
        one.queue.publish(turn(n)).await.unwrap();
    }
    // With the first, all have come.
    let first = take(&*one.queue).await;
    one.queue.acknowledge(&first).await.unwrap();
    // The other two are on their way with it; either way they are not for the other process.
    tokio::time::sleep(Duration::from_secs(1)).await;
    for _ in 0..10 {
        nothing(&*two.queue).await;
    }
    for _ in 0..2 {
        let delivery = take(&*one.queue).await;
        assert_eq!(delivery.count, 1);
        one.queue.acknowledge(&delivery).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_or_stream_that_somebody_deletes_is_made_again() {
    let (server, options) = (Kind::Nats.shared(), BusOptions { lanes: 1, ..options() });
    let bus = server.connect(&options).await;
    bus.queue.publish(turn(1)).await.unwrap();
    let delivery = take(&*bus.queue).await;
    bus.queue.acknowledge(&delivery).await.unwrap();
    let (context, stream) = (operator(&server).await, format!("{}-wake-ups", escaped(&options)));
    context.delete_consumer_from_stream("agent-0", &stream).await.unwrap();
    bus.queue.publish(turn(2)).await.unwrap();
    let delivery = take(&*bus.queue).await;
    assert_eq!(session(&delivery), "s2");
    context.delete_stream(&stream).await.unwrap();
    let settled = bus.queue.acknowledge(&delivery).await;
    assert!(matches!(settled, Ok(()) | Err(QueueError::Stale | QueueError::Unavailable(_))), "{settled:?}");
    publish_at_last(&*bus.queue, turn(3)).await;
    let delivery = take(&*bus.queue).await;
    assert_eq!(session(&delivery), "s3");
    bus.queue.acknowledge(&delivery).await.unwrap();
}
