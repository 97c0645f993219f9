//! The contract of the queue.

use super::{id, scope};
use crate::ports::{OpenTurn, Queue, Role, TurnKey};
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::record::Name;
use trellis_patterns::react::IterationNames;

fn turn(n: u32) -> OpenTurn {
    let key = TurnKey { scope: scope("default"), run: id("r"), session: id("r"), name: Name::iteration(n) };
    OpenTurn::new(key, None, false)
}

pub async fn suite(queue: Arc<dyn Queue>) {
    // A turn that waits already is not queued twice.
    queue.publish(turn(0)).await;
    queue.publish(turn(0)).await;
    let delivery = queue.take(Role::Agent).await;
    assert_eq!((delivery.turn.key.name.as_str(), delivery.count), ("i0", 1));
    let nothing = tokio::time::timeout(std::time::Duration::from_millis(20), queue.take(Role::Agent)).await;
    assert!(nothing.is_err(), "one wake-up, one delivery");

    // A rejected wake-up comes back, counted.
    queue.reject(delivery).await;
    let again = queue.take(Role::Agent).await;
    assert_eq!(again.count, 2);
    queue.acknowledge(&again).await;

    // Competing takers share the work; nothing is lost, nothing doubled.
    let takers: Vec<_> = (0..4)
        .map(|_| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move {
                let mut taken = Vec::new();
                while let Ok(delivery) =
                    tokio::time::timeout(std::time::Duration::from_millis(200), queue.take(Role::Agent)).await
                {
                    queue.acknowledge(&delivery).await;
                    taken.push(delivery.turn.key.name.to_string());
                }
                taken
            })
        })
        .collect();
    for n in 1..=200 {
        queue.publish(turn(n)).await;
    }
    let mut all = Vec::new();
    for taker in takers {
        all.extend(taker.await.expect("no taker fails"));
    }
    let distinct: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!((all.len(), distinct.len()), (200, 200));
}
