//! Time while nobody served the store is nobody's run time, and the records say how long it was.

use crate::{holder, ports};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::watch;
use trellis_domain::Timestamp;
use trellis_domain::limits::SomeLimits;
use trellis_domain::run::RunState;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{agent, question};
use trellis_orchestrator::orchestrator::{Options, Orchestrator, Ports};
use trellis_orchestrator::ports::{BoxFuture, Journal, RealWorld, World, all_due_turns};
use trellis_orchestrator::queue::FairQueue;
use trellis_orchestrator::workers::{WorkerOptions, Workers};
use trellis_store::Store;

const HOUR_MS: u64 = 3_600_000;

/// The real world, so many hours later.
#[derive(Debug)]
struct Later(u64);

impl World for Later {
    fn now(&self) -> Timestamp {
        RealWorld.now().plus_ms(self.0 * HOUR_MS)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        RealWorld.sleep(duration)
    }

    fn fresh_id(&self) -> String {
        RealWorld.fresh_id()
    }
}

async fn life(path: &Path, hours: u64) -> (Bench, Store) {
    let world: Arc<dyn World> = Arc::new(Later(hours));
    let store = Store::open(path, &holder(), Arc::clone(&world)).unwrap();
    let first = Bench::play(ports(&store)).await;
    let queue = Arc::new(FairQueue::new(Arc::clone(&world)));
    let ports = Ports { queue, world, ..first.orchestrator.ports.clone() };
    let orchestrator = Arc::new(Orchestrator::new(ports, Options::default()));
    (Bench { orchestrator, ..first }, store)
}

/// Serves until so many records are there, and dies.
async fn serve_until(bench: &Bench, run: &trellis_domain::RunId, records: usize) {
    let workers = Workers::new(Arc::clone(&bench.orchestrator), WorkerOptions::default());
    let (_stop, stopped) = watch::channel(None);
    let serving = tokio::spawn(async move { workers.run(stopped).await });
    while bench.records(run).await.len() < records {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    serving.abort();
    drop(serving.await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_moves_limits_and_deadlines_of_all_depths_and_is_on_record() {
    let folder = TempDir::new().unwrap();
    // A subagent that never answers, and a team below the team that waits for another one.
    let inner = json!({"team": [[agent("x"), {"silent": true}]]});
    let scene = json!({"team": [[agent("a"), inner, {"silent": true}]]});
    let limits = SomeLimits { fan_in_timeout_ms: Some(6_000), run_timeout_ms: Some(60_000), ..SomeLimits::default() };
    let began = RealWorld.now();
    let run = {
        let (bench, _store) = life(folder.path(), 0).await;
        let run = bench.request(1, question(&scene, "supervisor"), limits).await;
        serve_until(&bench, &run, 16).await;
        run
    };
    // Who only looks does not end the outage.
    drop(life(folder.path(), 1).await);
    let (bench, store) = life(folder.path(), 2).await;
    let open = all_due_turns(&*store.journal, Timestamp::from_micros(i64::MAX)).await.unwrap();
    assert_eq!(open.iter().filter(|turn| turn.due.is_some()).count(), 2, "both fan-ins have their deadline");
    bench.finish(std::slice::from_ref(&run), 1).await;
    let took = RealWorld.now().ms_since(began);
    let told = bench.summary(&run).await;
    assert_eq!(told.state, RunState::AnsweredPartial, "who was silent is missing, and nobody else");
    assert!(took > 5_000, "the deadline was not over when the outage was: {took} ms");
    let records = bench.records(&run).await;
    let joins: Vec<_> = records.iter().filter_map(|record| record.body.as_joined()).collect();
    assert_eq!(joins.len(), 2);
    let ends: Vec<_> = records.iter().filter_map(|record| record.body.as_ended()).collect();
    let outages = joins.iter().map(|join| join.outage_ms).chain(ends.iter().filter_map(|end| {
        // Those that had ended before know of none.
        (end.outage_ms > 0).then_some(end.outage_ms)
    }));
    let outages: Vec<_> = outages.collect();
    assert!(outages.len() >= 4, "{outages:?}");
    for ms in outages {
        assert!((2 * HOUR_MS - 5_000..2 * HOUR_MS + 20_000).contains(&ms), "{ms} ms");
    }
    assert!(ends.last().is_some_and(|end| end.outage_ms > 0), "the run's own end says so");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_outages_add_up_and_are_forgotten_when_nobody_needs_them() {
    let folder = TempDir::new().unwrap();
    let limits = SomeLimits { run_timeout_ms: Some(60_000), ..SomeLimits::default() };
    let run = {
        let (bench, _store) = life(folder.path(), 0).await;
        let run = bench.request(1, question(&json!({"tools": 8, "answer": "done"}), "react"), limits.clone()).await;
        serve_until(&bench, &run, 4).await;
        run
    };
    for hours in 1..=2 {
        let (bench, _store) = life(folder.path(), hours).await;
        serve_until(&bench, &run, 4 + usize::try_from(hours).unwrap() * 4).await;
    }
    {
        let (bench, store) = life(folder.path(), 3).await;
        bench.finish(std::slice::from_ref(&run), 1).await;
        assert_eq!(bench.summary(&run).await.state, RunState::Answered);
        let end = bench.records(&run).await.last().and_then(|record| record.body.as_ended().cloned()).unwrap();
        assert!((3 * HOUR_MS - 20_000..3 * HOUR_MS + 20_000).contains(&end.outage_ms), "{}", end.outage_ms);
        assert_eq!(store.journal.service().outages.iter().count(), 3);
    }
    let (bench, store) = life(folder.path(), 4).await;
    let run = bench.request(2, question(&agent("a"), "react"), limits).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    assert_eq!(store.journal.service().outages.iter().count(), 0, "no open run has seen them");
    let end = bench.records(&run).await.last().and_then(|record| record.body.as_ended().cloned()).unwrap();
    assert_eq!(end.outage_ms, 0);
}

/// Who accepted the question died before it said that it lives.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_nobody_began_to_serve_has_all_its_time() {
    let folder = TempDir::new().unwrap();
    let limits = SomeLimits { run_timeout_ms: Some(60_000), ..SomeLimits::default() };
    let run = {
        let (bench, _store) = life(folder.path(), 0).await;
        bench.request(1, question(&agent("a"), "react"), limits).await
    };
    let (bench, _store) = life(folder.path(), 5).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    assert_eq!(bench.summary(&run).await.state, RunState::Answered);
    let end = bench.records(&run).await.last().and_then(|record| record.body.as_ended().cloned()).unwrap();
    assert!((5 * HOUR_MS - 20_000..5 * HOUR_MS + 20_000).contains(&end.outage_ms), "{}", end.outage_ms);
}
