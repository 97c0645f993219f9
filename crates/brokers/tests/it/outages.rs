//! Connections and servers go and come back.

use crate::scene::{
    Kind, PATIENCE, check, for_all, log_of, options, publish_at_last, session, sessions, take, take_all, turn, until,
    whole_log,
};
use std::sync::Arc;
use std::time::Duration;
use trellis_brokers::{BusOptions, Timing};
use trellis_domain::Workspace;
use trellis_orchestrator::ports::{Heard, QueueError, Role, StreamListener, StreamMessage, StreamNotice};
use trellis_servers::Proxy;

for_all!(
    a_server_that_is_killed_and_started_again_has_lost_nothing,
    a_connection_that_is_cut_is_opened_anew,
    a_server_that_is_gone_is_looked_for_without_haste,
    a_server_that_stands_still_keeps_nobody_waiting_for_ever,
    an_address_where_nobody_is_is_an_error,
);

async fn a_server_that_is_killed_and_started_again_has_lost_nothing(kind: Kind) {
    let (server, options) = (kind.own(), options());
    let (one, two) = (server.connect(&options).await, server.connect(&options).await);
    for n in 0..60 {
        one.queue.publish(turn(n)).await.unwrap();
    }
    let mut in_hand = Vec::new();
    for _ in 0..10 {
        in_hand.push(take(&*one.queue).await);
    }
    let done = session(&in_hand[0]);
    one.queue.acknowledge(&in_hand.remove(0)).await.unwrap();
    // Somebody waits for the other role all the time.
    let queue = Arc::clone(&two.queue);
    let waiting = tokio::spawn(async move { queue.take(Role::Aggregator).await });
    two.queue.publish(check(200)).await.unwrap();
    let first = tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap().unwrap();
    two.queue.acknowledge(&first).await.unwrap();
    let queue = Arc::clone(&two.queue);
    let waiting = tokio::spawn(async move { queue.take(Role::Aggregator).await });
    server.process().kill();
    until("that the server is gone is noticed", async || one.queue.publish(turn(100)).await.is_err()).await;
    for delivery in &in_hand {
        let settled = one.queue.acknowledge(delivery).await;
        assert!(matches!(settled, Err(QueueError::Stale | QueueError::Unavailable(_))), "{settled:?}");
    }
    server.process().start_again();
    publish_at_last(&*one.queue, turn(101)).await;
    publish_at_last(&*two.queue, turn(102)).await;
    // What was asked of the server before its end is asked again.
    publish_at_last(&*two.queue, check(201)).await;
    // Sooner than a batch of NATS ends, and later than Pulsar may need for an attempt that comes too early.
    let soon = tokio::time::timeout(Duration::from_secs(15), waiting).await.expect("it is not waited for in vain");
    let second = soon.unwrap().unwrap();
    assert!(["s200", "s201"].contains(&session(&second).as_str()), "{second:?}");
    // The last acknowledgement before the crash may be lost, nothing else.
    let mut missing = sessions((0..60).chain([101, 102]));
    missing.remove(&done);
    let taken_by_one = take_all_of_both(&*one.queue, &*two.queue, missing);
    tokio::time::timeout(PATIENCE, taken_by_one).await.expect("everything comes again");
}

/// Takes with both processes until each of these has come.
async fn take_all_of_both(
    one: &dyn trellis_orchestrator::ports::Queue,
    two: &dyn trellis_orchestrator::ports::Queue,
    mut missing: std::collections::BTreeSet<String>,
) {
    while !missing.is_empty() {
        let (queue, delivery) = tokio::select! {
            delivery = one.take(Role::Agent) => (one, delivery.unwrap()),
            delivery = two.take(Role::Agent) => (two, delivery.unwrap()),
        };
        missing.remove(&session(&delivery));
        drop(queue.acknowledge(&delivery).await);
    }
}

