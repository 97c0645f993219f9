//! Each test folds records and reads the orders: no runtime, no clock.

use super::*;
use crate::contract::{Effect, Ending};
use crate::fixture::{self, question, settings, turn};
use crate::react::IterationNames;
use crate::supervisor::TeamNames;
use serde_json::{Map, Value, json};
use trellis_domain::SessionId;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentStep;
use trellis_domain::record::{Accepted, Exchange};
use trellis_domain::run::Termination;

const TOOLS: [(&str, &str, &str); 3] = [
    ("tool", "search", r#"{"type":"text-completion","name":"search","description":"about search","state":"searched"}"#),
    ("tool", "read", r#"{"type":"text-completion","name":"read","applicable-states":["searched"]}"#),
    ("agent", "additional-context", "Be kind."),
];

pub(super) struct Fixture(pub(super) fixture::Fixture);

impl Fixture {
    pub(super) fn new() -> Self {
        Self::with(SomeLimits::default(), Vec::new())
    }

    /// One that began by older rules.
    pub(super) fn of_revision(revision: u32) -> Self {
        Self::asked(Accepted { revision, ..question("why?") })
    }

    fn with(limits: SomeLimits, history: Vec<AgentStep>) -> Self {
        Self::asked(Accepted { limits, history, framing: "Be brief.".into(), ..question("why?") })
    }

    fn asked(accepted: Accepted) -> Self {
        Self(fixture::Fixture::routed(settings(&TOOLS), accepted))
    }

    /// Records a reply as the shell would: parsed, and matched against what was offered.
    #[track_caller]
    pub(super) fn reply(&mut self, n: u32, text: &str) {
        self.0.reply(&self.decide(n), text);
    }

    pub(super) fn observe(&mut self, n: u32, result: Result<&str, &str>, state: Option<&str>) {
        self.0.observe(Name::observation(n), result, state);
    }

    fn session(&self) -> &Session {
        &self.0.session
    }

    pub(super) fn decide(&self, n: u32) -> Vec<Order> {
        React.decide(self.session(), &turn(Name::iteration(n)))
    }

    fn prompt(&self, n: u32) -> crate::PromptOrder {
        prompt::order(self.session(), n)
    }

    fn variable(&self, n: u32, name: &str) -> Value {
        self.prompt(n).variables[name].clone()
    }

    #[track_caller]
    pub(super) fn report(&self, n: u32) -> String {
        match self.decide(n).as_slice() {
            [Order::Perform(name, Effect::Report { error })] if *name == Name::observation(n) => error.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub(super) fn ending(&self, n: u32) -> Ending {
        match self.decide(n).as_slice() {
            [Order::End(ending)] => ending.clone(),
            other => panic!("{other:?}"),
        }
    }

    /// Plays an iteration whose reply is this, and says whether a tool was called in it.
    #[track_caller]
    pub(super) fn play(&mut self, n: u32, text: &str, result: &str) -> bool {
        self.reply(n, text);
        let orders = self.decide(n);
        let called = matches!(orders.as_slice(), [Order::Perform(_, Effect::CallTool { .. })]);
        if called {
            self.observe(n, Ok(result), None);
        } else {
            self.0.report(&orders);
        }
        assert_eq!(self.decide(n), [Order::Open(Name::iteration(n + 1))]);
        called
    }
}

pub(super) const SEARCH: &str = "Thought: look\nAction: search\nArgs: {\"question\": \"x\"}";

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
    assert_eq!(fixture.ending(1), Ending::answered(Termination::FinalAnswer, "42\n\n- really"));
}

#[test]
fn an_answer_after_nothing_but_failed_calls_is_a_partial_one() {
    let failed = |mut fixture: Fixture| {
        fixture.reply(1, SEARCH);
        fixture.observe(1, Err("no network"), None);
        fixture
    };
    let answered = |mut fixture: Fixture, n: u32| {
        fixture.reply(n, "Final Answer: perhaps");
        fixture.ending(n)
    };
    let partial = Ending::answered(Termination::AnswerPartial, "perhaps");
    let whole = Ending::answered(Termination::FinalAnswer, "perhaps");
    assert_eq!(answered(failed(Fixture::new()), 2), partial);
    let mut helped = failed(Fixture::new());
    helped.reply(2, SEARCH);
    helped.observe(2, Ok("found"), None);
    assert_eq!(answered(helped, 3), whole, "one result is something to answer from");
    let mut mistaken = Fixture::new();
    mistaken.reply(1, "Thought: hm\nAction: read\nArgs: {}");
    mistaken.0.report(&mistaken.decide(1));
    assert_eq!(answered(mistaken, 2), whole, "what was not called has not failed");
    assert_eq!(answered(failed(Fixture::of_revision(6)), 2), whole, "older sessions end as they did");
}

#[test]
fn an_unknown_tool_is_told_to_the_model_with_the_tools_there_are() {
    let mut fixture = Fixture::new();
    fixture.reply(1, "Thought: hm\nAction: read\nArgs: {}");
    assert_eq!(fixture.report(1), "there is no tool `read`; available tools: search");
    let decision = &fixture.session().replied(&Name::iteration(1)).unwrap().decision[0];
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
    let orders = fixture.decide(1);
    fixture.0.fail(&orders, "the model did not answer within 120 s");
    let ending = fixture.ending(1);
    assert_eq!(
        (ending.reason, ending.error.as_deref()),
        (Termination::Error, Some("the model did not answer within 120 s"))
    );
}

#[test]
fn brought_history_is_context_and_costs_no_iterations() {
    let step = AgentStep { thought: "t".into(), action: "a".into(), observation: "o".into(), ..AgentStep::default() };
    let fixture = Fixture::asked(Accepted { history: vec![step], ..question("why?") });
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
    let usage = fixture.session().usage();
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

#[test]
fn what_is_known_at_a_limit_leaves_out_what_only_the_model_was_told() {
    let limits = SomeLimits { max_iterations: Some(2), ..SomeLimits::default() };
    let mut fixture = Fixture::with(limits, Vec::new());
    fixture.play(1, "Thought: I wonder.", "");
    fixture.play(2, "Thought: I still wonder.", "");
    assert_eq!(
        fixture.ending(3).answer,
        "No final answer after 2 iterations, which is the limit. Nothing was found so far."
    );
}

#[test]
fn a_failing_tool_is_part_of_what_is_known() {
    let limits = SomeLimits { max_iterations: Some(1), ..SomeLimits::default() };
    let mut fixture = Fixture::with(limits, Vec::new());
    fixture.reply(1, SEARCH);
    fixture.observe(1, Err("no network"), None);
    assert!(fixture.ending(2).answer.ends_with("Found so far:\n- search: Error: no network"));
}

#[test]
fn the_prompt_tells_when_to_stop_in_the_words_of_the_task_type() {
    let general = ("agent-task-type", "general", r#"{"framing":"Be brief.","termination":"Two sources agree."}"#);
    let fixture = fixture::Fixture::routed(settings(&[TOOLS[2], general]), question("why?"));
    assert_eq!(fixture.session.context(), "Be kind.\n\nBe brief.\n\nWhen to stop: Two sources agree.");
}

#[test]
fn the_prompt_tells_what_was_said_earlier_in_the_conversation() {
    let exchange = |run: &str, question: &str, answer: &str| Exchange {
        run: Some(SessionId::new(run).unwrap()),
        question: question.into(),
        answer: answer.into(),
    };
    let earlier = vec![exchange("a", "Who?", "Ada."), exchange("b", "When?", "1843.")];
    let fixture = Fixture::asked(Accepted { earlier, ..question("why?") });
    assert_eq!(
        fixture.variable(1, "context"),
        "Be kind.\n\nEarlier in this conversation:\n\nQuestion: Who?\nAnswer: Ada.\n\n\
         Question: When?\nAnswer: 1843."
    );
}

#[test]
fn without_anything_to_tell_the_context_is_null() {
    let fixture = fixture::Fixture::routed(settings(&[]), question("why?"));
    assert_eq!(fixture.session.context(), Value::Null);
}

#[test]
fn a_turn_of_another_pattern_ends_the_session_instead_of_hanging() {
    let fixture = Fixture::new();
    let orders = React.decide(fixture.session(), &turn(Name::decompose()));
    assert!(matches!(orders.as_slice(), [Order::End(ending)] if ending.reason == Termination::Error), "{orders:?}");
}

#[test]
fn a_session_folded_again_decides_the_same() {
    let mut fixture = Fixture::new();
    fixture.play(1, SEARCH, "a fact");
    fixture.reply(2, SEARCH);
    let mut again = fixture::Fixture::routed(settings(&TOOLS), question("other")).session;
    again = Session::new(again.settings().clone(), std::sync::Arc::default());
    fixture.session().in_order().for_each(|record| again.apply(std::sync::Arc::clone(record)));
    assert_eq!(React.decide(&again, &turn(Name::iteration(2))), fixture.decide(2));
}

#[test]
fn a_kept_session_goes_on_where_it_stood_and_only_if_all_of_it_was_committed() {
    let mut fixture = Fixture::new();
    fixture.play(1, SEARCH, "a fact");
    let kept = fixture.session().clone();
    fixture.reply(2, SEARCH);
    let records: Vec<_> = fixture.session().in_order().cloned().collect();
    assert!(kept.is_beginning_of(&records));
    let kept = kept.with_all(&records);
    assert_eq!(React.decide(&kept, &turn(Name::iteration(2))), fixture.decide(2));
    assert_eq!(kept.usage(), fixture.session().usage());
    assert_eq!(kept.tips(), fixture.session().tips());
    // The same record, and not the one that is in the journal.
    let mut uncommitted = Session::new(kept.settings().clone(), std::sync::Arc::default()).with_all(&records[..2]);
    uncommitted.apply(std::sync::Arc::new((*records[2]).clone()));
    assert!(!uncommitted.is_beginning_of(&records));
    assert!(!kept.is_beginning_of(&records[..2]));
    assert!(!Session::new(kept.settings().clone(), std::sync::Arc::default()).is_beginning_of(&records));
}

#[test]
fn an_answer_cites_the_observations_that_it_names_by_number() {
    let mut fixture = Fixture::new();
    fixture.play(1, SEARCH, "moss is green");
    fixture.play(2, "Thought: I wonder.", "");
    fixture.reply(3, "Thought: enough\nFinal Answer: It is green [1], and not red [2] [7].");
    let replied = fixture.session().replied(&Name::iteration(3)).unwrap();
    let cited: Vec<_> = replied.citations.iter().map(|citation| citation.index).collect();
    assert_eq!(cited, [1], "what the model was told is no finding, and there is no seventh");
    let mut older = Fixture::of_revision(1);
    older.play(1, SEARCH, "moss is green");
    older.reply(2, "Final Answer: It is green [1].");
    assert!(older.session().replied(&Name::iteration(2)).unwrap().citations.is_empty(), "by older rules");
}
