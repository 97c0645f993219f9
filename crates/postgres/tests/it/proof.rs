//! The log proves every record, whichever process wrote it; what is changed behind our back is found.

use crate::server::Server;
use crate::{ports, process};
use trellis_domain::limits::SomeLimits;
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::audit::Audit;
use trellis_orchestrator::checkpoint::Checkpoint;
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::log_key::verify_signature;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::{Journal as _, Log, LogError};
use trellis_postgres::PostgresLog;

async fn filled(server: &Server) -> Vec<RunId> {
    let bench = Bench::new(ports(server, "t").await, ScriptedPrompter::replies(&SCRIPT)).await;
    let mut runs = Vec::new();
    for n in 0..3 {
        let run = bench.ask(n, SomeLimits::default()).await;
        bench.finish(std::slice::from_ref(&run), 1).await;
        runs.push(run);
    }
    runs
}

async fn faults(log: &PostgresLog, run: &RunId) -> Vec<String> {
    let evidence = log.evidence(&Workspace::default(), run, usize::MAX).await.unwrap().unwrap();
    Audit::of(&evidence).0.faults
}

#[tokio::test(flavor = "multi_thread")]
async fn every_record_is_proven_from_any_process() {
    let server = Server::start();
    let runs = filled(&server).await;
    let (one, two) = (process(&server, "t").await, process(&server, "t").await);
    let (one, two) = (PostgresLog::open(&one).await.unwrap(), PostgresLog::open(&two).await.unwrap());
    assert_eq!(one.public_key(), two.public_key(), "one log, one key");
    for run in &runs {
        assert_eq!(faults(&one, run).await, Vec::<String>::new());
    }
    assert_eq!(one.behind().await.unwrap(), 0);
    let note = one.checkpoint().await.unwrap();
    let (checkpoint, signatures) = Checkpoint::parse(&note).unwrap();
    verify_signature(&checkpoint, &signatures, &two.public_key()).unwrap();
    let verdict = two.against(&note).await.unwrap();
    assert_eq!((verdict.covered, verdict.root, verdict.faults.len()), (checkpoint.size, Some(checkpoint.root), 0));
    let entries = two.entries(0, 10_000).await.unwrap();
    assert_eq!(entries.len() as u64, checkpoint.size);
    assert!(entries.iter().all(|entry| entry.leaf.is_none()));
    // What was kept still holds when more was written, by another process.
    let journal = process(&server, "t").await;
    journal.commit(trellis_orchestrator::contract::journal::first_of("more")).await.unwrap();
    let verdict = two.against(&note).await.unwrap();
    assert_eq!((verdict.size, verdict.faults), (checkpoint.size + 2, vec![]));
    assert!(matches!(two.against("nonsense").await, Err(LogError::Checkpoint(_))));
    assert!(matches!(two.evidence(&Workspace::default(), &runs[0], 100).await, Err(LogError::TooLarge(100))));
    let nobody = RunId::new("nobody").unwrap();
    assert!(two.evidence(&Workspace::default(), &nobody, 100).await.unwrap().is_none());
}

/// Somebody who can write the database changes it. The audit of the run and the kept checkpoint both find it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_changed_behind_our_back_is_found() {
    let changes = [
        (
            "a forged answer",
            "UPDATE t.records SET stored = convert_to(replace(convert_from(stored, 'UTF8'), 'It is so.', 'It is no.'), 'UTF8') WHERE name = 'end'",
            false,
        ),
        (
            "a forged end",
            "UPDATE t.records SET stored = convert_to(replace(convert_from(stored, 'UTF8'), 'final-answer', 'plan-partial'), 'UTF8') WHERE name = 'end'",
            true,
        ),
        ("a deleted record", "DELETE FROM t.records WHERE name = 'i1/observation'", true),
        ("the last event", "DELETE FROM t.records WHERE name = 'end'", true),
        (
            "the line of the run",
            "UPDATE t.runs SET summary = convert_to(replace(convert_from(summary, 'UTF8'), 'answered', 'failed'), 'UTF8')",
            false,
        ),
        ("the configuration", "UPDATE t.snapshots SET settings = settings || ' '::bytea", false),
        ("a leaf", "UPDATE t.leaves SET nodes = set_byte(nodes, 0, get_byte(nodes, 0) # 1) WHERE number = 3", true),
        (
            "the history",
            "UPDATE t.config_changes SET value = convert_to(replace(convert_from(value, 'UTF8'), 'search', 'seared'), 'UTF8')",
            true,
        ),
    ];
    for (what, change, in_log) in changes {
        let server = Server::start();
        let runs = filled(&server).await;
        let log = PostgresLog::open(&*process(&server, "t").await).await.unwrap();
        let note = log.checkpoint().await.unwrap();
        let rows = server.look().await.execute(change, &[]).await.unwrap();
        assert!(rows > 0, "{what}: nothing was changed");
        let of_run = faults(&log, &runs[0]).await;
        let of_log = log.against(&note).await.unwrap().faults;
        let told = what != "the history";
        assert_eq!((!of_run.is_empty(), !of_log.is_empty()), (told, in_log), "{what}: {of_run:?} {of_log:?}");
    }
}
