//! Several calls in one reply: they are made at the same time, each result is recorded as it comes, and a crash or an
//! approval in between changes nothing.

use crate::memory;
use crate::promises::Serving;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Barrier, Notify};
use trellis_domain::config::StoredItem;
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::Record;
use trellis_domain::{Caller, RunId, Surface, Workspace};
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, play, question};
use trellis_orchestrator::ports::{BoxFuture, ToolCall, ToolError, ToolOutput, ToolRunner};
use trellis_orchestrator::workers::{Stop, WorkerOptions};
use trellis_orchestrator::{Answering, Options, Orchestrator, Ports};

fn names(records: &[Arc<Record>]) -> Vec<&str> {
    records.iter().map(|record| record.header.name.as_str()).collect()
}

/// A bench with this model script and these tools.
async fn bench(tools: Arc<dyn ToolRunner>) -> Bench {
    let bench = Bench::play(memory()).await;
    let ports = Ports { tools, ..bench.orchestrator.ports.clone() };
    Bench { orchestrator: Arc::new(Orchestrator::new(ports, Options::default())), ..bench }
}

async fn until_recorded(bench: &Bench, run: &RunId, name: &str) {
    for _ in 0..2_000 {
        if names(&bench.records(run).await).contains(&name) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{name} was never recorded: {:?}", names(&bench.records(run).await));
}

/// A tool that answers only once three calls of it are under way.
#[derive(Debug)]
struct Together(Barrier);

impl ToolRunner for Together {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            self.0.wait().await;
            let text = format!("fact {}", call.arguments["question"]);
            Ok(ToolOutput { text, ..ToolOutput::default() })
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_reply_are_made_at_the_same_time() {
    let bench = bench(Arc::new(Together(Barrier::new(3)))).await;
    let scene = json!({"tools": 6, "at_once": 3, "answer": "yes"});
    let played = play(&bench, &scene, "react", SomeLimits::default()).await;
    played.keeps_the_promises();
    assert_eq!(played.answer(), "yes");
    let keys: std::collections::BTreeSet<_> =
        played.records.iter().filter_map(|record| record.body.as_observed()?.idempotency_key.clone()).collect();
    assert_eq!(keys.len(), 6, "each call has a key of its own");
    let expected = ["i1/call/2/observation", "i1/call/3/observation", "i1/observation"];
    let mut of_first: Vec<_> = names(&played.records)[3..6].to_vec();
    of_first.sort_unstable();
    assert_eq!(of_first, expected);
}

/// A tool that answers the second call at once and the first only when it is told to.
#[derive(Debug, Default)]
struct Slow {
    go_on: Notify,
}

impl ToolRunner for Slow {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            if call.arguments["question"] == "0" {
                self.go_on.notified().await;
            }
            Ok(ToolOutput { text: "a fact".to_owned(), ..ToolOutput::default() })
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_result_is_recorded_as_it_comes_and_not_fetched_again_after_a_crash() {
    let tools = Arc::new(Slow::default());
    let bench = bench(Arc::clone(&tools) as Arc<dyn ToolRunner>).await;
    let scene = json!({"tools": 2, "at_once": 2, "answer": "yes"});
    let run = bench.request(1, question(&scene, "react"), SomeLimits::default()).await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    until_recorded(&bench, &run, "i1/call/2/observation").await;
    // The process goes while the other call is under way.
    serving.stop(Stop::Abandon).await;
    tools.go_on.notify_one();
    bench.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    assert_eq!(names(&played.records)[2..], ["i1", "i1/call/2/observation", "i1/observation", "i2", "end"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_that_needs_approval_is_asked_for_before_any_is_made() {
    let bench = Bench::play(memory()).await;
    let tool = json!({
        "type": "text-completion", "name": "search", "description": "finds facts", "requires-approval": true,
    });
    let item = StoredItem { kind: "tool".to_owned(), key: "search".to_owned(), value: tool.to_string() };
    bench.orchestrator.ports.config.put(&Workspace::default(), vec![item], Caller::program()).await.unwrap();
    let scene = json!({"tools": 2, "at_once": 2, "answer": "yes"});
    let run = bench.request(1, question(&scene, "react"), SomeLimits::default()).await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    let by = Caller::new(Some("ada".to_owned()), Surface::CommandLine);
    for (number, choice) in [(1, "approve"), (2, "deny")] {
        until_recorded(&bench, &run, &format!("park/{number}")).await;
        assert!(bench.tools.calls.all().is_empty(), "nothing is called before all is decided");
        let (choice, by) = (choice.to_owned(), by.clone());
        let answer =
            Answering { question: None, choice, reason: None, arguments: None, result: None, content: None, by };
        bench.runs().decide(&Workspace::default(), &run, &answer).await.unwrap();
    }
    bench.follow(&run).await;
    serving.stop(Stop::Drain).await;
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    assert_eq!(bench.tools.calls.all().len(), 1, "what was denied is not called");
}
