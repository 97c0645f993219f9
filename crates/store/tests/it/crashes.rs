//! Processes that die with turns in hand: who did it is found in few restarts, and nobody else pays for it.

use crate::{open, ports};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::{Notify, watch};
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::{Body, Name};
use trellis_domain::run::RunState;
use trellis_domain::{RunId, Timestamp, Workspace};
use trellis_orchestrator::contract::journal::{begun, claim_on};
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::orchestrator::{Options, Orchestrator, Ports};
use trellis_orchestrator::ports::{
    BoxFuture, PromptCall, PromptError, PromptReply, Prompter, RealWorld, ReplySink, World, all_due_turns,
};
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};
use trellis_store::Store;

/// A model whose answer to some questions is the end of the process. To the others it takes a moment, so that all of
/// them are in hand when that happens.
#[derive(Debug)]
struct Deadly {
    model: ScriptedPrompter,
    kills: &'static [&'static str],
    struck: Arc<Notify>,
    takes: Duration,
}

impl Prompter for Deadly {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async move {
            let question = call.variables["question"].as_str().unwrap_or_default();
            if self.kills.contains(&question) {
                // Others are begun at the same time.
                tokio::time::sleep(self.takes / 2).await;
                self.struck.notify_one();
                return std::future::pending().await;
            }
            tokio::time::sleep(self.takes).await;
            self.model.ask(call, sink).await
        })
    }
}

/// Waits a tenth of what it is asked to.
#[derive(Debug)]
struct Hurried;

impl World for Hurried {
    fn now(&self) -> Timestamp {
        RealWorld.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        RealWorld.sleep(duration / 10)
    }

    fn fresh_id(&self) -> String {
        RealWorld.fresh_id()
    }
}

/// One process on a folder.
struct Life {
    bench: Bench,
    struck: Arc<Notify>,
    killed_after: Duration,
    // Goes last: what is above works on it.
    _store: Store,
}

async fn begin(path: &Path, deadly: &'static [&'static str], takes: Duration) -> Life {
    let store = open(path).unwrap();
    let first = Bench::new(ports(&store), ScriptedPrompter::replies(&SCRIPT[3..])).await;
    let struck = Arc::new(Notify::new());
    let model = ScriptedPrompter::replies(&SCRIPT[3..]);
    let deadly = Deadly { model, kills: deadly, struck: Arc::clone(&struck), takes };
    let ports = Ports { prompter: Arc::new(deadly), world: Arc::new(Hurried), ..first.orchestrator.ports.clone() };
    let orchestrator = Arc::new(Orchestrator::new(ports, Options::default()));
    Life { bench: Bench { orchestrator, ..first }, struck, killed_after: Duration::MAX, _store: store }
}

impl Life {
    /// Serves until somebody strikes (false) or all these runs have ended. Dies at once: nothing is given back.
    async fn lives(&self, runs: &[RunId]) -> bool {
        let workers = Workers::new(Arc::clone(&self.bench.orchestrator), WorkerOptions::default());
        let (_stop, stopped) = watch::channel(None);
        let serving = tokio::spawn(async move { workers.run(stopped).await });
        let ended = async {
            for run in runs {
                self.bench.follow(run).await;
            }
        };
        let lived = tokio::select! {
            () = tokio::time::sleep(self.killed_after) => false,
            () = self.struck.notified() => false,
            () = ended => true,
        };
        serving.abort();
        assert!(serving.await.is_err_and(|error| error.is_cancelled()));
        lived
    }

    async fn suspects(&self) -> usize {
        let open =
            all_due_turns(&*self.bench.orchestrator.ports.journal, Timestamp::from_micros(i64::MAX)).await.unwrap();
        open.iter().filter(|turn| turn.cut.times > 0).count()
    }
}

const MOMENT: Duration = Duration::from_millis(60);

