//! Every limit ends in a recorded answer or a clear end.

use crate::memory;
use crate::promises::put;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::document::Document;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::{Body, Observed, Reading, Record};
use trellis_domain::run::RunState;
use trellis_domain::{RequestId, Scope};
use trellis_orchestrator::accept::{AcceptError, Question, UnknownNames};
use trellis_orchestrator::contract::runs::{Bench, SCRIPT};
use trellis_orchestrator::memory::scripted::{SILENT, ScriptedPrompter, ScriptedTools};

async fn run(prompter: ScriptedPrompter, tools: ScriptedTools, limits: SomeLimits) -> (RunState, Vec<Arc<Record>>) {
    let bench = Bench::with_tools(memory(), prompter, tools).await;
    let run = bench.ask(1, limits).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    (bench.summary(&run).await.state, bench.records(&run).await)
}

fn plain_tools() -> ScriptedTools {
    ScriptedTools::new(|_| Ok("a fact".to_owned()))
}

fn error_of(records: &[Arc<Record>]) -> String {
    match &records.last().unwrap().body {
        Body::Ended(ended) => ended.error.clone().unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

fn observations(records: &[Arc<Record>]) -> Vec<&Observed> {
    let observed = |record: &'_ Arc<Record>| matches!(record.body, Body::Observed(_));
    records
        .iter()
        .filter(|record| observed(record))
        .filter_map(|record| match &record.body {
            Body::Observed(observed) => Some(observed),
            _ => None,
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_hangs_is_given_up_and_the_run_says_so() {
    let mut prompter = ScriptedPrompter::replies(&SCRIPT);
    prompter.delay = Duration::from_mins(1);
    let limits = SomeLimits { model_timeout_ms: Some(20), ..SomeLimits::default() };
    let (state, records) = run(prompter, plain_tools(), limits).await;
    assert_eq!(state, RunState::Failed);
    assert_eq!(error_of(&records), "the model did not answer: the model took longer than 0.02 s");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_hangs_is_given_up_and_the_model_goes_on() {
    let tools = ScriptedTools::new(|_| Err(SILENT.to_owned()));
    let bench = Bench::with_tools(memory(), ScriptedPrompter::replies(&SCRIPT), tools).await;
    let elsewhere = json!({ "type": "mcp-tool", "name": "search", "mcp-tool": "search", "description": "finds facts" });
    put(&bench, &[("tool", "search", elsewhere)]).await;
    let run = bench.ask(1, SomeLimits { tool_timeout_ms: Some(20), ..SomeLimits::default() }).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    assert_eq!(bench.summary(&run).await.state, RunState::Answered);
    let records = bench.records(&run).await;
    assert_eq!(observations(&records)[0].error.as_deref(), Some("the tool `search` did not answer within 0.02 s"));
}

/// A tool that asks a model leaves it to the prompter to keep the time, which knows how long the call had to wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_asks_a_model_is_told_how_long_it_may_take() {
    let (told, heard) = std::sync::mpsc::channel();
    let tools = ScriptedTools::new(move |call| {
        told.send((call.patience, call.max_reply_bytes)).unwrap();
        Err(SILENT.to_owned())
    });
    let limits = SomeLimits {
        tool_timeout_ms: Some(20),
        run_timeout_ms: Some(2_000),
        max_reply_bytes: Some(1234),
        ..SomeLimits::default()
    };
    let (_, records) = run(ScriptedPrompter::replies(&SCRIPT), tools, limits).await;
    assert_eq!(heard.recv().unwrap(), (Duration::from_millis(20), 1234));
    let waited = observations(&records)[0];
    assert!(waited.ms > 100 && waited.error.is_some(), "only the end of the run stops it: {waited:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_takes_too_long_ends_with_timeout() {
    let mut prompter = ScriptedPrompter::replies(&SCRIPT[..1]);
    prompter.delay = Duration::from_millis(5);
    let limits = SomeLimits { run_timeout_ms: Some(1), ..SomeLimits::default() };
    let (state, records) = run(prompter, plain_tools(), limits).await;
    assert!(state == RunState::Limit || state == RunState::Failed, "{state}");
    assert!(!error_of(&records).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_tool_is_told_to_the_model_which_goes_on() {
    let tools = ScriptedTools::new(|_| Err("no network".to_owned()));
    let (state, records) = run(ScriptedPrompter::replies(&SCRIPT), tools, SomeLimits::default()).await;
    assert_eq!(state, RunState::Answered);
    let first = observations(&records)[0];
    assert_eq!(first.result.as_ref().map(Document::text), Some("Error: no network"));
    assert_eq!(first.error.as_deref(), Some("no network"));
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_replies_and_unknown_tools_are_observations() {
    let replies = ["I will just chat.", "Thought: t\nAction: telepathy\nArgs: {}", "Final Answer: ok"];
    let (state, records) = run(ScriptedPrompter::replies(&replies), plain_tools(), SomeLimits::default()).await;
    assert_eq!(state, RunState::Answered);
    let texts: Vec<_> = observations(&records).iter().filter_map(|o| o.error.as_deref()).collect();
    assert!(texts[0].contains("Final Answer:"), "{texts:?}");
    assert_eq!(texts[1], "there is no tool `telepathy`; available tools: search");
    assert!(observations(&records).iter().all(|observed| observed.idempotency_key.is_none()), "no tool was called");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_is_too_long_is_cut_and_told_to_the_model() {
    let long = format!("Final Answer: {}", "x".repeat(2000));
    let replies = [long.as_str(), "Final Answer: short"];
    let mut prompter = ScriptedPrompter::replies(&replies);
    prompter.piece = 100;
    let limits = SomeLimits { max_reply_bytes: Some(1000), ..SomeLimits::default() };
    let (state, records) = run(prompter, plain_tools(), limits).await;
    assert_eq!(state, RunState::Answered);
    let reading = records.iter().find_map(|record| match &record.body {
        Body::Replied(reply) => Some(reply.reading.clone()),
        _ => None,
    });
    assert_eq!(reading, Some(Reading::Unreadable { reason: "the reply was longer than 1000 bytes; be brief".into() }));
}

#[tokio::test]
async fn more_open_runs_than_allowed_are_refused_clearly() {
    let bench = Bench::new(memory(), ScriptedPrompter::replies(&SCRIPT)).await;
    bench.ask(1, SomeLimits::default()).await;
    let mut full = (*bench.orchestrator).clone();
    full.options.max_open_runs = 1;
    let question = Question {
        scope: Scope::default(),
        request_id: RequestId::new("one-too-many").unwrap(),
        request: AgentRequest { question: "q".into(), ..AgentRequest::default() },
        limits: SomeLimits::default(),
        names: UnknownNames::Refuse,
        by: None,
    };
    let refused = full.accept(question).await.unwrap_err().to_string();
    assert_eq!(refused, "1 run open, which is the limit; wait until some have ended");
}

#[tokio::test]
async fn bad_questions_are_refused_with_a_reason_and_leave_nothing() {
    let bench = Bench::new(memory(), ScriptedPrompter::replies(&SCRIPT)).await;
    let ask = async |request: AgentRequest| {
        let question = Question {
            scope: Scope::default(),
            request_id: RequestId::new("r").unwrap(),
            request,
            limits: SomeLimits::default(),
            names: UnknownNames::Refuse,
            by: None,
        };
        bench.orchestrator.accept(question).await.map(|accepted| accepted.run).unwrap_err().to_string()
    };
    let question = |text: &str| AgentRequest { question: text.into(), ..AgentRequest::default() };
    assert_eq!(ask(question(" \n")).await, AcceptError::EmptyQuestion.to_string());
    assert!(ask(question(&"x".repeat((1 << 20) + 1))).await.contains("at most 1048576 are allowed"));
    let bad_session = AgentRequest { session_id: "a/b".into(), ..question("q") };
    assert!(ask(bad_session).await.contains("contains '/'"));
    let bad_pattern = AgentRequest { pattern: "debate".into(), ..question("q") };
    assert_eq!(
        ask(bad_pattern).await,
        "there is no pattern `debate`; choose one of react, plan-then-execute, supervisor"
    );
    assert_eq!(bench.orchestrator.ports.journal.open_runs(), 0);
}
