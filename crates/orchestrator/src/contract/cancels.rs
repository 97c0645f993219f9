//! Cancelled runs over any journal: one end per session, nothing left open, whenever it happens.

use super::runs::{Bench, StorePorts};
use super::teams::{Played, agent, question, silent};
use super::trouble::live_for;
use crate::cancel::Cancelling;
use crate::hub::Item;
use crate::ports::{OpenTurn, RealWorld, World};
use crate::workers::{Stop, WorkerOptions, Workers};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::Name;
use trellis_domain::run::{RunState, Termination};
use trellis_domain::{Caller, RunId, Surface, Workspace};

pub async fn suite<F: Future<Output = StorePorts>>(fresh: impl Fn() -> F) {
    a_call_that_hangs_is_let_go_at_once(fresh().await).await;
    a_run_is_cancelled_once_and_only_if_it_has_not_ended(fresh().await).await;
}

/// Cancels a run at every moment there is: when it was left open, and while it is at work.
pub async fn at_any_moment<F: Future<Output = StorePorts>>(fresh: impl Fn() -> F, scene: &Value, pattern: &str) {
    a_run_left_open_after_any_commit_can_be_cancelled(&fresh, scene, pattern).await;
    a_run_at_work_can_be_cancelled_after_any_record(&fresh, scene, pattern).await;
}

async fn open_turns(bench: &Bench, run: &RunId) -> Vec<OpenTurn> {
    bench.orchestrator.ports.journal.turns_of(&Workspace::default(), run).await.expect("the store works")
}

fn canceller() -> Caller {
    Caller::new(Some("ada".to_owned()), Surface::CommandLine)
}

async fn cancel(bench: &Bench, run: &RunId) -> Cancelling {
    bench.runs().cancel(&Workspace::default(), run, &canceller()).await.expect("the store works")
}

/// Workers in the background.
struct BackgroundWorkers {
    stop: watch::Sender<Option<Stop>>,
    task: tokio::task::JoinHandle<()>,
}

impl BackgroundWorkers {
    fn start(bench: &Bench) -> Self {
        let workers = Workers::new(Arc::clone(&bench.orchestrator), WorkerOptions::default());
        let (stop, stopped) = watch::channel(None);
        Self { stop, task: tokio::spawn(async move { workers.run(stopped).await }) }
    }

    async fn drain(self) {
        self.stop.send_replace(Some(Stop::Drain));
        self.task.await.expect("workers do not fail");
    }
}

/// What must hold for every cancelled run.
async fn was_cancelled(bench: &Bench, run: RunId, when: &str) {
    let open = open_turns(bench, &run).await;
    assert!(open.is_empty(), "{when}: nothing is left open: {open:?}");
    let summary = bench.summary(&run).await;
    assert_eq!(
        (summary.state, bench.orchestrator.ports.journal.open_runs().await.expect("the store works")),
        (RunState::Cancelled, 0),
        "{when}"
    );
    let played = Played::of(bench, run).await;
    played.keeps_the_promises();
    assert_eq!(played.end().reason, Termination::Cancelled, "{when}");
    assert_eq!(played.end().error.as_deref(), Some("the run was cancelled"));
    assert_eq!(played.end().by, Some(canceller()), "{when}: the record says who it was");
    let named = played.ends().iter().filter(|(_, end)| end.by.is_some()).count();
    assert_eq!(named, 1, "{when}: what ended with it was nobody's wish");
    let last = played.records.iter().rfind(|record| !record.header.late).map(|record| &record.header.session);
    assert_eq!(last, Some(&played.run), "{when}: the root's end is the last that a follower hears");
    let spent = (played.end().total().model_calls, played.end().total().in_token);
    assert_eq!(spent, (summary.usage.model_calls, summary.usage.in_token), "{when}: the end tells what it cost");
}

async fn a_run_left_open_after_any_commit_can_be_cancelled<F: Future<Output = StorePorts>>(
    fresh: &impl Fn() -> F,
    scene: &Value,
    pattern: &str,
) {
    for commits in 1.. {
        let store = fresh().await;
        if live_for(store.clone(), commits, scene, pattern).await {
            assert!(commits > 5, "the scene is long enough to be cancelled in");
            return;
        }
        let bench = Bench::play(store).await;
        let run = bench.request(1, question(scene, pattern), SomeLimits::default()).await;
        assert_eq!(cancel(&bench, &run).await, Cancelling::Cancelled, "{pattern}, after {commits} commits");
        was_cancelled(&bench, run, &format!("{pattern}, after {commits} commits")).await;
        assert!(bench.prompter.calls.all().is_empty(), "cancelling asks no model");
    }
}