async fn found(others: usize, deadly: &'static [&'static str], most: usize) -> usize {
    let folder = TempDir::new().unwrap();
    let mut runs = Vec::new();
    {
        let life = begin(folder.path(), deadly, MOMENT).await;
        for n in 0..others {
            runs.push(life.bench.ask(n, SomeLimits::default()).await);
        }
    }
    let mut crashes = 0;
    loop {
        let life = begin(folder.path(), deadly, MOMENT).await;
        if life.lives(&runs).await {
            break;
        }
        crashes += 1;
        assert!(crashes <= most, "who kills the process was not found in {most} restarts");
    }
    let life = begin(folder.path(), &[], MOMENT).await;
    let mut set_aside = 0;
    for run in &runs {
        let records = life.bench.records(run).await;
        let question = records[0].body.as_accepted().unwrap().question.text().to_owned();
        let Some(Body::Ended(end)) = records.last().map(|record| &record.body) else { panic!("{run} has not ended") };
        if deadly.contains(&question.as_str()) {
            let error = end.error.as_deref().unwrap_or_default();
            assert!(error.starts_with("set aside: handling this request was cut short"), "{error}");
            set_aside += 1;
        } else {
            assert_eq!(end.error, None, "{question} is innocent");
        }
    }
    assert_eq!(set_aside, deadly.len());
    assert_eq!(life.suspects().await, 0);
    crashes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_kills_the_process_is_set_aside_after_five_crashes_that_it_was_seen_in() {
    assert_eq!(found(1, &["question 0"], 5).await, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_killer_among_hundreds_of_open_runs_is_found_by_halves_and_nobody_else_is_blamed() {
    let crashes = found(300, &["question 177"], 13).await;
    println!("one of 300 was found after {crashes} crashes");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_killers_are_both_found() {
    let crashes = found(40, &["question 3", "question 4"], 24).await;
    println!("two of 40 were found after {crashes} crashes");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_slow_while_the_process_is_killed_from_outside_is_not_blamed() {
    let folder = TempDir::new().unwrap();
    let slow = Duration::from_millis(600);
    let run = begin(folder.path(), &[], slow).await.bench.ask(0, SomeLimits::default()).await;
    for kill in 0..15 {
        let life = Life { killed_after: Duration::from_millis(300), ..begin(folder.path(), &[], slow).await };
        assert!(!life.lives(std::slice::from_ref(&run)).await, "it is too slow for that");
        let open =
            all_due_turns(&*life.bench.orchestrator.ports.journal, Timestamp::from_micros(i64::MAX)).await.unwrap();
        assert!(open.iter().all(|turn| turn.cut.times < 3), "suspected at kill {kill}: {open:?}");
    }
    let life = begin(folder.path(), &[], slow).await;
    assert!(life.lives(std::slice::from_ref(&run)).await);
    assert_eq!(life.bench.summary(&run).await.state, RunState::Answered);
}

#[tokio::test(flavor = "multi_thread")]
async fn suspects_keep_nobody_waiting_and_are_cleared_when_the_process_lives() {
    const LONG: Duration = Duration::from_mins(10);
    let folder = TempDir::new().unwrap();
    let mut runs = Vec::new();
    for life in 0..2 {
        let deadly = begin(folder.path(), &["question 0"], Duration::from_millis(400)).await;
        for n in 0..if life == 0 { 200 } else { 0 } {
            runs.push(deadly.bench.ask(n, SomeLimits::default()).await);
        }
        assert!(!deadly.lives(&runs).await);
    }
    let life = begin(folder.path(), &[], LONG).await;
    assert!(life.suspects().await > 100, "those who were in hand when it was written down");
    // Everybody's model is slow now, but for who comes anew; and there are few places.
    let quick = ScriptedPrompter::replies(&SCRIPT[3..]);
    let ports = Ports { prompter: Arc::new(Quick(quick)), ..life.bench.orchestrator.ports.clone() };
    let orchestrator = Arc::new(Orchestrator::new(ports, Options::default()));
    let bench = Bench { orchestrator, ..life.bench };
    let workers =
        Workers::new(Arc::clone(&bench.orchestrator), WorkerOptions { concurrency: 150, ..WorkerOptions::default() });
    let (stop, stopped) = watch::channel(None);
    let serving = tokio::spawn(async move { workers.run(stopped).await });
    let asked = RealWorld.now();
    let new = bench.ask(1000, SomeLimits::default()).await;
    bench.follow(&new).await;
    let waited = RealWorld.now().ms_since(asked);
    assert!(waited < 1500, "a new question waited {waited} ms");
    assert_eq!(bench.summary(&new).await.state, RunState::Answered);
    // Nothing happens for so long that the first half is innocent.
    let journal = &bench.orchestrator.ports.journal;
    let count = async || {
        let open = all_due_turns(&**journal, Timestamp::from_micros(i64::MAX)).await.unwrap();
        open.iter().filter(|turn| turn.cut.times > 0).count()
    };
    let before = count().await;
    while count().await == before {
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert!(RealWorld.now().ms_since(asked) < 30_000, "nobody was cleared");
    }
    stop.send_replace(Some(Stop::Abandon));
    serving.await.unwrap();
}

/// Answers only who came last; the others wait.
#[derive(Debug)]
struct Quick(ScriptedPrompter);

impl Prompter for Quick {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(async move {
            if call.variables["question"] != "question 1000" {
                return std::future::pending().await;
            }
            self.0.ask(call, sink).await
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_given_back_is_not_suspected_and_who_brought_something_neither() {
    let folder = TempDir::new().unwrap();
    let run = {
        let life = begin(folder.path(), &[], MOMENT).await;
        life.bench.ask(1, SomeLimits::default()).await
    };
    let turn = {
        let life = begin(folder.path(), &[], MOMENT).await;
        let journal = &life.bench.orchestrator.ports.journal;
        let turn = all_due_turns(&**journal, Timestamp::from_micros(i64::MAX)).await.unwrap().remove(0);
        assert_eq!((&turn.key.run, turn.cut.times), (&run, 0), "nobody had begun it");
        let claim = claim_on(&turn.key);
        assert!(begun(&**journal, &claim).await.is_some());
        journal.give_back(&claim).await.unwrap();
        turn
    };
    for seen in 1..=2 {
        let life = begin(folder.path(), &[], MOMENT).await;
        assert_eq!(life.suspects().await, usize::from(seen > 1));
        let begun = begun(&*life.bench.orchestrator.ports.journal, &claim_on(&turn.key)).await;
        assert_eq!(begun, Some(seen + 1), "the attempt counts whoever is suspected");
    }
    let life = begin(folder.path(), &[], MOMENT).await;
    let journal = &life.bench.orchestrator.ports.journal;
    let open = async || all_due_turns(&**journal, Timestamp::from_micros(i64::MAX)).await.unwrap().remove(0);
    assert_eq!(open().await.cut.times, 2);
    // A fresh turn is written down, too, while anybody is suspected.
    let fresh = life.bench.ask(2, SomeLimits::default()).await;
    let due = all_due_turns(&**journal, Timestamp::from_micros(i64::MAX)).await.unwrap();
    let fresh = due.into_iter().find(|open| open.key.run == fresh).unwrap();
    assert_eq!(begun(&**journal, &claim_on(&fresh.key)).await, Some(1));
    drop(life);
    let life = begin(folder.path(), &[], MOMENT).await;
    assert_eq!(life.suspects().await, 2);
    assert!(life.lives(&[run.clone(), fresh.key.run.clone()]).await);
    for run in [&run, &fresh.key.run] {
        assert_eq!(life.bench.summary(run).await.state, RunState::Answered);
        let ends = life.bench.records(run).await;
        assert_eq!(ends.iter().filter(|record| record.header.name == Name::end()).count(), 1);
    }
    assert_eq!(life.bench.orchestrator.ports.journal.run(&Workspace::default(), &run).await.unwrap().unwrap().run, run);
}
