//! Each test folds records and reads the orders: no runtime, no clock.

use super::*;
use crate::router::{OperatorLimits, Wishes, route};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trellis_domain::config::{Settings, StoredItem};
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentStep;
use trellis_domain::record::{Accepted, Body, FORMAT, Header, Observed, PromptUse, Record};
use trellis_domain::usage::Usage;
use trellis_domain::{Collection, Flow, Hash, SessionId, Timestamp, Workspace};

struct Fixture {
    session: Session,
    seq: u64,
}

impl Fixture {
    fn new() -> Self {
        Self::with(SomeLimits::default(), Vec::new())
    }

    fn with(limits: SomeLimits, history: Vec<AgentStep>) -> Self {
        let tool = |key: &str, extra: &str| StoredItem {
            kind: "tool".into(),
            key: key.into(),
            value: format!(r#"{{"type":"text-completion","name":"{key}","description":"about {key}"{extra}}}"#),
        };
        let context = StoredItem { kind: "agent".into(), key: "additional-context".into(), value: "Be kind.".into() };
        let items =
            [tool("search", r#","state":"searched""#), tool("read", r#","applicable-states":["searched"]"#), context];
        let settings = Arc::new(Settings::take(3, items).0);
        let routed = route(
            &settings,
            &Workspace::default(),
            Wishes { limits: Some(&limits), framing: "Be brief.", ..Wishes::default() },
            &OperatorLimits::default(),
        );
        let mut fixture = Self { session: Session::new(settings), seq: 0 };
        fixture.record(
            Name::session(),
            Body::Accepted(Accepted {
                question: "why?".into(),
                request: Hash::ZERO,
                group: None,
                state: String::new(),
                collection: Collection::default(),
                streaming: true,
                conversation: None,
                pattern: String::new(),
                task_type: String::new(),
                framing: String::new(),
                limits,
                history,
            }),
        );
        fixture.record(Name::pattern_decision(), Body::Routed(routed));
        fixture
    }

    fn record(&mut self, name: Name, body: Body) {
        self.seq += 1;
        self.session.apply(Arc::new(Record {
            header: Header {
                format: FORMAT,
                workspace: Workspace::default(),
                flow: Flow::default(),
                run: SessionId::new("S").unwrap(),
                session: SessionId::new("S").unwrap(),
                name,
                seq: self.seq,
                version: self.seq,
                causes: Vec::new(),
                parents: Vec::new(),
                content: Hash::ZERO,
                config: Hash::ZERO,
                attempt: 1,
                late: false,
                trace: None,
                time: Timestamp::from_micros(0),
            },
            body,
        }));
    }

    /// Records a reply as the shell would: parsed, and matched against what was offered.
    fn reply(&mut self, n: u32, text: &str) {
        let (thought, reading, decision) = interpret(parser::read(text), self.prompt(n).offered);
        self.record(
            Name::iteration(n),
            Body::Replied(Replied {
                prompt: PromptUse::default(),
                raw: text.into(),
                thought,
                reading,
                decision,
                model: Some("m".into()),
                in_token: Some(10),
                out_token: Some(5),
                ms: 7,
                failures: Vec::new(),
            }),
        );
    }

    fn observe(&mut self, n: u32, result: Result<&str, &str>, state: Option<&str>) {
        let text = match result {
            Ok(text) => text.to_owned(),
            Err(error) => format!("Error: {error}"),
        };
        self.record(
            Name::observation(n),
            Body::Observed(Observed {
                result: Document::stored(text),
                error: result.err().map(str::to_owned),
                ms: 3,
                state: state.map(str::to_owned),
                idempotency_key: Some("k".into()),
                usage: Usage::default(),
            }),
        );
    }

    fn decide(&self, n: u32) -> Vec<Order> {
        React.decide(&self.session, &Turn { name: Name::iteration(n), now: Timestamp::from_micros(0) })
    }

    fn prompt(&self, n: u32) -> crate::PromptOrder {
        prompt::order(&self.session, n)
    }

    fn variable(&self, n: u32, name: &str) -> Value {
        self.prompt(n).variables[name].clone()
    }

    fn report(&self, n: u32) -> String {
        match self.decide(n).as_slice() {
            [Order::Perform(name, Effect::Report { error })] if *name == Name::observation(n) => error.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn ending(&self, n: u32) -> Ending {
        match self.decide(n).as_slice() {
            [Order::End(ending)] => ending.clone(),
            other => panic!("{other:?}"),
        }
    }
}

const SEARCH: &str = "Thought: look\nAction: search\nArgs: {\"question\": \"x\"}";

#[test]
fn a_fresh_turn_asks_the_model_with_the_tools_that_apply() {
    let fixture = Fixture::new();
    let orders = fixture.decide(1);
    assert!(matches!(orders.as_slice(), [Order::Perform(_, Effect::AskModel(prompt))] if prompt.id == "agent-react"));
    assert_eq!(fixture.variable(1, "question"), "why?");
    assert_eq!(fixture.variable(1, "tool_names"), "search");
    assert_eq!(fixture.variable(1, "context"), "Be kind.\n\nBe brief.");
    assert_eq!(fixture.variable(1, "history"), json!([]));
    assert_eq!(
        fixture.variable(1, "tools"),
        json!([{"name": "search", "description": "about search",
                "arguments": [{"name": "question", "type": "string", "description": "The question to ask"}]}])
    );
}

#[test]
fn a_reply_with_an_action_calls_that_tool_and_its_observation_opens_the_next_turn() {
    let mut fixture = Fixture::new();
    fixture.reply(1, SEARCH);
    let arguments: Map<String, Value> = serde_json::from_str(r#"{"question":"x"}"#).unwrap();
    let call = Effect::CallTool { tool: "search".into(), arguments };
    assert_eq!(fixture.decide(1), [Order::Perform(Name::observation(1), call)]);
    fixture.observe(1, Ok("found"), Some("searched"));
    assert_eq!(fixture.decide(1), [Order::Open(Name::iteration(2))]);
    assert_eq!(
        fixture.variable(2, "history"),
        json!([{"thought": "look", "action": "search", "arguments": {"question": "x"}, "observation": "found"}])
    );
}

#[test]
fn a_state_reached_by_success_brings_its_tools_and_a_failure_does_not() {
    let mut fixture = Fixture::new();
    fixture.reply(1, SEARCH);
    fixture.observe(1, Err("no network"), None);
    assert_eq!(fixture.variable(2, "tool_names"), "search");
    fixture.reply(2, SEARCH);
    fixture.observe(2, Ok("found"), Some("searched"));
    assert_eq!(fixture.variable(3, "tool_names"), "read,search");
}

#[test]
fn an_answer_ends_the_session() {
    let mut fixture = Fixture::new();
    fixture.reply(1, "Thought: easy\nFinal Answer: 42\n\n- really");
    assert_eq!(
        fixture.ending(1),
        Ending { reason: Termination::FinalAnswer, answer: "42\n\n- really".into(), error: None }
    );
}

#[test]
fn an_unknown_tool_is_told_to_the_model_with_the_tools_there_are() {
    let mut fixture = Fixture::new();
    fixture.reply(1, "Thought: hm\nAction: read\nArgs: {}");
    assert_eq!(fixture.report(1), "there is no tool `read`; available tools: search");
    let decision = &fixture.session.reply(1).unwrap().decision[0];
    assert!(decision.chosen.is_empty(), "nothing outside the set counts as chosen");
    assert_eq!(decision.rejected.as_ref().map(Document::text), Some("read"));
}

#[test]
fn a_reply_that_cannot_be_read_is_told_to_the_model_and_counts_as_an_iteration() {
    let mut fixture = Fixture::new();
    fixture.reply(1, "Thought: I wonder.");
    assert!(fixture.report(1).contains("Final Answer:"), "{}", fixture.report(1));
    fixture.observe(1, Err("unreadable"), None);
    assert_eq!(fixture.decide(1), [Order::Open(Name::iteration(2))]);
    assert_eq!(fixture.variable(2, "history")[0]["action"], PARSE_ERROR);
}

#[test]
fn broken_arguments_are_told_to_the_model() {
    let mut fixture = Fixture::new();
    fixture.reply(1, "Thought: look\nAction: search\nArgs: {\"question\": }");
    assert!(fixture.report(1).contains("Args"), "{}", fixture.report(1));
}

#[test]
fn exactly_so_many_iterations_can_run_and_the_end_tells_what_was_found() {
    let limits = SomeLimits { max_iterations: Some(2), ..SomeLimits::default() };
    let mut fixture = Fixture::with(limits, Vec::new());
    for n in 1..=2 {
        fixture.reply(n, SEARCH);
        fixture.observe(n, Ok("a fact"), None);
        assert_eq!(fixture.decide(n), [Order::Open(Name::iteration(n + 1))]);
    }
    let ending = fixture.ending(3);
    assert_eq!(ending.reason, Termination::MaxIterations);
    assert_eq!(ending.error.as_deref(), Some("Too many agent iterations"));
    assert_eq!(
        ending.answer,
        "No final answer after 2 iterations, which is the limit. Found so far:\n- search: a fact\n- search: a fact"
    );
}

#[test]
fn a_failed_model_call_ends_the_session_with_its_reason() {
    let mut fixture = Fixture::new();
    fixture.record(
        Name::iteration(1),
        Body::Replied(Replied {
            prompt: PromptUse::default(),
            raw: "".into(),
            thought: None,
            reading: Reading::Failed { reason: "the model did not answer within 120 s".into() },
            decision: Vec::new(),
            model: None,
            in_token: None,
            out_token: None,
            ms: 120_000,
            failures: Vec::new(),
        }),
    );
    let ending = fixture.ending(1);
    assert_eq!(
        (ending.reason, ending.error.as_deref()),
        (Termination::Error, Some("the model did not answer within 120 s"))
    );
}

#[test]
fn brought_history_is_context_and_costs_no_iterations() {
    let step = AgentStep { thought: "t".into(), action: "a".into(), observation: "o".into(), ..AgentStep::default() };
    let fixture = Fixture::with(SomeLimits::default(), vec![step]);
    assert_eq!(fixture.variable(1, "history").as_array().map(Vec::len), Some(1));
    assert!(matches!(fixture.decide(1).as_slice(), [Order::Perform(..)]));
}

#[test]
fn a_large_observation_is_shown_in_part_and_says_so() {
    let limits = SomeLimits { shown_observation_bytes: Some(5), ..SomeLimits::default() };
    let mut fixture = Fixture::with(limits, Vec::new());
    fixture.reply(1, SEARCH);
    fixture.observe(1, Ok("äöüß"), None);
    assert_eq!(fixture.variable(2, "history")[0]["observation"], "äö\n[cut: 4 of 8 bytes shown]");
}

#[test]
fn usage_adds_up_over_iterations() {
    let mut fixture = Fixture::new();
    fixture.reply(1, SEARCH);
    fixture.observe(1, Ok("x"), None);
    fixture.reply(2, "Final Answer: y");
    let usage = fixture.session.usage();
    assert_eq!((usage.in_token, usage.out_token, usage.model_calls, usage.tool_calls), (Some(20), Some(10), 2, 1));
    assert_eq!((usage.model_ms, usage.tool_ms, usage.model.as_deref()), (14, 3, Some("m")));
}

#[test]
fn arguments_nested_deeper_than_a_record_can_hold_are_told_to_the_model() {
    let mut fixture = Fixture::new();
    let deep = [r#"{"a":"#.repeat(100), "1".to_owned(), "}".repeat(100)].concat();
    fixture.reply(1, &format!("Thought: deep\nAction: search\nArgs: {deep}"));
    assert!(fixture.report(1).contains("64 levels"), "{}", fixture.report(1));
}
