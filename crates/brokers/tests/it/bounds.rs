//! Nothing grows, nothing comes too early, and nothing that is no wake-up does harm.

use crate::scene::{Kind, for_all, nothing, options, session, sessions, take, take_all, turn};
use std::time::Duration;
use trellis_brokers::BusOptions;
use trellis_orchestrator::ports::{OpenTurn, QueueError, RealWorld, Role, World as _};

for_all!(
    what_waits_is_not_queued_again,
    a_turn_that_was_taken_can_be_woken_at_once,
    a_full_queue_refuses,
    a_turn_is_not_handed_out_before_it_is_due,
    counts_grow_with_every_hand_out,
    receipts_work_once,
);

/// As sweeps of two processes do it while nobody takes anything.
async fn what_waits_is_not_queued_again(kind: Kind) {
    let (server, options) = (kind.shared(), options());
    let processes = [server.connect(&options).await, server.connect(&options).await];
    for _ in 0..30 {
        for n in 0..10 {
            for process in &processes {
                process.queue.publish(turn(n)).await.unwrap();
            }
        }
    }
    let queue = &*processes[0].queue;
    let (mut taken, mut next) = (Vec::new(), Some(take(queue).await));
    while let Some(delivery) = next {
        queue.acknowledge(&delivery).await.unwrap();
        taken.push(session(&delivery));
        let soon = tokio::time::timeout(Duration::from_secs(1), queue.take(Role::Agent)).await;
        next = soon.ok().map(Result::unwrap);
    }
    // RabbitMQ and Pulsar cannot compare messages, so each process may send one.
    assert!((10..=20).contains(&taken.len()), "{} were handed out", taken.len());
    assert_eq!(taken.into_iter().collect::<std::collections::BTreeSet<_>>(), sessions(0..10));
}

async fn a_turn_that_was_taken_can_be_woken_at_once(kind: Kind) {
    let (server, options) = (kind.shared(), options());
    let (sender, worker) = (server.connect(&options).await, server.connect(&options).await);
    for round in 0..3 {
        sender.queue.publish(turn(1)).await.unwrap();
        let delivery = take(&*worker.queue).await;
        worker.queue.acknowledge(&delivery).await.unwrap();
        // The server has it from another connection than the next wake-up.
        nothing(&*worker.queue).await;
        assert_eq!((session(&delivery), delivery.count), ("s1".to_owned(), 1), "round {round}");
        // The sender may look at the length of a queue once a second.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn a_full_queue_refuses(kind: Kind) {
    let options = BusOptions { longest_queue: 10, ..options() };
    let bus = kind.shared().connect(&options).await;
    let mut refused = 0;
    for n in 0..40 {
        match bus.queue.publish(turn(n)).await {
            Ok(()) => {}
            Err(QueueError::Unavailable(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!((29..=30).contains(&refused), "{refused} were refused");
    // What was refused can be sent as soon as there is room.
    let delivery = take(&*bus.queue).await;
    bus.queue.acknowledge(&delivery).await.unwrap();
    crate::scene::publish_at_last(&*bus.queue, turn(39)).await;
    take_all(&*bus.queue, sessions([39])).await;
}

async fn a_turn_is_not_handed_out_before_it_is_due(kind: Kind) {
    let bus = kind.shared().connect(&options()).await;
    // It listens from the first one on, which may take some time.
    bus.queue.publish(turn(0)).await.unwrap();
    let first = take(&*bus.queue).await;
    bus.queue.acknowledge(&first).await.unwrap();
    let due = RealWorld.now().plus_ms(1_500);
    let later = OpenTurn { due: Some(due), ..turn(1) };
    bus.queue.publish(later.clone()).await.unwrap();
    bus.queue.publish(later).await.unwrap();
    bus.queue.publish(turn(2)).await.unwrap();
    assert_eq!(session(&take(&*bus.queue).await), "s2");
    assert!(RealWorld.now() < due, "the machine is too slow for this test");
    let delivery = take(&*bus.queue).await;
    assert!(RealWorld.now() >= due);
    assert_eq!((session(&delivery), delivery.count), ("s1".to_owned(), 1));
    bus.queue.acknowledge(&delivery).await.unwrap();
    nothing(&*bus.queue).await;
}

async fn counts_grow_with_every_hand_out(kind: Kind) {
    let (server, options) = (kind.shared(), options());
    let sender = server.connect(&options).await;
    sender.queue.publish(turn(1)).await.unwrap();
    for count in 1..=3 {
        // Each process goes without a word, as after a crash.
        let process = server.connect(&options).await;
        let delivery = take(&*process.queue).await;
        match kind {
            // A classic queue only tells that a message was handed out before.
            Kind::RabbitMq => assert_eq!(delivery.count, count.min(2)),
            Kind::Nats => assert_eq!(delivery.count, count),
            // Only what was given back is counted.
            #[cfg(feature = "pulsar")]
            Kind::Pulsar => assert_eq!(delivery.count, 1),
        }
    }
    let delivery = take(&*sender.queue).await;
    let before = delivery.count;
    sender.queue.give_back(delivery, Duration::from_millis(100)).await.unwrap();
    let again = take(&*sender.queue).await;
    assert_eq!(again.count, before + 1);
    sender.queue.acknowledge(&again).await.unwrap();
    nothing(&*sender.queue).await;
}

async fn receipts_work_once(kind: Kind) {
    let bus = kind.shared().connect(&options()).await;
    bus.queue.publish(turn(1)).await.unwrap();
    bus.queue.publish(turn(2)).await.unwrap();
    let (one, two) = (take(&*bus.queue).await, take(&*bus.queue).await);
    bus.queue.acknowledge(&one).await.unwrap();
    for again in [bus.queue.acknowledge(&one).await, bus.queue.give_back(one.clone(), Duration::ZERO).await] {
        assert!(matches!(again, Ok(()) | Err(QueueError::Stale)), "{again:?}");
    }
    // Nothing else is harmed.
    bus.queue.renew(&two).await.unwrap();
    bus.queue.acknowledge(&two).await.unwrap();
    bus.queue.publish(turn(3)).await.unwrap();
    let three = take(&*bus.queue).await;
    assert_eq!(session(&three), "s3");
    bus.queue.acknowledge(&three).await.unwrap();
}
