//! The contract of the queue.

use super::{id, scope};
use crate::ports::{OpenTurn, Queue, Role, TurnKey};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::record::Name;
use trellis_patterns::react::IterationNames;

fn turn(n: u32) -> OpenTurn {
    let key = TurnKey { scope: scope("default"), run: id("r"), session: id("r"), name: Name::iteration(n) };
    OpenTurn::new(key, None, false)
}

/// What comes may take a while over a network.
const PATIENCE: Duration = Duration::from_secs(2);

pub async fn suite(queue: Arc<dyn Queue>) {
    let publish = async |turn| queue.publish(turn).await.expect("the queue works");
    let take = async || queue.take(Role::Agent).await.expect("the queue works");
    // A turn that waits already is not queued twice.
    publish(turn(0)).await;
    publish(turn(0)).await;
    let delivery = take().await;
    assert_eq!((delivery.turn.key.name.as_str(), delivery.count), ("i0", 1));
    let nothing = tokio::time::timeout(Duration::from_millis(20), take()).await;
    assert!(nothing.is_err(), "one wake-up, one delivery");

    // One that is renewed and given back comes again, counted, and not before its time.
    queue.renew(&delivery).await.expect("the queue works");
    let began = tokio::time::Instant::now();
    queue.give_back(delivery, Duration::from_millis(40)).await.expect("the queue works");
    let again = take().await;
    assert_eq!(again.count, 2);
    assert!(began.elapsed() >= Duration::from_millis(40), "given back with a delay");
    queue.give_back(again, Duration::ZERO).await.expect("the queue works");
    let again = take().await;
    assert_eq!(again.count, 3);
    queue.acknowledge(&again).await.expect("the queue works");

    // Competing takers share the work; nothing is lost, nothing doubled.
    let takers: Vec<_> = (0..4)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move {
                let mut taken = Vec::new();
                while let Ok(delivery) = tokio::time::timeout(PATIENCE, queue.take(Role::Agent)).await {
                    let delivery = delivery.expect("the queue works");
                    queue.acknowledge(&delivery).await.expect("the queue works");
                    taken.push(delivery.turn.key.name.to_string());
                }
                taken
            })
        })
        .collect();
    for n in 1..=200 {
        publish(turn(n)).await;
    }
    let mut all = Vec::new();
    for taker in takers {
        all.extend(taker.await.expect("no taker fails"));
    }
    let distinct: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!((all.len(), distinct.len()), (200, 200));
}
