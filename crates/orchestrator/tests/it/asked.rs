//! Tools that ask a person for input: the run waits, and the call is made again with the answer.

use crate::memory;
use crate::park::{answering, decide, names, until_waiting};
use crate::promises::Serving;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_domain::RunId;
use trellis_domain::config::StoredItem;
use trellis_domain::input::{Form, GivenInput, InputRequired};
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::{Body, Record};
use trellis_domain::run::RunState;
use trellis_domain::{Caller, Workspace};
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, question};
use trellis_orchestrator::orchestrator::{Orchestrator, Ports};
use trellis_orchestrator::ports::{BoxFuture, CallInput, ToolCall, ToolError, ToolOutput, ToolQuestion, ToolRunner};
use trellis_orchestrator::workers::{Stop, WorkerOptions};
use trellis_orchestrator::{Answering, DecideError};

/// Asks so many times, and then brings what it was told.
#[derive(Debug)]
struct Asking {
    times: usize,
    calls: Mutex<Vec<(String, CallInput)>>,
}

fn form(name: &str) -> Form {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let Value::Object(schema) = schema else { panic!("it is an object") };
    Form { name: name.to_owned(), message: "How many?\u{1b}[2J".to_owned(), schema }
}

impl Asking {
    fn call(&self, call: ToolCall) -> ToolOutput {
        let mut calls = self.calls.lock();
        calls.push((call.idempotency_key, call.input.clone()));
        if calls.len() <= self.times {
            let asks = ToolQuestion { forms: vec![form("table")], state: Some(format!("round {}", calls.len())) };
            return ToolOutput { asks: Some(Box::new(asks)), ..ToolOutput::default() };
        }
        let CallInput::Given(given) = call.input else { panic!("it was answered") };
        ToolOutput { text: format!("told {:?} {:?}", given.answers["table"], given.state), ..ToolOutput::default() }
    }
}

impl ToolRunner for Asking {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        Box::pin(async { Ok(self.call(call)) })
    }
}

/// A bench whose only tool is on a server, and asks.
async fn bench(times: usize, effect: &str) -> (Bench, Arc<Asking>) {
    let bench = Bench::play(memory()).await;
    let tool = json!({
        "type": "mcp-tool", "name": "search", "description": "books tables", "effect": effect, "server": "s",
        "mcp-tool": "book",
    });
    let item = StoredItem { kind: "tool".to_owned(), key: "search".to_owned(), value: tool.to_string() };
    bench.orchestrator.ports.config.put(&Workspace::default(), vec![item], Caller::program()).await.unwrap();
    let asking = Arc::new(Asking { times, calls: Mutex::default() });
    let ports = Ports { tools: Arc::clone(&asking) as _, ..bench.orchestrator.ports.clone() };
    let orchestrator = Arc::new(Orchestrator::new(ports, bench.orchestrator.options.clone()));
    let bench = Bench { orchestrator, prompter: Arc::clone(&bench.prompter), tools: Arc::clone(&bench.tools) };
    (bench, asking)
}

fn given(n: &Value) -> Answering {
    Answering { content: json!({ "n": n }).as_object().cloned(), ..answering("answer") }
}

/// The run with these answers, each given in a process of its own.
async fn answered(bench: &Bench, pattern: &str, answers: &[Answering]) -> Played {
    let scene = if pattern == "plan-then-execute" {
        json!({"plan": [{"say": "zero", "tool": true}, {"say": "one", "needs": [0]}]})
    } else {
        agent("so")
    };
    let run = bench.request(1, question(&scene, pattern), SomeLimits::default()).await;
    for answer in answers {
        let serving = Serving::start(bench, WorkerOptions::default());
        until_waiting(bench, &run, 1).await;
        serving.stop(Stop::Abandon).await;
        decide(bench, &run, answer).await.unwrap();
    }
    ended(bench, run).await
}

async fn ended(bench: &Bench, run: RunId) -> Played {
    let serving = Serving::start(bench, WorkerOptions::default());
    bench.follow(&run).await;
    serving.stop(Stop::Drain).await;
    let played = Played::of(bench, run).await;
    played.keeps_the_promises();
    played
}

/// A run whose tool asked twice before it did what must not be done twice: once it was answered, once it was not.
pub(crate) async fn twice() -> Played {
    let (bench, _) = bench(2, "unsafe").await;
    answered(&bench, "react", &[given(&json!(4)), answering("decline")]).await
}

fn observation(records: &[Arc<Record>]) -> String {
    let observed = records.iter().find_map(|record| record.body.as_observed()).unwrap();
    observed.result.as_ref().map(|result| result.text().to_owned()).unwrap_or_default()
}

fn parked(records: &[Arc<Record>]) -> &trellis_domain::park::Parked {
    records.iter().find_map(|record| record.body.as_parked()).unwrap()
}

