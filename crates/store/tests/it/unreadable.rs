//! Sessions whose records cannot be read: they end with that reason, as far as it can be written down, and harm nobody.

use crate::{open, ports};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;
use trellis_domain::limits::SomeLimits;
use trellis_domain::run::RunState;
use trellis_domain::{Caller, RunId, Surface, Timestamp, Workspace};
use trellis_orchestrator::Cancelling;
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::contract::teams::{agent, question};
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::{Journal, all_due_turns};
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};

/// Makes the records of a session unreadable, with the database's own tools and so with valid checksums.
fn blot(path: &Path, session: &str) {
    let database = fjall::Database::builder(path.join("journal")).open().unwrap();
    let records = database.keyspace("records", fjall::KeyspaceCreateOptions::default).unwrap();
    let rows: Vec<_> = records.iter().map(|row| row.into_inner().unwrap()).collect();
    let mine: Vec<_> = rows.into_iter().filter(|(key, _)| String::from_utf8_lossy(key).contains(session)).collect();
    assert!(!mine.is_empty());
    for (key, _) in mine {
        records.insert(key, "no record at all").unwrap();
    }
    database.persist(fjall::PersistMode::SyncAll).unwrap();
}

async fn until(mut done: impl AsyncFnMut() -> bool) {
    for _ in 0..500 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it did not come to that");
}

struct Serving(watch::Sender<Option<Stop>>, tokio::task::JoinHandle<()>);

impl Serving {
    fn start(bench: &Bench) -> Self {
        let workers = Workers::new(Arc::clone(&bench.orchestrator), WorkerOptions::default());
        let (stop, stopped) = watch::channel(None);
        Self(stop, tokio::spawn(async move { workers.run(stopped).await }))
    }

    async fn stop(self) {
        self.0.send_replace(Some(Stop::Drain));
        self.1.await.unwrap();
    }
}

/// Two accepted questions; the records of the first cannot be read.
async fn blotted(folder: &TempDir) -> [RunId; 2] {
    let runs = {
        let store = open(folder.path()).unwrap();
        let bench = Bench::new(ports(&store), ScriptedPrompter::replies(&SCRIPT)).await;
        [bench.ask(1, SomeLimits::default()).await, bench.ask(2, SomeLimits::default()).await]
    };
    blot(folder.path(), runs[0].as_str());
    runs
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_read_is_set_aside_with_the_reason_and_the_others_go_on() {
    let folder = TempDir::new().unwrap();
    let [lost, other] = blotted(&folder).await;
    {
        let store = open(folder.path()).unwrap();
        let bench = Bench::new(ports(&store), ScriptedPrompter::replies(&SCRIPT)).await;
        let serving = Serving::start(&bench);
        bench.follow(&other).await;
        until(async || store.journal.open_runs().await.unwrap() == 0).await;
        serving.stop().await;
        assert_eq!(bench.summary(&other).await.state, RunState::Answered);
    }
    // It stays so.
    let store = open(folder.path()).unwrap();
    assert!(all_due_turns(&*store.journal, Timestamp::from_micros(i64::MAX)).await.unwrap().is_empty());
    assert_eq!(store.journal.open_runs().await.unwrap(), 0);
    let told = store.journal.run(&Workspace::default(), &lost).await.unwrap().unwrap();
    assert_eq!((told.state, told.ended.is_some()), (RunState::Failed, true));
    let aside = store.set_aside().unwrap();
    assert_eq!(aside.len(), 1);
    assert_eq!((aside[0].run.as_str(), aside[0].turn.as_str()), (lost.as_str(), "i1"));
    assert!(aside[0].reason.contains("cannot be read"), "{}", aside[0].reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_be_read_can_be_cancelled() {
    let folder = TempDir::new().unwrap();
    let [lost, other] = blotted(&folder).await;
    let store = open(folder.path()).unwrap();
    let bench = Bench::new(ports(&store), ScriptedPrompter::replies(&SCRIPT)).await;
    let workspace = Workspace::default();
    let by = Caller::new(Some("ada".to_owned()), Surface::Api);
    let cancel = async |run| bench.runs().cancel(&workspace, run, &by).await.unwrap();
    assert_eq!(cancel(&lost).await, Cancelling::Cancelled);
    assert_eq!(cancel(&lost).await, Cancelling::AlreadyEnded(RunState::Cancelled));
    let aside = store.set_aside().unwrap();
    assert!(aside.iter().all(|turn| turn.reason.starts_with("cancelled by ada (api); ")), "{aside:?}");
    assert_eq!(store.journal.open_runs().await.unwrap(), 1);
    bench.finish(std::slice::from_ref(&other), 1).await;
    let open = all_due_turns(&*store.journal, Timestamp::from_micros(i64::MAX)).await.unwrap();
    assert!(open.is_empty(), "{open:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_goes_on_without_a_subagent_that_cannot_be_read() {
    let folder = TempDir::new().unwrap();
    let scene = serde_json::json!({"team": [[agent("a"), {"silent": true}]]});
    let limits = SomeLimits { fan_in_timeout_ms: Some(1500), ..SomeLimits::default() };
    let run = {
        let store = open(folder.path()).unwrap();
        let bench = Bench::play(ports(&store)).await;
        let run = bench.request(1, question(&scene, "supervisor"), limits).await;
        let serving = Serving::start(&bench);
        until(async || bench.records(&run).await.iter().any(|record| record.header.session == run.child(1, 1))).await;
        serving.0.send_replace(Some(Stop::Abandon));
        serving.1.await.unwrap();
        run
    };
    blot(folder.path(), run.child(1, 1).as_str());
    let store = open(folder.path()).unwrap();
    let bench = Bench::play(ports(&store)).await;
    let serving = Serving::start(&bench);
    let workspace = Workspace::default();
    until(async || store.journal.open_runs().await.unwrap() == 0).await;
    serving.stop().await;
    let log = store.journal.load(&workspace, &run).await.unwrap().unwrap();
    let joined = log.records.iter().find_map(|record| record.body.as_joined()).unwrap();
    let error = joined.members[1].error.as_deref().unwrap_or_default();
    assert!(error.starts_with("its records cannot be read"), "{error}");
    let told = store.journal.run(&workspace, &run).await.unwrap().unwrap();
    assert_eq!(told.state, RunState::AnsweredPartial, "the answer says what it had to do without");
    assert!(all_due_turns(&*store.journal, Timestamp::from_micros(i64::MAX)).await.unwrap().is_empty());
}
