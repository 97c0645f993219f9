//! Unsafe calls: that one is about to be made is recorded before it is. One that a dead process left without an outcome is
//! not made again before somebody has said so.

use crate::memory;
use crate::park::{answering, decide, names, until_waiting};
use crate::promises::Serving;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::Notify;
use trellis_domain::config::StoredItem;
use trellis_domain::decision::DecidedBy;
use trellis_domain::limits::SomeLimits;
use trellis_domain::run::RunState;
use trellis_domain::{Caller, RunId, Workspace};
use trellis_orchestrator::Answering;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, question};
use trellis_orchestrator::orchestrator::{Orchestrator, Ports};
use trellis_orchestrator::ports::{BoxFuture, ToolCall, ToolError, ToolOutput, ToolRunner};
use trellis_orchestrator::workers::{Stop, WorkerOptions};

/// A tool that never answers; its process is gone before.
#[derive(Debug, Default)]
struct Silent(Notify);

impl ToolRunner for Silent {
    fn call(&self, _: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async {
            self.0.notify_one();
            std::future::pending().await
        })
    }
}

/// A bench whose only tool must not be called twice.
async fn bench(on_uncertain: &str) -> Bench {
    let bench = Bench::play(memory()).await;
    let tool = json!({
        "type": "text-completion", "name": "search", "description": "buys facts", "effect": "unsafe",
        "on-uncertain": on_uncertain, "state": "bought",
    });
    let item = StoredItem { kind: "tool".to_owned(), key: "search".to_owned(), value: tool.to_string() };
    bench.orchestrator.ports.config.put(&Workspace::default(), vec![item], Caller::program()).await.unwrap();
    bench
}

/// A process that dies while it calls a tool.
fn dying(bench: &Bench) -> (Arc<Silent>, Bench) {
    let silent = Arc::new(Silent::default());
    let ports = Ports { tools: Arc::clone(&silent) as _, ..bench.orchestrator.ports.clone() };
    let first = Arc::new(Orchestrator::new(ports, bench.orchestrator.options.clone()));
    let bench = Bench { orchestrator: first, prompter: Arc::clone(&bench.prompter), tools: Arc::clone(&bench.tools) };
    (silent, bench)
}

/// A run whose process died while its tool was called.
async fn interrupted(bench: &Bench, pattern: &str) -> RunId {
    let (silent, dying) = dying(bench);
    let scene = if pattern == "plan-then-execute" {
        json!({"plan": [{"say": "zero", "tool": true}, {"say": "one", "needs": [0]}]})
    } else {
        agent("so")
    };
    let run = dying.request(1, question(&scene, pattern), SomeLimits::default()).await;
    let serving = Serving::start(&dying, WorkerOptions::default());
    silent.0.notified().await;
    serving.stop(Stop::Abandon).await;
    run
}

/// The run goes on in another process, with this answer if it waits for one.
async fn continued(bench: &Bench, run: &RunId, answer: Option<Answering>) -> Played {
    let serving = Serving::start(bench, WorkerOptions::default());
    if let Some(answer) = answer {
        until_waiting(bench, run, 1).await;
        assert!(bench.tools.calls.all().is_empty(), "it is not called before somebody has said so");
        decide(bench, run, &answer).await.unwrap();
    }
    bench.follow(run).await;
    serving.stop(Stop::Drain).await;
    let played = Played::of(bench, run.clone()).await;
    played.keeps_the_promises();
    played
}

