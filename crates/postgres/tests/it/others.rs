//! Queue, stream and library keep their contracts, also between processes.

use crate::server::Server;
use crate::{fresh, process};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Workspace;
use trellis_domain::record::Name;
use trellis_orchestrator::contract;
use trellis_orchestrator::library::add;
use trellis_orchestrator::ports::{Journal, Library, NewTurn, OpenTurn, Queue, RealWorld, Role, Stream, Tables};
use trellis_postgres::{PostgresLibrary, PostgresQueue, PostgresStream, PostgresTables};

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_keeps_its_contract() {
    let server = Server::start();
    contract::queue::suite(Arc::new(PostgresQueue::new(&server.database("t").await))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stream_keeps_its_contract() {
    let server = Server::start();
    contract::stream::suite(async || {
        let schema = fresh();
        let (one, two) = (server.database(&schema).await, server.database(&schema).await);
        let one = Arc::new(PostgresStream::open(&one).await.unwrap()) as Arc<dyn Stream>;
        [one, Arc::new(PostgresStream::open(&two).await.unwrap())]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_library_keeps_its_contract() {
    let server = Server::start();
    contract::library::suite(async |world| {
        let journal = process(&server, &fresh()).await;
        let library = Arc::new(PostgresLibrary::new(&journal, world)) as Arc<dyn Library>;
        (library, journal as Arc<dyn Journal>)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tables_keep_their_contract() {
    let server = Server::start();
    contract::tables::suite(async || Arc::new(PostgresTables::new(server.database(&fresh()).await)) as Arc<dyn Tables>)
        .await;
}

/// A document that one process adds in pieces is read by another in any ranges.
#[tokio::test(flavor = "multi_thread")]
async fn documents_are_read_by_other_processes() {
    let server = Server::start();
    let (one, two) = (process(&server, "t").await, process(&server, "t").await);
    let one = PostgresLibrary::new(&one, Arc::new(RealWorld));
    let two = PostgresLibrary::new(&two, Arc::new(RealWorld));
    let bytes: Vec<u8> = (0..3_500_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let ws = Workspace::default();
    let added = add(&one, &ws, contract::library::named("d"), &bytes).await.unwrap();
    let found = two.find(&ws, "d").await.unwrap().unwrap();
    assert_eq!(found, added);
    for range in [0..3_500_000_u64, 1_048_570..1_048_580, 3_499_999..9_000_000, 7..7] {
        let part = two.read(&ws, &found, range.clone()).await.unwrap();
        let end = usize::try_from(range.end.min(3_500_000)).unwrap();
        assert_eq!(part, bytes[usize::try_from(range.start).unwrap().min(end)..end], "{range:?}");
    }
    one.remove(&ws, "d").await.unwrap();
    assert!(two.read(&ws, &found, 0..9).await.is_err(), "it is gone everywhere");
    let left = server.look().await.query_one("SELECT count(*) FROM t.pieces", &[]).await.unwrap();
    assert_eq!(left.get::<_, i64>(0), 0);
}

fn turn(workspace: &str, run: &str, name: &str, root: bool) -> OpenTurn {
    let mut first = contract::journal::first_of(run);
    first.scope.workspace = Workspace::new(workspace).unwrap();
    let NewTurn { session, .. } = first.open.remove(0);
    let key = trellis_orchestrator::ports::TurnKey {
        scope: first.scope,
        run: first.run,
        session,
        name: Name::new(name.to_owned()),
    };
    OpenTurn::new(key, None, root)
}

async fn taken(queue: &PostgresQueue) -> String {
    let delivery = tokio::time::timeout(Duration::from_secs(5), queue.take(Role::Agent)).await.unwrap().unwrap();
    queue.acknowledge(&delivery).await.unwrap();
    let key = delivery.turn.key;
    format!("{} {}", key.scope.workspace, key.name)
}

/// A workspace with much to do does not keep others waiting, and what is begun comes before what is new.
#[tokio::test(flavor = "multi_thread")]
async fn workspaces_take_turns() {
    let server = Server::start();
    let queue = PostgresQueue::new(&server.database("t").await);
    for n in 0..50 {
        queue.publish(turn("busy", &format!("r{n}"), &format!("root{n}"), true)).await.unwrap();
    }
    for n in 0..3 {
        queue.publish(turn("other", "r", &format!("x{n}"), false)).await.unwrap();
    }
    queue.publish(turn("busy", "r0", "next", false)).await.unwrap();
    let mut first = Vec::new();
    for _ in 0..9 {
        first.push(taken(&queue).await);
    }
    for late in ["other x0", "other x1", "other x2", "busy next"] {
        assert!(first.contains(&late.to_owned()), "{late} waits behind others: {first:?}");
    }
}

/// A wake-up of a process that has died is handed out again, counted; who was too late has no say any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_wake_up_of_the_dead_comes_again() {
    let server = Server::start();
    let (one, two) = (PostgresQueue::new(&server.database("t").await), PostgresQueue::new(&server.database("t").await));
    one.publish(turn("w", "r", "x", true)).await.unwrap();
    let lost = one.take(Role::Agent).await.unwrap();
    server.look().await.batch_execute("UPDATE t.wakeups SET out_until = now() - interval '1 second'").await.unwrap();
    let again = tokio::time::timeout(Duration::from_secs(5), two.take(Role::Agent)).await.unwrap().unwrap();
    assert_eq!((again.turn.key.clone(), again.count), (lost.turn.key.clone(), 2));
    one.acknowledge(&lost).await.unwrap();
    one.give_back(lost, Duration::ZERO).await.unwrap();
    let count = server.look().await.query_one("SELECT count(*) FROM t.wakeups", &[]).await.unwrap();
    assert_eq!(count.get::<_, i64>(0), 1, "it is the other one's");
    two.acknowledge(&again).await.unwrap();
}

/// A wake-up that one process publishes is taken by another, soon.
#[tokio::test(flavor = "multi_thread")]
async fn others_are_woken() {
    let server = Server::start();
    let (one, two) = (PostgresQueue::new(&server.database("t").await), PostgresQueue::new(&server.database("t").await));
    for n in 0..20 {
        let waiting = two.take(Role::Agent);
        let publishing = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            one.publish(turn("w", "r", &format!("x{n}"), true)).await.unwrap();
        };
        let (delivery, ()) = tokio::join!(tokio::time::timeout(Duration::from_secs(3), waiting), publishing);
        two.acknowledge(&delivery.unwrap().unwrap()).await.unwrap();
    }
}