async fn a_connection_that_is_cut_is_opened_anew(kind: Kind) {
    let (server, options) = (kind.shared(), options());
    let proxy = Proxy::to(server.port());
    let bus = server.connect_at(proxy.port(), &options).await.unwrap();
    let other = server.connect(&options).await;
    let mut listener = bus.stream.listen();
    bus.queue.publish(turn(1)).await.unwrap();
    let in_hand = take(&*bus.queue).await;
    for round in 2..5 {
        proxy.cut();
        publish_at_last(&*bus.queue, turn(round)).await;
        let mut missing = sessions([round]);
        if round == 2 {
            // What was in hand comes again.
            missing.insert(session(&in_hand));
        }
        take_all(&*bus.queue, missing).await;
        // Notices come again, and the listener is told that it may have missed some.
        let told = async {
            loop {
                other.stream.publish(committed(u64::from(round)));
                if let Ok(()) = tokio::time::timeout(Duration::from_millis(100), hear(&mut *listener, round)).await {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, told).await.expect("notices are heard again");
    }
}

fn committed(seq: u64) -> StreamMessage {
    let run = trellis_domain::SessionId::new("r").unwrap();
    StreamMessage {
        from: "other".into(),
        workspace: Workspace::default(),
        notice: StreamNotice::Committed { run, seq },
    }
}

async fn hear(listener: &mut dyn StreamListener, seq: u32) {
    while listener.next().await != Heard::Message(committed(u64::from(seq))) {}
}

async fn a_server_that_is_gone_is_looked_for_without_haste(kind: Kind) {
    let (server, options) = (kind.shared(), options());
    let proxy = Proxy::to(server.port());
    let bus = server.connect_at(proxy.port(), &options).await.unwrap();
    let queue = std::sync::Arc::clone(&bus.queue);
    let taking = tokio::spawn(async move { take(&*queue).await });
    proxy.refuse(true);
    proxy.cut();
    until("the loss is noticed", async || bus.queue.publish(turn(1)).await.is_err()).await;
    // How often it is tried is a matter of time.
    let before = proxy.taken();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let attempts = proxy.taken() - before;
    assert!((4..=60).contains(&attempts), "{attempts} attempts in 4 s");
    proxy.refuse(false);
    publish_at_last(&*bus.queue, turn(2)).await;
    // Who waited for a wake-up is still waiting, and gets it.
    let delivery = tokio::time::timeout(PATIENCE, taking).await.unwrap().unwrap();
    bus.queue.acknowledge(&delivery).await.unwrap();
    if session(&delivery) == "s1" {
        // It was on its way when the loss was noticed: an error does not mean that it never comes.
        take_all(&*bus.queue, sessions([2])).await;
    } else {
        assert_eq!(session(&delivery), "s2");
    }
    // One line says that a connection is lost and one that it is back, whatever was tried in between.
    until("both connections are back", async || {
        log_of(proxy.port()).iter().filter(|line| line.contains("back")).count() >= connections(kind)
    })
    .await;
    let log = log_of(proxy.port());
    assert_eq!(log.iter().filter(|line| line.contains("is lost")).count(), connections(kind), "{log:#?}");
    assert_eq!(log.len(), 2 * connections(kind), "{log:#?}");
    assert!(!whole_log().contains("p@ss/w") && !whole_log().contains("p%40ss"), "a password is in the log");
}

fn connections(kind: Kind) -> usize {
    match kind {
        Kind::RabbitMq => 2,
        Kind::Nats => 1,
        #[cfg(feature = "pulsar")]
        Kind::Pulsar => 2,
    }
}

async fn a_server_that_stands_still_keeps_nobody_waiting_for_ever(kind: Kind) {
    let server = kind.own();
    let timing = Timing { answer: Duration::from_secs(kind.seconds_to_answer()), ..options().timing };
    let options = BusOptions { timing, ..options() };
    let bus = server.connect(&options).await;
    bus.queue.publish(turn(1)).await.unwrap();
    server.process().pause();
    let began = tokio::time::Instant::now();
    for n in 2..5 {
        let failed = bus.queue.publish(turn(n)).await;
        assert!(matches!(failed, Err(QueueError::Unavailable(_))), "{failed:?}");
    }
    bus.stream.publish(committed(1));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let connected = server.connect_at(server.port(), &options).await;
    assert!(connected.is_err(), "nobody answers");
    server.process().resume();
    publish_at_last(&*bus.queue, turn(6)).await;
    take_all(&*bus.queue, sessions([1, 6])).await;
}

async fn an_address_where_nobody_is_is_an_error(kind: Kind) {
    let server = kind.shared();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let refused = server.connect_at(nobody, &options()).await.unwrap_err().to_string();
    assert!(refused.contains(&format!("trellis@127.0.0.1:{nobody}")), "{refused}");
    let address = server.address_at(server.port()).replace("p%40ss", "wrong-one");
    let world = std::sync::Arc::new(trellis_orchestrator::ports::RealWorld);
    let denied = trellis_brokers::connect(&address, &options(), world).await.unwrap_err().to_string();
    assert!(denied.contains("cannot be used") && !denied.contains("wrong-one"), "{denied}");
}