fn observed(played: &Played) -> (String, Option<String>) {
    let observed = played.records.iter().find_map(|record| record.body.as_observed()).unwrap();
    let text = observed.result.as_ref().map(|result| result.text().to_owned()).unwrap_or_default();
    (text, observed.state.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsafe_call_is_recorded_before_it_is_made_and_what_is_safe_is_not() {
    let bench = bench("ask").await;
    let run = bench.request(1, question(&agent("so"), "react"), SomeLimits::default()).await;
    let played = continued(&bench, &run, None).await;
    assert_eq!(names(&played.records), "session pattern-decision i1 i1/observation/intent/1 i1/observation i2 end");
    let safe = Bench::play(memory()).await;
    let run = safe.request(1, question(&agent("so"), "react"), SomeLimits::default()).await;
    let played = continued(&safe, &run, None).await;
    assert_eq!(names(&played.records), "session pattern-decision i1 i1/observation i2 end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_may_have_been_made_is_made_again_only_if_somebody_says_so() {
    for pattern in ["react", "reflexion", "plan-then-execute"] {
        let bench = bench("ask").await;
        let run = interrupted(&bench, pattern).await;
        let edited = json!({"question": "once more"}).as_object().cloned();
        let retry = Answering { arguments: edited, ..answering("retry") };
        let played = continued(&bench, &run, Some(retry)).await;
        assert_eq!(bench.tools.calls.all().values().sum::<u32>(), 1, "{pattern}");
        assert_eq!(observed(&played), ("fact \"once more\"".to_owned(), Some("bought".to_owned())), "{pattern}");
        let intents = played.records.iter().filter(|record| record.body.as_intended().is_some()).count();
        assert_eq!(intents, 2, "{pattern}: each time it was about to be made is on record");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_who_knows_what_came_of_it_tells_and_nothing_is_called() {
    let bench = bench("ask").await;
    let run = interrupted(&bench, "react").await;
    let bare = decide_later(&bench, &run, &answering("result")).await;
    assert_eq!(bare, "`result` needs what the call has brought, and nothing else does");
    let told = Answering { result: Some("it was bought for 3".to_owned()), ..answering("result") };
    let played = continued(&bench, &run, Some(told)).await;
    assert_eq!(observed(&played), ("it was bought for 3".to_owned(), Some("bought".to_owned())));
    assert!(bench.tools.calls.all().is_empty());
    let records = "session pattern-decision i1 i1/observation/intent/1 park/1 park/1/decision i1/observation i2 end";
    assert_eq!(names(&played.records), records);
}

async fn decide_later(bench: &Bench, run: &RunId, answer: &Answering) -> String {
    let serving = Serving::start(bench, WorkerOptions::default());
    until_waiting(bench, run, 1).await;
    let refused = decide(bench, run, answer).await.unwrap_err().to_string();
    serving.stop(Stop::Drain).await;
    refused
}

#[tokio::test(flavor = "multi_thread")]
async fn the_run_can_go_on_without_it_and_the_model_is_told() {
    let bench = bench("ask").await;
    let run = interrupted(&bench, "react").await;
    let answer = Answering { reason: Some("the shop is closed".to_owned()), ..answering("continue") };
    let played = continued(&bench, &run, Some(answer)).await;
    let (told, state) = observed(&played);
    assert!(told.contains("whether it was is not known") && told.ends_with("to go on: the shop is closed"), "{told}");
    assert_eq!((state, bench.summary(&run).await.state), (None, RunState::Answered));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tool_may_say_itself_what_is_done_and_that_is_on_record() {
    for (setting, calls) in [("retry", 1), ("continue", 0)] {
        let bench = bench(setting).await;
        let run = interrupted(&bench, "react").await;
        let played = continued(&bench, &run, None).await;
        assert_eq!(bench.tools.calls.all().values().sum::<u32>(), calls, "{setting}");
        let settled = played.records.iter().find_map(|record| record.body.as_settled()).unwrap();
        assert_eq!(
            (settled.decision.chosen.as_slice(), settled.decision.decided_by),
            (&[setting.to_owned()][..], DecidedBy::Rule)
        );
        assert_eq!(settled.by, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_ends_the_process_each_time_is_asked_about_in_the_end() {
    let bench = bench("retry").await;
    let run = interrupted(&bench, "react").await;
    for _ in 0..3 {
        let (silent, dying) = dying(&bench);
        let serving = Serving::start(&dying, WorkerOptions::default());
        silent.0.notified().await;
        serving.stop(Stop::Abandon).await;
    }
    let serving = Serving::start(&bench, WorkerOptions::default());
    until_waiting(&bench, &run, 1).await;
    decide(&bench, &run, &answering("continue")).await.unwrap();
    bench.follow(&run).await;
    serving.stop(Stop::Drain).await;
    assert!(bench.tools.calls.all().is_empty());
    Played::of(&bench, run).await.keeps_the_promises();
}
