//! Several processes, several workspaces.

use crate::scene::{Kind, check, for_all, nothing, options, session, sessions, take, turn, turn_of};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use trellis_brokers::{Bus, BusOptions};
use trellis_orchestrator::ports::{OpenTurn, Role};

for_all!(
    two_processes_share_the_work_and_nothing_comes_twice,
    one_that_holds_all_it_may_leaves_the_rest_to_others,
    workspaces_take_turns,
    roles_get_only_what_is_theirs,
    deployments_do_not_see_each_other,
);

async fn two_processes_share_the_work_and_nothing_comes_twice(kind: Kind) {
    let (server, options) = (kind.shared(), BusOptions { prefetch: 8, ..options() });
    let buses = [server.connect(&options).await, server.connect(&options).await];
    let work = |bus: Bus| {
        tokio::spawn(async move {
            let mut taken = Vec::new();
            while let Ok(next) = tokio::time::timeout(Duration::from_secs(3), bus.queue.take(Role::Agent)).await {
                let delivery = next.unwrap();
                bus.queue.acknowledge(&delivery).await.unwrap();
                taken.push(session(&delivery));
            }
            taken
        })
    };
    let workers = buses.clone().map(work);
    for n in 0..300 {
        buses[0].queue.publish(turn(n)).await.unwrap();
    }
    let mut all = Vec::new();
    for worker in workers {
        let taken = worker.await.unwrap();
        assert!(!taken.is_empty(), "both have work");
        all.extend(taken);
    }
    assert_eq!(all.len(), 300);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>(), sessions(0..300));
}

async fn one_that_holds_all_it_may_leaves_the_rest_to_others(kind: Kind) {
    let (server, options) = (kind.shared(), options());
    let slow = server.connect(&BusOptions { prefetch: 5, ..options.clone() }).await;
    for n in 0..40 {
        slow.queue.publish(turn(n)).await.unwrap();
    }
    // It acknowledges nothing.
    let mut in_hand = Vec::new();
    for _ in 0..5 {
        in_hand.push(take(&*slow.queue).await);
    }
    nothing(&*slow.queue).await;
    let quick = server.connect(&options).await;
    let mut others = BTreeSet::new();
    while others.len() < 35 {
        let delivery = take(&*quick.queue).await;
        others.insert(session(&delivery));
        quick.queue.acknowledge(&delivery).await.unwrap();
        for delivery in &in_hand {
            // What is in hand is not handed out to others as long as it is renewed.
            slow.queue.renew(delivery).await.unwrap();
            assert!(!others.contains(&session(delivery)));
        }
    }
    drop(quick);
    slow.queue.publish(turn(99)).await.unwrap();
    // Each that is settled makes room for one.
    slow.queue.acknowledge(&in_hand.remove(0)).await.unwrap();
    let next = async {
        loop {
            let delivery = take(&*slow.queue).await;
            // What the other one settled last may come again: it went before the broker knew of it.
            if !others.contains(&session(&delivery)) {
                break delivery;
            }
            slow.queue.acknowledge(&delivery).await.unwrap();
        }
    };
    let kept = async {
        loop {
            for delivery in &in_hand {
                slow.queue.renew(delivery).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        delivery = next => assert_eq!(session(&delivery), "s99"),
        () = kept => {}
    }
}

/// Neither in lanes of their own nor in one lane do the many keep the few waiting.
async fn workspaces_take_turns(kind: Kind) {
    for lanes in [1, 8] {
        let (server, options) = (kind.shared(), BusOptions { lanes, ..options() });
        let bus = server.connect(&options).await;
        for n in 0..300 {
            bus.queue.publish(turn_of("many", n)).await.unwrap();
        }
        for n in 0..5 {
            bus.queue.publish(turn_of("few", n)).await.unwrap();
        }
        let (mut few, mut taken) = (0, 0);
        while few < 5 {
            let delivery = take(&*bus.queue).await;
            few += u32::from(delivery.turn.key.scope.workspace.as_str() == "few");
            taken += 1;
            bus.queue.acknowledge(&delivery).await.unwrap();
            if taken == 1 {
                // From the first take on, the process asks for all that there is. If that comes later, this fails.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        assert!(taken <= 20, "{lanes} lanes: {taken} were taken until the five were served");
    }
}

async fn roles_get_only_what_is_theirs(kind: Kind) {
    let bus = kind.shared().connect(&options()).await;
    let check = check(1);
    bus.queue.publish(check.clone()).await.unwrap();
    nothing(&*bus.queue).await;
    let taken = tokio::time::timeout(crate::scene::PATIENCE, bus.queue.take(Role::Aggregator)).await.unwrap().unwrap();
    assert_eq!(taken.turn, check);
    bus.queue.acknowledge(&taken).await.unwrap();
}

async fn deployments_do_not_see_each_other(kind: Kind) {
    let server = kind.shared();
    let (one, other) = (server.connect(&options()).await, server.connect(&options()).await);
    one.queue.publish(OpenTurn { root: true, ..turn(1) }).await.unwrap();
    nothing(&*other.queue).await;
    let queue = Arc::clone(&one.queue);
    let delivery = take(&*queue).await;
    assert!(delivery.turn.root, "all of a turn's name and kind comes with it");
    queue.acknowledge(&delivery).await.unwrap();
}
