//! What a server does to its clients: connections are cut, it stops and comes back, it stands still, it has no room. Callers
//! get errors that they can repeat; nothing that was committed is lost, nothing is committed twice.

use crate::server::Server;
use crate::{ports, process};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;
use trellis_domain::Workspace;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::Name;
use trellis_domain::run::RunState;
use trellis_orchestrator::contract;
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::{
    Commit, Disposition, Heard, Journal, JournalError, NewRecord, Outcome, RealWorld, Stream as _, StreamMessage,
    StreamNotice,
};
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};
use trellis_postgres::{Database, DatabaseSettings, PostgresJournal, PostgresStream};

fn outcome(first: &Commit, name: &str) -> Commit {
    let record = NewRecord { name: Name::new(name.to_owned()), ..contract::journal::observation(first, "a fact") };
    Commit { records: vec![record], close: vec![], open: vec![], ..first.clone() }
}

/// Writes names in order until it is told to stop, repeating what failed as a worker does: after an error it looks what is
/// there. Gives the names that were acknowledged.
async fn write(
    journal: Arc<PostgresJournal>,
    run: String,
    stop: Arc<AtomicBool>,
    errors: Arc<AtomicUsize>,
) -> Vec<String> {
    let first = contract::journal::first_of(&run);
    let mut acknowledged = Vec::new();
    let mut n = 0;
    while !stop.load(Ordering::Relaxed) {
        let name = format!("n{n}");
        match journal.commit(outcome(&first, &name)).await {
            Ok(Outcome::Committed(_)) => acknowledged.push(name),
            Ok(Outcome::Conflict) => {
                // Only after an error can it be there already.
                acknowledged.push(name);
            }
            Err(error) => {
                assert_eq!(error.disposition(), Disposition::Retry, "{error}");
                errors.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        }
        n += 1;
    }
    acknowledged
}

/// Writers on several runs while something happens; whatever it is, what was acknowledged is there, once.
async fn writing_while(server: &mut Server, happens: impl AsyncFnOnce(&mut Server)) -> usize {
    const RUNS: usize = 16;
    let journals = [process(server, "t").await, process(server, "t").await];
    let (stop, errors) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut writers = JoinSet::new();
    for n in 0..RUNS {
        let run = format!("r{n}");
        journals[0].commit(contract::journal::first_of(&run)).await.unwrap();
        let writer = write(Arc::clone(&journals[n % 2]), run.clone(), Arc::clone(&stop), Arc::clone(&errors));
        writers.spawn(async move { (run, writer.await) });
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    happens(server).await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    stop.store(true, Ordering::Relaxed);
    let written = tokio::time::timeout(Duration::from_mins(1), writers.join_all()).await.expect("nobody hangs");
    for (run, acknowledged) in written {
        let run = trellis_domain::RunId::new(&run).unwrap();
        let events = journals[1].events(&Workspace::default(), &run, 0, 1_000_000).await.unwrap();
        let names: Vec<_> = events.iter().map(|record| record.header.name.to_string()).collect();
        let distinct: BTreeSet<_> = names.iter().cloned().collect();
        assert_eq!(distinct.len(), names.len(), "a name is taken once");
        assert!(acknowledged.len() > 3, "it goes on");
        for name in acknowledged {
            assert!(distinct.contains(&name), "{name} was acknowledged and is lost");
        }
        let seqs: Vec<_> = events.iter().map(|record| record.header.seq).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "no gap");
    }
    errors.load(Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_may_be_cut_at_any_time() {
    let mut server = Server::start();
    writing_while(&mut server, async |server: &mut Server| {
        let look = server.look().await;
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'trellis'";
        for _ in 0..40 {
            look.execute(cut, &[]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_may_crash_and_come_back() {
    let mut server = Server::start();
    let errors = writing_while(&mut server, async |server: &mut Server| {
        for _ in 0..2 {
            server.crash();
            tokio::time::sleep(Duration::from_millis(500)).await;
            server.run();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    })
    .await;
    assert!(errors > 0, "somebody was told");
}

/// A server that stands still gives no answer: callers are told in bounded time, and what was under way is looked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_is_given_up() {
    let server = Server::start();
    let settings = DatabaseSettings {
        statement_timeout: Duration::from_millis(500),
        wait_timeout: Duration::from_millis(500),
        ..server.settings("t")
    };
    let journal = PostgresJournal::new(Database::open(settings).await.unwrap(), &RealWorld);
    let first = contract::journal::first_of("r");
    journal.commit(first.clone()).await.unwrap();
    server.signal_all("STOP");
    let begun = Instant::now();
    let (commit, load) =
        tokio::join!(journal.commit(outcome(&first, "a")), journal.load(&first.scope.workspace, &first.session));
    let took = begun.elapsed();
    server.signal_all("CONT");
    assert!(matches!(commit, Err(JournalError::Unavailable(_))), "{commit:?}");
    assert!(matches!(load, Err(JournalError::Unavailable(_))));
    assert!(took < Duration::from_secs(15), "{took:?}");
    let again = async {
        loop {
            match journal.commit(outcome(&first, "a")).await {
                Ok(outcome) => return outcome,
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.expect("it goes on");
    let events = journal.events(&first.scope.workspace, &first.run, 0, 100).await.unwrap();
    assert_eq!(events.iter().filter(|record| record.header.name == Name::new("a")).count(), 1);
}

/// When all connections are in use, who waits too long is told so; commits have connections of their own.
#[tokio::test(flavor = "multi_thread")]
async fn readers_do_not_keep_commits_waiting() {
    let server = Server::start();
    let settings = DatabaseSettings {
        connections: 2,
        wait_timeout: Duration::from_secs(2),
        statement_timeout: Duration::from_secs(6),
        ..server.settings("t")
    };
    let journal = Arc::new(PostgresJournal::new(Database::open(settings).await.unwrap(), &RealWorld));
    let first = contract::journal::first_of("r");
    journal.commit(first.clone()).await.unwrap();
    // Somebody holds the table of turns, so that whoever reads it waits.
    let mut look = server.look().await;
    let holding = look.transaction().await.unwrap();
    holding
        .batch_execute("LOCK TABLE t.aside IN ACCESS EXCLUSIVE MODE; LOCK TABLE t.served IN ACCESS EXCLUSIVE MODE")
        .await
        .unwrap();
    let mut waiting = JoinSet::new();
    for _ in 0..8 {
        let journal = Arc::clone(&journal);
        waiting.spawn(async move { journal.sign_of_life(contract_time()).await });
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let begun = Instant::now();
    assert!(matches!(journal.commit(outcome(&first, "a")).await, Ok(Outcome::Committed(_))));
    assert!(begun.elapsed() < Duration::from_millis(1500), "{:?}", begun.elapsed());
    let told: Vec<_> = waiting.join_all().await.into_iter().map(Result::unwrap_err).collect();
    assert!(told.iter().all(|error| error.disposition() == Disposition::Retry));
    assert!(told.iter().any(|error| error.to_string().contains("all connections are in use")), "{told:?}");
    assert!(told.iter().any(|error| error.to_string().contains("lock timeout")), "{told:?}");
    drop(holding);
}

fn contract_time() -> trellis_domain::Timestamp {
    trellis_domain::Timestamp::from_micros(0)
}

/// Runs go on through all of it, and nothing is paid twice that was recorded.
#[tokio::test(flavor = "multi_thread")]
async fn runs_survive_cut_connections() {
    let server = Server::start();
    let store = ports(&server, "t").await;
    let bench = Bench::new(store.clone(), ScriptedPrompter::replies(&SCRIPT)).await;
    let workers = Workers::new(Arc::clone(&bench.orchestrator), WorkerOptions::default());
    let (stop, stopped) = watch::channel(None);
    let serving = tokio::spawn(async move { workers.run(stopped).await });
    let look = server.look().await;
    let cutting = tokio::spawn(async move {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'trellis' AND random() < 0.3";
        loop {
            look.execute(cut, &[]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
    });
    let mut runs = Vec::new();
    for n in 0..5 {
        // Who asks repeats what failed; the same request is the same run.
        let request = AgentRequest { question: format!("question {n}"), ..AgentRequest::default() };
        let asking = async {
            loop {
                match bench.try_request(n, request.clone(), SomeLimits::default()).await {
                    Ok(run) => return run,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            }
        };
        let run = tokio::time::timeout(Duration::from_mins(1), asking).await.expect("it is accepted");
        let ending = async {
            while !matches!(store.0.run(&Workspace::default(), &run).await, Ok(Some(run)) if run.state.is_end()) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_mins(1), ending).await.expect("it ends");
        runs.push(run);
    }
    cutting.abort();
    stop.send_replace(Some(Stop::Drain));
    serving.await.unwrap();
    for run in runs {
        assert_eq!(bench.summary(&run).await.state, RunState::Answered);
    }
}

/// What is told while connections break is heard, or said to be missed; afterwards everybody hears again.
#[tokio::test(flavor = "multi_thread")]
async fn the_stream_comes_back() {
    let mut server = Server::start();
    let (one, two) = (server.database("t").await, server.database("t").await);
    let (one, two) = (PostgresStream::open(&one).await.unwrap(), PostgresStream::open(&two).await.unwrap());
    let mut listener = two.listen();
    let message = |seq| StreamMessage {
        from: "one".into(),
        workspace: Workspace::default(),
        notice: StreamNotice::Committed { run: trellis_domain::RunId::new("r").unwrap(), seq },
    };
    one.publish(message(1));
    let mut heard =
        async || tokio::time::timeout(Duration::from_secs(30), listener.next()).await.expect("something is heard");
    assert_eq!(heard().await, Heard::Message(message(1)));
    server.crash();
    server.run();
    let mut seq = 2;
    let heard_again = loop {
        one.publish(message(seq));
        seq += 1;
        match heard().await {
            Heard::Message(message) => break message,
            Heard::Missed => {}
        }
    };
    assert_eq!(&*heard_again.from, "one");
}