const ASKED: &str = "i1/observation/input/1 park/1 park/1/decision";

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_asks_is_called_again_with_the_answer_under_the_same_key() {
    for pattern in ["react", "reflexion", "plan-then-execute"] {
        let (bench, asking) = bench(2, "read").await;
        let played = answered(&bench, pattern, &[given(&json!(4)), given(&json!(5))]).await;
        assert!(observation(&played.records).contains(r#""n": Number(5)"#), "{}", observation(&played.records));
        let calls = asking.calls.lock().clone();
        assert!(calls.iter().all(|(key, _)| *key == calls[0].0), "{calls:?}");
        let content = |n: u64| json!({ "n": n }).as_object().cloned();
        let input = |n: u64, state: &str| {
            let answers = [("table".to_owned(), content(n))].into();
            CallInput::Given(Box::new(GivenInput { state: Some(state.to_owned()), answers }))
        };
        let told: Vec<_> = calls.into_iter().map(|(_, input)| input).collect();
        assert_eq!(told, [CallInput::Possible, input(4, "round 1"), input(5, "round 2")], "{pattern}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_quotes_the_tool_and_carries_its_form() {
    let (bench, _) = bench(1, "read").await;
    let played = answered(&bench, "react", &[given(&json!(4))]).await;
    assert_eq!(names(&played.records), format!("session pattern-decision i1 {ASKED} i1/observation i2 end"));
    let park = parked(&played.records);
    let text = park.question.text();
    assert!(text.starts_with("`search` was called with ") && text.contains("\n> How many? [2J\n"), "{text}");
    assert!(text.contains("Fields: n (integer, required)") && !text.contains('\u{1b}'), "{text}");
    assert_eq!((park.forms.as_slice(), park.otherwise.as_str()), ([form("table")].as_slice(), "decline"));
    assert_eq!(park.offered.options, ["answer", "decline"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decline_is_told_to_the_tool_and_what_it_says_then_counts() {
    let (bench, _) = bench(1, "read").await;
    let played = answered(&bench, "react", &[answering("decline")]).await;
    assert_eq!(observation(&played.records), r#"told None Some("round 1")"#);
}

/// A call whose tool asked has done nothing, so that nothing is uncertain about it; the next one is intended anew.
#[tokio::test(flavor = "multi_thread")]
async fn an_unsafe_call_that_asked_is_intended_again_and_nobody_is_asked_whether_it_was_made() {
    let (bench, _) = bench(2, "unsafe").await;
    let played = answered(&bench, "react", &[given(&json!(4)), answering("decline")]).await;
    let round = |n: u32| format!("i1/observation/intent/{n} i1/observation/input/{n} park/{n} park/{n}/decision");
    let expected =
        format!("session pattern-decision i1 {} {} i1/observation/intent/3 i1/observation i2 end", round(1), round(2));
    assert_eq!(names(&played.records), expected);
    assert_eq!(played.records.iter().filter(|record| matches!(record.body, Body::InputRequired(_))).count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_form_does_not_ask_for_is_refused_and_the_question_stays_open() {
    let (bench, _) = bench(1, "read").await;
    let run = bench.request(1, question(&agent("so"), "react"), SomeLimits::default()).await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    until_waiting(&bench, &run, 1).await;
    let edited = json!({}).as_object().cloned();
    for (answer, why) in [
        (given(&json!("four")), "this is not what the tool asks for: the form `table`: `n` must be a whole number"),
        (answering("answer"), "`answer` needs what the tool asks for, as content, and nothing else does"),
        (Answering { choice: "decline".to_owned(), ..given(&json!(4)) }, "`answer` needs what the tool asks for"),
        (Answering { arguments: edited, ..given(&json!(4)) }, "there are no arguments to change"),
        (answering("approve"), "`approve` is not one of the options"),
    ] {
        let refused: DecideError = decide(&bench, &run, &answer).await.unwrap_err();
        assert!(refused.to_string().starts_with(why), "{refused}");
    }
    serving.stop(Stop::Abandon).await;
    decide(&bench, &run, &given(&json!(4))).await.unwrap();
    ended(&bench, run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_asks_only_so_often() {
    let most = usize::try_from(InputRequired::MOST_TIMES).unwrap();
    let (bench, asking) = bench(most + 1, "read").await;
    let played = answered(&bench, "react", &vec![given(&json!(4)); most]).await;
    assert!(observation(&played.records).contains("has asked for input 8 times and asks again"));
    assert_eq!(asking.calls.lock().len(), most + 1);
    let run = bench.orchestrator.ports.journal.run(&Workspace::default(), &played.run).await.unwrap().unwrap();
    assert_eq!(run.state, RunState::AnsweredPartial);
}
