//! Trouble on the way: a process that dies between any two commits, wake-ups that are lost, doubled, delayed and
//! shuffled, and two processes on the same turns. None of it changes what a run leaves behind.

use super::disorder::Disorder;
use super::dying::Dying;
use super::layer::{Layered, WithoutClaims};
use super::play;
use super::runs::{Bench, StorePorts};
use super::teams::{Played, agent, question};
use crate::memory::scripted::{ScriptedPrompter, ScriptedTools};
use crate::orchestrator::{Options, Orchestrator, Ports};
use crate::ports::Role;
use crate::workers::{Stop, WorkerOptions, Workers};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::Record;

/// A place that can be opened again after the process that used it has died.
pub trait Reopenable {
    fn open(&self) -> impl Future<Output = StorePorts> + Send;
}

/// The scenes that must survive anything: nested, several rounds, a failure, a plan below a supervisor.
pub fn scenes() -> Vec<(Value, &'static str)> {
    let inner = json!({"team": [[agent("x"), agent("y")]]});
    let plan = json!({"plan": [
        {"say": "zero", "tool": true}, {"say": "one", "tool": true, "fail": true}, {"say": "two", "needs": [0, 1]},
    ], "revisions": [[{"say": "three", "needs": [0], "tool": true}]]});
    vec![
        (json!({"team": [[inner, agent("b"), {"fail": true}], [agent("c")]]}), "supervisor"),
        (json!({"team": [[plan.clone(), agent("b")]]}), "supervisor"),
        (plan, "plan-then-execute"),
    ]
}

/// What must be the same however a run came about: the names of its records, and its answer.
fn essence(played: &Played) -> (BTreeSet<String>, String) {
    let name = |record: &Arc<Record>| format!("{}/{}", record.header.session, record.header.name);
    (played.records.iter().map(name).collect(), played.answer().to_owned())
}

async fn undisturbed(store: StorePorts, scene: &Value, pattern: &str) -> (BTreeSet<String>, String) {
    let bench = Bench::play(store).await;
    essence(&super::teams::play(&bench, scene, pattern, SomeLimits::default()).await)
}

/// Dies after every number of commits there is; a second process finishes the run.
pub async fn a_run_survives_a_restart_between_any_two_commits<P: Reopenable>(
    fresh: impl Fn() -> P,
    scene: &Value,
    pattern: &str,
) {
    let expected = undisturbed(fresh().open().await, scene, pattern).await;
    for commits in 0.. {
        let place = fresh();
        if live_for(place.open().await, commits, scene, pattern).await {
            assert!(commits > 5, "the scene is long enough to die in");
            return;
        }
        let bench = Bench::play(place.open().await).await;
        let run = bench.request(1, question(scene, pattern), SomeLimits::default()).await;
        let recorded: BTreeSet<_> = Played::of(&bench, run.clone())
            .await
            .records
            .iter()
            .map(|record| format!("{}/{}", record.header.session, record.header.name))
            .collect();
        bench.finish(std::slice::from_ref(&run), 1).await;
        let played = Played::of(&bench, run).await;
        played.keeps_the_promises();
        assert_eq!(essence(&played), expected, "after {commits} commits and a restart");
        let paid_again: Vec<_> =
            bench.prompter.calls.all().into_keys().filter(|call| recorded.contains(call)).collect();
        assert!(paid_again.is_empty(), "recorded when the second process began, and paid for again: {paid_again:?}");
    }
}

/// Serves until the store dies after that many commits, or until the run has ended: true.
pub(super) async fn live_for(store: StorePorts, commits: usize, scene: &Value, pattern: &str) -> bool {
    let dying = Arc::new(Layered(Dying::after(commits, store.0)));
    let bench = Bench::play((Arc::clone(&dying) as _, store.1)).await;
    let accepted = bench.try_request(1, question(scene, pattern), SomeLimits::default()).await;
    let Ok(run) = accepted else { return false };
    let workers = Workers::new(Arc::clone(&bench.orchestrator), WorkerOptions::default());
    let (stop, stopped) = watch::channel(None);
    let mut failure = workers.failure();
    let serving = tokio::spawn(async move { workers.run(stopped).await });
    let ended = tokio::select! {
        _ = failure.changed() => false,
        // A follower of a dead store hears nothing any more.
        ended = bench.try_follow(&run) => ended,
    };
    stop.send_replace(Some(Stop::Abandon));
    serving.await.expect("workers do not fail");
    ended
}

/// Two processes on the same turns, with wake-ups in disorder: the run is the same.
pub async fn disorder_changes_nothing<F: Future<Output = StorePorts>>(
    fresh: impl Fn() -> F,
    scene: &Value,
    pattern: &str,
    seed: u64,
) {
    let expected = undisturbed(fresh().await, scene, pattern).await;
    let first = Bench::play(fresh().await).await;
    let queue = Arc::new(Disorder::new(seed));
    let process = || {
        let ports = Ports {
            queue: Arc::clone(&queue) as _,
            // Nothing but the rules of commits keeps them from doing the same.
            journal: Arc::new(Layered(WithoutClaims(Arc::clone(&first.orchestrator.ports.journal)))),
            prompter: Arc::new(ScriptedPrompter::new(play::reply)),
            tools: Arc::new(ScriptedTools::new(play::result)),
            ..first.orchestrator.ports.clone()
        };
        // A turn that several hold at once is no turn that kills its process.
        let options = Options { max_deliveries: u32::MAX, ..first.orchestrator.options.clone() };
        Arc::new(Orchestrator::new(ports, options))
    };
    let (one, two) = (process(), process());
    let bench = Bench { orchestrator: Arc::clone(&one), prompter: first.prompter, tools: first.tools };
    let run = bench.request(1, question(scene, pattern), SomeLimits::default()).await;
    let (stop, stopped) = watch::channel(None);
    let serve = |orchestrator: &Arc<Orchestrator>, roles: &[Role]| {
        let options =
            WorkerOptions { sweep_every: Duration::from_millis(3), roles: roles.to_vec(), ..WorkerOptions::default() };
        let (workers, stopped) = (Workers::new(Arc::clone(orchestrator), options), stopped.clone());
        tokio::spawn(async move { workers.run(stopped).await })
    };
    // The second aggregator runs alone, as a process of its own would.
    let served =
        [serve(&one, &[Role::Agent, Role::Aggregator]), serve(&two, &[Role::Agent]), serve(&two, &[Role::Aggregator])];
    bench.follow(&run).await;
    stop.send_replace(Some(Stop::Drain));
    for workers in served {
        workers.await.expect("workers do not fail");
    }
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    assert_eq!(essence(&played), expected, "seed {seed}");
}
