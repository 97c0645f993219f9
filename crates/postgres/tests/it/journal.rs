//! The commit contract, from one process and from several.

use crate::server::Server;
use crate::{fresh, ports, process};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use trellis_domain::record::Name;
use trellis_domain::{Timestamp, Workspace};
use trellis_orchestrator::contract;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::ports::{BoxFuture, Commit, Journal, NewRecord, Outcome, RealWorld, World};
use trellis_postgres::{Database, DatabaseWorld, OpenError};

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_keeps_the_contract() {
    let server = Server::start();
    contract::journal::suite(async || process(&server, &fresh()).await as Arc<dyn Journal>).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_expire_by_the_servers_clock() {
    let server = Server::start();
    contract::journal::claims_expire(&*process(&server, "t").await, tokio::time::sleep).await;
}

/// A machine whose clock is set by hand, and on which waiting takes no time.
#[derive(Debug, Default)]
struct WrongClock(AtomicI64);

impl World for WrongClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(RealWorld.now().as_micros() + self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        RealWorld.sleep(Duration::from_millis(10))
    }

    fn fresh_id(&self) -> String {
        RealWorld.fresh_id()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_that_are_wrong_do_not_count() {
    const MINUTES: i64 = 60_000_000;
    let server = Server::start();
    let database = server.database("t").await;
    let off = |world: &DatabaseWorld| (world.now().as_micros() - RealWorld.now().as_micros()).abs();
    let clock = Arc::new(WrongClock::default());
    clock.0.store(10 * MINUTES, Ordering::Relaxed);
    let world = DatabaseWorld::open(&database, Arc::clone(&clock) as _).await.unwrap();
    assert!(off(&world) < 2_000_000, "{} us", off(&world));
    // It is looked at again, for as long as the process runs.
    clock.0.store(-7 * MINUTES, Ordering::Relaxed);
    let followed = async {
        while off(&world) > 2_000_000 {
            RealWorld.sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), followed).await.expect("the clock is looked at again");
    // Clocks that agree are left alone: time does not jump.
    let world = DatabaseWorld::open(&database, Arc::new(RealWorld)).await.unwrap();
    let (before, now, after) = (RealWorld.now(), world.now(), RealWorld.now());
    assert!((before..=after).contains(&now));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_keeps_the_contract() {
    let server = Server::start();
    contract::config::suite(async || ports(&server, &fresh()).await.1).await;
}

/// A commit of one record to a run that is there.
fn outcome(like: &NewRecord, run: &Commit, name: &str) -> Commit {
    let record = NewRecord { name: Name::new(name.to_owned()), ..like.clone() };
    Commit { records: vec![record], close: vec![], open: vec![], ..run.clone() }
}

/// Several processes write to the same runs at the same time: each name is taken once, versions and numbers have no gap.
#[tokio::test(flavor = "multi_thread")]
async fn commits_of_several_processes_are_one_after_the_other() {
    const PROCESSES: usize = 4;
    const NAMES: usize = 60;
    let server = Server::start();
    let mut journals: Vec<Arc<dyn Journal>> = Vec::new();
    for _ in 0..PROCESSES {
        journals.push(process(&server, "t").await);
    }
    let firsts: Vec<Commit> = (0..3).map(|run| contract::journal::first_of(&format!("r{run}"))).collect();
    for first in &firsts {
        assert!(matches!(journals[0].commit(first.clone()).await.unwrap(), Outcome::Committed(_)));
    }
    let mut writing = JoinSet::new();
    for journal in &journals {
        for first in &firsts {
            for n in 0..NAMES {
                let commit = outcome(&contract::journal::observation(first, "a fact"), first, &format!("n{n}"));
                let journal = Arc::clone(journal);
                writing.spawn(async move { matches!(journal.commit(commit).await.unwrap(), Outcome::Committed(_)) });
            }
        }
    }
    let committed = writing.join_all().await.into_iter().filter(|committed| *committed).count();
    assert_eq!(committed, firsts.len() * NAMES, "every name once, whoever came first");
    for first in &firsts {
        let events = journals[1].events(&Workspace::default(), &first.run, 0, 1_000).await.unwrap();
        let seqs: Vec<_> = events.iter().map(|record| record.header.seq).collect();
        assert_eq!(seqs, (1..=(NAMES + first.records.len()) as u64).collect::<Vec<_>>());
        let log = journals[2].load(&Workspace::default(), &first.session).await.unwrap().unwrap();
        assert_eq!(log.version, NAMES as u64 + 1, "each commit is a version");
    }
}

/// Commits that touch the same two runs in opposite order, from several processes, never wait for each other for ever.
#[tokio::test(flavor = "multi_thread")]
async fn batches_of_several_processes_do_not_block_each_other() {
    let server = Server::start();
    let mut journals: Vec<Arc<dyn Journal>> = Vec::new();
    for _ in 0..4 {
        journals.push(process(&server, "t").await);
    }
    let firsts: Vec<Commit> = (0..64).map(|run| contract::journal::first_of(&format!("r{run}"))).collect();
    for first in &firsts {
        journals[0].commit(first.clone()).await.unwrap();
    }
    let mut writing = JoinSet::new();
    for (at, journal) in journals.iter().enumerate() {
        let mut order: Vec<_> = firsts.clone();
        if at % 2 == 1 {
            order.reverse();
        }
        for round in 0..5 {
            for first in &order {
                let commit =
                    outcome(&contract::journal::observation(first, "a fact"), first, &format!("p{at}n{round}"));
                let journal = Arc::clone(journal);
                writing.spawn(async move { journal.commit(commit).await });
            }
        }
    }
    let all = tokio::time::timeout(Duration::from_mins(1), writing.join_all()).await.expect("nobody waits for ever");
    let committed = all.into_iter().filter(|outcome| matches!(outcome, Ok(Outcome::Committed(_)))).count();
    assert_eq!(committed, 64 * 4 * 5);
    let deadlocks = "SELECT sum(deadlocks)::int8 FROM pg_stat_database";
    let row = server.look().await.query_one(deadlocks, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
}

/// What cannot be stored is refused alone: who waits in the same batch is not harmed.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_cannot_be_stored_harms_nobody_elses() {
    let server = Server::start();
    let journal = process(&server, "t").await as Arc<dyn Journal>;
    let first = contract::journal::first_of("r");
    journal.commit(first.clone()).await.unwrap();
    let mut writing = JoinSet::new();
    for n in 0..40 {
        let name = if n == 20 { "a\0b".to_owned() } else { format!("n{n}") };
        let commit = outcome(&contract::journal::observation(&first, "a fact"), &first, &name);
        let journal = Arc::clone(&journal);
        writing.spawn(async move { (n, journal.commit(commit).await) });
    }
    for (n, outcome) in writing.join_all().await {
        match outcome {
            Ok(Outcome::Committed(_)) => assert_ne!(n, 20),
            Err(error) => assert!(n == 20 && error.is_unreadable(), "{n}: {error}"),
            Ok(Outcome::Conflict) => panic!("nobody has that name"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_of_a_newer_program_is_refused() {
    let server = Server::start();
    drop(server.database("t").await);
    drop(server.database("t").await);
    server.look().await.batch_execute("INSERT INTO t.migrations (version) VALUES (999)").await.unwrap();
    let refused = Database::open(server.settings("t")).await.unwrap_err();
    assert!(matches!(refused, OpenError::Newer { found: 999, .. }), "{refused}");
    let nowhere = server.settings("t");
    let nowhere = trellis_postgres::DatabaseSettings { address: "host=/nowhere user=x".to_owned(), ..nowhere };
    assert!(matches!(Database::open(nowhere).await, Err(OpenError::Unreachable(_))));
}

/// Processes that start at once make the tables once.
#[tokio::test(flavor = "multi_thread")]
async fn many_processes_may_start_at_once() {
    let server = Server::start();
    let mut opening = JoinSet::new();
    for _ in 0..8 {
        let settings = server.settings("t");
        opening.spawn(async move { Database::open(settings).await.map(drop) });
    }
    assert!(opening.join_all().await.into_iter().all(|opened| opened.is_ok()));
}

/// When nobody has served for a while, what is delayed is delayed by so much longer, and the time is on record.
#[tokio::test(flavor = "multi_thread")]
async fn time_in_which_nobody_served_is_nobodys_run_time() {
    let server = Server::start();
    let (journal, config) = ports(&server, "t").await;
    let bench = Bench::play((Arc::clone(&journal), config)).await;
    let first = contract::journal::first_of("r");
    journal.commit(first.clone()).await.unwrap();
    let now = bench.orchestrator.ports.world.now();
    journal.sign_of_life(now).await.unwrap();
    journal.sign_of_life(now).await.unwrap();
    assert_eq!(journal.service().outages.iter().count(), 0);
    let look = server.look().await;
    look.batch_execute(
        "UPDATE t.served SET last = last - interval '1 hour'; UPDATE t.turns SET due = 4000000000000000",
    )
    .await
    .unwrap();
    look.batch_execute("UPDATE t.runs SET started = 0").await.unwrap();
    let other = process(&server, "t").await;
    other.sign_of_life(now).await.unwrap();
    journal.sign_of_life(now).await.unwrap();
    for service in [other.service(), journal.service()] {
        let outages: Vec<_> = service.outages.iter().map(|outage| outage.ms() / 60_000).collect();
        assert_eq!(outages, [60]);
    }
    let turns = journal.turns_of(&Workspace::default(), &first.run).await.unwrap();
    let later = turns[0].due.unwrap().as_micros() - 4_000_000_000_000_000;
    assert_eq!(later / 60_000_000, 60);
}