async fn a_run_at_work_can_be_cancelled_after_any_record<F: Future<Output = StorePorts>>(
    fresh: &impl Fn() -> F,
    scene: &Value,
    pattern: &str,
) {
    let (mut received, mut cancelled) = (0, 0);
    for records in 1.. {
        let bench = Bench::play(fresh().await).await;
        let run = bench.request(1, question(scene, pattern), SomeLimits::default()).await;
        let mut subscription = bench.runs().follow(&Workspace::default(), &run, 0);
        let mut serving = None;
        let (mut seen, mut became) = (0, None);
        loop {
            let Item::Record(record) = subscription.next().await.expect("the store works") else {
                continue;
            };
            seen += 1;
            if record.header.session == run && record.header.name == Name::end() {
                break;
            }
            if seen == records {
                became = Some(cancel(&bench, &run).await);
            }
            // Work begins after the first record, so that a cancellation then is never too late.
            serving.get_or_insert_with(|| BackgroundWorkers::start(&bench));
        }
        if let Some(serving) = serving {
            serving.drain().await;
        }
        match became {
            Some(Cancelling::Cancelled) => {
                cancelled += 1;
                was_cancelled(&bench, run, &format!("{pattern}, at record {records}")).await;
            }
            // It was faster.
            Some(Cancelling::AlreadyEnded(_)) => Played::of(&bench, run).await.keeps_the_promises(),
            Some(Cancelling::Unknown) => panic!("the run is known"),
            None => {
                received += 1;
                if received == 2 {
                    break;
                }
            }
        }
    }
    assert!(cancelled > 0, "{pattern}: at least the first records leave time to cancel");
}

async fn a_call_that_hangs_is_let_go_at_once(store: StorePorts) {
    let bench = Bench::play(store).await;
    let scene = json!({"team": [[silent(), {"team": [[silent(), agent("x")]]}, {"silent": true, "plan": []}]]});
    let run = bench.request(1, question(&scene, "supervisor"), SomeLimits::default()).await;
    let serving = BackgroundWorkers::start(&bench);
    let calls = || bench.prompter.calls.all().len();
    // Two decompositions, three silent models, and the agent that answers.
    while calls() < 7 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let began = RealWorld.now();
    assert_eq!(cancel(&bench, &run).await, Cancelling::Cancelled);
    while !open_turns(&bench, &run).await.is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let took = RealWorld.now().ms_since(began);
    assert!(took < 5_000, "the workers let go within {took} ms, not after the calls' timeouts");
    serving.drain().await;
    was_cancelled(&bench, run, "while models hang").await;
}

async fn a_run_is_cancelled_once_and_only_if_it_has_not_ended(store: StorePorts) {
    let bench = Bench::play(store).await;
    let nobody = RunId::new("nobody").expect("a valid id");
    assert_eq!(cancel(&bench, &nobody).await, Cancelling::Unknown);
    let run = bench.request(1, question(&json!({"team": [[silent()]]}), "supervisor"), SomeLimits::default()).await;
    let other = Workspace::new("other").expect("a valid name");
    let elsewhere = bench.runs().cancel(&other, &run, &canceller()).await.expect("the store works");
    assert_eq!(elsewhere, Cancelling::Unknown, "workspaces are apart");
    assert_eq!(cancel(&bench, &run).await, Cancelling::Cancelled);
    assert_eq!(cancel(&bench, &run).await, Cancelling::AlreadyEnded(RunState::Cancelled));
    was_cancelled(&bench, run, "before it was begun").await;
    let scene = json!({"team": [[agent("a")]]});
    let answered = bench.request(2, question(&scene, "supervisor"), SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&answered), 1).await;
    let before = bench.records(&answered).await.len();
    assert_eq!(cancel(&bench, &answered).await, Cancelling::AlreadyEnded(RunState::Answered));
    assert_eq!(cancel(&bench, &answered.child(1, 0)).await, Cancelling::Unknown, "a subagent is no run");
    assert_eq!(bench.records(&answered).await.len(), before, "and nothing was written");
}
