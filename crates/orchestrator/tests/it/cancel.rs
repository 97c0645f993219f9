//! Cancelled runs in memory.

use crate::memory;
use crate::promises::Serving;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;
use trellis_domain::limits::SomeLimits;
use trellis_domain::{Caller, RunId, Workspace};
use trellis_orchestrator::Cancelling;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, question};
use trellis_orchestrator::contract::{cancels, trouble};
use trellis_orchestrator::orchestrator::{Options, Orchestrator, Ports};
use trellis_orchestrator::ports::{BoxFuture, PromptCall, PromptError, PromptReply, Prompter, ReplySink};
use trellis_orchestrator::workers::{Stop, WorkerOptions};

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_runs_in_memory_keep_the_promises() {
    cancels::suite(async || memory()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_any_shape_can_be_cancelled_at_any_moment() {
    let mut scenes = trouble::scenes();
    scenes.push((json!({"tools": 3, "answer": "a"}), "react"));
    for (scene, pattern) in scenes {
        cancels::at_any_moment(async || memory(), &scene, pattern).await;
    }
}

/// A model that never answers and knows how many still wait for it.
#[derive(Debug, Default)]
struct Hanging {
    asked: Notify,
    waiting: Arc<AtomicUsize>,
}

struct Waiter(Arc<AtomicUsize>);

impl Drop for Waiter {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Prompter for Hanging {
    fn ask<'a>(&'a self, _: PromptCall, _: &'a mut dyn ReplySink) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let _waiter = Waiter(Arc::clone(&self.waiting));
            self.asked.notify_one();
            std::future::pending().await
        })
    }
}

async fn hanging() -> (Bench, Arc<Hanging>, RunId) {
    let bench = Bench::play(memory()).await;
    let model = Arc::new(Hanging::default());
    let ports = Ports { prompter: Arc::clone(&model) as _, ..bench.orchestrator.ports.clone() };
    let orchestrator = Arc::new(Orchestrator::new(ports, Options::default()));
    let bench = Bench { orchestrator, ..bench };
    let run = bench.request(1, question(&agent("a"), "react"), SomeLimits::default()).await;
    (bench, model, run)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_is_dropped_and_leaves_no_record() {
    let (bench, model, run) = hanging().await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    model.asked.notified().await;
    assert_eq!(model.waiting.load(Ordering::SeqCst), 1);
    let became = bench.runs().cancel(&Workspace::default(), &run, &Caller::program()).await.unwrap();
    assert_eq!(became, Cancelling::Cancelled);
    serving.stop(Stop::Drain).await;
    assert_eq!(model.waiting.load(Ordering::SeqCst), 0, "nobody waits for the model any more");
    let played = Played::of(&bench, run).await;
    let names: Vec<_> = played.records.iter().map(|record| record.header.name.as_str()).collect();
    assert_eq!(names, ["session", "pattern-decision", "end"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_its_own_goes_on_when_another_is_cancelled() {
    let (bench, model, run) = hanging().await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    model.asked.notified().await;
    let other = bench.request(2, question(&agent("b"), "react"), SomeLimits::default()).await;
    model.asked.notified().await;
    assert_eq!(model.waiting.load(Ordering::SeqCst), 2);
    bench.runs().cancel(&Workspace::default(), &other, &Caller::program()).await.unwrap();
    while model.waiting.load(Ordering::SeqCst) == 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(model.waiting.load(Ordering::SeqCst), 1);
    assert!(Played::of(&bench, run).await.ends().is_empty(), "the other run is still at work");
    serving.stop(Stop::Abandon).await;
}
