//! Each test folds records and reads the orders: no runtime, no clock.

use super::*;
use crate::fixture::{Fixture, asked, question, settings, turn};
use trellis_domain::Timestamp;
use trellis_domain::decision::DecisionKind;
use trellis_domain::fan_out::{FannedOut, JoinCause, Joined};
use trellis_domain::record::{Accepted, Body, Record};

const ITEMS: [(&str, &str, &str); 4] = [
    ("tool", "search", r#"{"type": "text-completion", "name": "search", "description": "looks things up"}"#),
    ("agent-pattern", "dispatch", "{}"),
    ("agent-pattern", "react", r#"{"name": "react", "description": "thinks"}"#),
    ("agent-pattern", "plan-then-execute", "{}"),
];

/// A dispatch, and the records of the agent that it was forwarded to.
struct Desk(Fixture, Vec<Record>);

impl Desk {
    fn new() -> Self {
        let accepted = Accepted { pattern: Some(Dispatch::NAME.into()), ..question("Who owns X?") };
        Self(Fixture::routed(settings(&ITEMS), accepted), Vec::new())
    }

    fn orders(&self) -> Vec<Order> {
        Dispatch.decide(&self.0.session, &turn(Name::iteration(1)))
    }

    fn says(&mut self, text: &str) -> &mut Self {
        let orders = self.orders();
        self.0.reply(&orders, text);
        self
    }

    #[track_caller]
    fn sent_out(&self) -> FannedOut {
        match self.orders().pop() {
            Some(Order::FanOut(fan_out)) => *fan_out,
            other => panic!("nobody is sent out: {other:?}"),
        }
    }

    fn ending(&self, name: Name) -> Ending {
        match Dispatch.decide(&self.0.session, &turn(name)).pop() {
            Some(Order::End(ending)) => ending,
            other => panic!("it does not end: {other:?}"),
        }
    }

    /// Records the fan-out and a join in which the agent ended like this.
    fn joined(&mut self, said: Result<&str, &str>) -> &mut Self {
        let fan_out = self.sent_out();
        let (round, correlation) = (fan_out.round, fan_out.correlation.clone());
        self.0.record(Name::fan_out(1), Body::FannedOut(fan_out.clone()));
        let (member, records) = Fixture::heard(&self.0.session, &fan_out, 0, said);
        self.1.extend(records);
        let joined = Joined { round, correlation, cause: JoinCause::AllEnded, members: vec![member], outage_ms: 0 };
        self.0.record(Name::join(1), Body::Joined(joined));
        self
    }

    fn end(&mut self, name: Name) -> &mut Self {
        let ended = self.ending(name).into_ended(&self.0.session, Timestamp::from_micros(0));
        self.0.record(Name::end(), Body::from(ended));
        self
    }

    fn records(self) -> Vec<Record> {
        self.0.records().into_iter().chain(self.1).collect()
    }
}

const TO_TOOL: &str = r#"{"choice": "search", "arguments": {"question": "X"}, "question": null, "reason": "a fact"}"#;
const TO_AGENT: &str = r#"{"choice": "agent:react", "arguments": {}, "question": "Who owns X now?", "reason": "open"}"#;

/// A call with a rejected reply before it, one whose model is dead, and a question that an agent answers.
pub(super) fn samples() -> Vec<Vec<Record>> {
    let mut call = Desk::new();
    call.says("nobody").says(TO_TOOL);
    call.0.observe(Name::observation(1), Ok("X belongs to Z."), None);
    call.end(Name::iteration(1));
    let mut dead = Desk::new();
    let orders = dead.orders();
    dead.0.fail(&orders, "no model");
    dead.end(Name::iteration(1));
    let mut agent = Desk::new();
    agent.says(TO_AGENT).joined(Ok("Z.")).end(forwarded());
    vec![call.records(), dead.records(), agent.records()]
}

#[test]
fn the_set_holds_the_tools_and_the_agents_and_says_what_it_leaves_out() {
    let desk = Desk::new();
    let orders = desk.orders();
    let (name, prompt) = asked(&orders);
    assert_eq!((name.as_str(), prompt.id), ("i1", "dispatch-choose"));
    assert_eq!(prompt.offered[0].options, ["search", "agent:plan-then-execute", "agent:react"]);
    let excluded: Vec<_> = prompt.offered[0].excluded.iter().map(|option| option.name.as_str()).collect();
    assert_eq!(excluded, ["agent:dispatch"]);
    assert_eq!(prompt.variables["agents"][1]["description"], "thinks");
}

#[test]
fn a_tools_result_is_the_answer() {
    let mut desk = Desk::new();
    desk.says(TO_TOOL);
    assert!(matches!(&desk.orders()[..], [Order::Perform(_, Effect::CallTool { tool, .. })] if tool == "search"));
    desk.0.observe(Name::observation(1), Ok("X belongs to Z."), None);
    assert_eq!(desk.ending(Name::iteration(1)), Ending::answered(Termination::FinalAnswer, "X belongs to Z."));
    let mut broken = Desk::new();
    broken.says(TO_TOOL);
    broken.0.observe(Name::observation(1), Err("no network"), None);
    assert_eq!(broken.ending(Name::iteration(1)), Ending::failed(Termination::Error, "no network"));
}

#[test]
fn an_agents_answer_is_the_answer() {
    let mut desk = Desk::new();
    desk.says(TO_AGENT);
    let sent_out = desk.sent_out();
    assert_eq!((sent_out.goals[0].goal.as_str(), sent_out.goals[0].pattern.as_str()), ("Who owns X now?", "react"));
    assert_eq!(sent_out.decisions[0].chosen, ["agent:react"]);
    assert_eq!(sent_out.decisions[0].options.len(), 3, "the whole set that it was chosen from");
    desk.joined(Ok("Z."));
    assert_eq!(Dispatch.after_join(&desk.0.session, 1), forwarded());
    assert_eq!(desk.ending(forwarded()), Ending::answered(Termination::SubagentsComplete, "Z."));
    let mut lost = Desk::new();
    lost.says(TO_AGENT).joined(Err("it broke"));
    let ending = lost.ending(forwarded());
    assert_eq!((ending.error.as_deref(), ending.missing.as_slice()), (Some("it broke"), &[0][..]));
}

#[test]
fn an_agent_may_be_named_without_its_mark() {
    for reply in ["react", r#"{"agent": "React"}"#, r#"[{"choice": "agent:react", "arguments": {}}]"#] {
        let mut desk = Desk::new();
        desk.says(reply);
        let goal = desk.sent_out().goals.remove(0);
        assert_eq!((goal.pattern.as_str(), goal.goal.as_str()), ("react", "Who owns X?"), "{reply}");
    }
}

#[test]
fn what_is_outside_the_set_is_asked_again_and_then_goes_to_the_usual_agent() {
    let mut desk = Desk::new();
    desk.says(r#"{"choice": "oracle"}"#);
    let orders = desk.orders();
    let (name, prompt) = asked(&orders);
    assert_eq!(name.as_str(), "i1/retry");
    assert!(prompt.variables["problem"].as_str().unwrap().starts_with("`oracle` is not one of search"));
    desk.says("no idea");
    let sent_out = desk.sent_out();
    assert_eq!(sent_out.goals[0].pattern, "react");
    assert!(sent_out.decisions.iter().all(|decision| decision.decided_by != DecidedBy::Model));
}

#[test]
fn arguments_that_are_none_and_a_dead_model_are_told() {
    let mut desk = Desk::new();
    desk.says(r#"{"choice": "search", "arguments": "X"}"#);
    assert_eq!(asked(&desk.orders()).0.as_str(), "i1/retry");
    let mut dead = Desk::new();
    let orders = dead.orders();
    dead.0.fail(&orders, "no model");
    assert_eq!(dead.ending(Name::iteration(1)), Ending::failed(Termination::Error, "no model"));
}

#[test]
fn a_tool_that_leaves_nothing_to_choose_is_still_the_answer() {
    let tool = r#"{"type": "text-completion", "name": "search", "state": "done", "applicable-states": ["undefined"]}"#;
    let limits = trellis_domain::limits::SomeLimits { max_depth: Some(0), ..Default::default() };
    let state = "undefined".to_owned();
    let accepted = Accepted { pattern: Some(Dispatch::NAME.into()), limits, state, ..question("Who?") };
    let mut desk = Desk(Fixture::routed(settings(&[("tool", "search", tool), ITEMS[1]]), accepted), Vec::new());
    desk.says(TO_TOOL);
    desk.0.observe(Name::observation(1), Ok("X belongs to Z."), Some("done"));
    assert!(prompt::choice(&desk.0.session).options.is_empty());
    assert_eq!(desk.ending(Name::iteration(1)), Ending::answered(Termination::FinalAnswer, "X belongs to Z."));
}

#[test]
fn a_tool_that_is_called_like_an_agent_is_left_out_with_the_reason() {
    let tool = ("tool", "odd", r#"{"type": "text-completion", "name": "agent:odd", "description": "odd"}"#);
    let accepted = Accepted { pattern: Some(Dispatch::NAME.into()), ..question("Who?") };
    let fixture = Fixture::routed(settings(&[tool, ITEMS[0], ITEMS[1], ITEMS[2]]), accepted);
    let orders = Dispatch.decide(&fixture.session, &turn(Name::iteration(1)));
    let (_, prompt) = asked(&orders);
    assert_eq!(prompt.offered[0].options, ["search", "agent:react"]);
    assert_eq!(prompt.offered[0].excluded[0].name, "agent:odd");
    assert!(prompt.offered[0].excluded[0].reason.contains("as those of agents do"));
    assert_eq!(prompt.variables["tools"].as_array().unwrap().len(), 1);
}

#[test]
fn the_agents_pattern_is_chosen_out_of_the_set_that_was_offered() {
    let mut desk = Desk::new();
    desk.says(TO_AGENT);
    let decisions = desk.sent_out().decisions;
    let set = decisions.iter().find(|decision| decision.kind == DecisionKind::SubagentPattern).unwrap();
    assert_eq!(set.options, ["plan-then-execute", "react"]);
    assert_eq!(set.excluded[0].reason, "it would choose once more");
}

#[test]
fn a_question_that_is_cut_is_noted() {
    let mut desk = Desk::new();
    let long = "é".repeat(9_000);
    desk.says(&serde_json::json!({"choice": "agent:react", "arguments": {}, "question": long}).to_string());
    assert_eq!(desk.sent_out().goals[0].goal.chars().count(), 8_000);
    let replied = desk.0.session.replied(&Name::iteration(1)).unwrap();
    assert_eq!(replied.repairs, ["the question of 9000 characters was cut to 8000"]);
}

#[test]
fn without_anything_to_choose_nobody_is_asked() {
    let limits = trellis_domain::limits::SomeLimits { max_depth: Some(0), ..Default::default() };
    let accepted = Accepted { pattern: Some(Dispatch::NAME.into()), limits, ..question("Who?") };
    let fixture = Fixture::routed(settings(&ITEMS[1..]), accepted);
    let orders = Dispatch.decide(&fixture.session, &turn(Name::iteration(1)));
    assert!(matches!(&orders[..], [Order::End(Ending { reason: Termination::Error, .. })]), "{orders:?}");
}
