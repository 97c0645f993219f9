//! Plans as neighbours see them.

use super::*;
use crate::contract::{Effect, Order};
use crate::fixture::{Fixture, question, settings, turn};
use crate::plan::PlanNames;
use crate::registry::pattern;
use crate::synthesis::SynthesisName;
use serde_json::{Value, json};
use trellis_domain::broker;
use trellis_domain::message::{PlanStep, StepStatus};

const PLAN: &str = r#"{"steps": [
    {"goal": "find", "tool_hint": "search"},
    {"goal": "look up"},
    {"goal": "compare", "depends_on": [0, 1]}
]}"#;
const TOOL: (&str, &str, &str) = ("tool", "search", r#"{"type":"text-completion"}"#);

fn planned() -> Fixture {
    let accepted = Accepted { pattern: Some("plan-then-execute".into()), ..question("why?") };
    let mut fixture = Fixture::routed(settings(&[TOOL]), accepted);
    fixture.reply(&decide(&fixture, &Name::plan(0)), PLAN);
    fixture
}

fn decide(fixture: &Fixture, name: &Name) -> Vec<Order> {
    pattern(&"plan-then-execute".into()).unwrap().decide(&fixture.session, &turn(name.clone()))
}

/// Plays a step: the model's choice, then the tool that it calls, if it calls one.
fn play(fixture: &mut Fixture, number: u32, text: &str, result: Result<&str, &str>) {
    let name = Name::step(number);
    fixture.reply(&decide(fixture, &name), text);
    if let [Order::Perform(name, Effect::CallTool { .. })] = decide(fixture, &name).as_slice() {
        fixture.observe(name.clone(), result, None);
    }
}

const SEARCH: &str = r#"{"tool": "search", "arguments": {"question": "x"}}"#;

#[track_caller]
fn sent(fixture: &Fixture, name: &Name) -> AgentRequest {
    let request = request(&fixture.session, name).expect("the turn has a request");
    let read: AgentRequest = serde_json::from_str(&broker::request(&request).to_string()).unwrap();
    assert_eq!(read, request, "nothing is lost on the way");
    assert_eq!(turn_of(&read) == WireTurn::New, read.history.is_empty());
    read
}

fn statuses(request: &AgentRequest) -> Vec<StepStatus> {
    request.history.last().map(|step| step.plan.iter().map(|step| step.status).collect()).unwrap_or_default()
}

use StepStatus::{Completed, Failed, Pending, Revised, Running};

#[test]
fn a_new_plan_is_the_first_step_of_the_history_and_nothing_of_it_is_done() {
    let fixture = planned();
    assert_eq!(sent(&fixture, &Name::plan(0)).pattern, "plan-then-execute");
    let sent = sent(&fixture, &Name::step(0));
    let [step] = sent.history.as_slice() else { panic!("{:?}", sent.history) };
    assert_eq!((step.step_type.as_str(), step.action.as_str()), ("plan", "plan"));
    let steps: Value = serde_json::from_str(&step.observation).unwrap();
    assert_eq!(
        steps,
        json!([
            {"goal": "find", "tool_hint": "search", "depends_on": []},
            {"goal": "look up", "tool_hint": "", "depends_on": []},
            {"goal": "compare", "tool_hint": "", "depends_on": [0, 1]},
        ])
    );
    let plan: Vec<_> =
        step.plan.iter().map(|step| (step.goal.as_str(), step.tool_hint.as_str(), step.result.as_str())).collect();
    assert_eq!(plan, [("find", "search", ""), ("look up", "", ""), ("compare", "", "")]);
    assert_eq!(step.plan[2].depends_on, [0, 1]);
}

#[test]
fn before_there_is_a_plan_there_is_no_history() {
    let accepted = Accepted { pattern: Some("plan-then-execute".into()), ..question("why?") };
    let fixture = Fixture::routed(settings(&[TOOL]), accepted);
    assert!(sent(&fixture, &Name::plan(0)).history.is_empty());
}

#[test]
fn a_step_that_others_are_at_is_not_pending_for_this_turn() {
    let fixture = planned();
    assert_eq!(statuses(&sent(&fixture, &Name::step(0))), [Pending, Running, Pending]);
    assert_eq!(statuses(&sent(&fixture, &Name::step(1))), [Running, Pending, Pending]);
}

#[test]
fn each_finished_step_is_told_with_the_plan_as_it_then_stood() {
    let mut fixture = planned();
    play(&mut fixture, 1, SEARCH, Ok("found 1"));
    play(&mut fixture, 0, r#"{"tool": "none", "answer": "known"}"#, Ok(""));
    let sent = sent(&fixture, &Name::step(2));
    let [_, first, second] = sent.history.as_slice() else { panic!("{:?}", sent.history) };
    assert_eq!(
        (first.step_type.as_str(), first.action.as_str(), first.observation.as_str()),
        ("execute", "search", "found 1")
    );
    assert_eq!(first.arguments["question"], "x");
    assert_eq!(first.plan.iter().map(|step| step.status).collect::<Vec<_>>(), [Pending, Completed, Pending]);
    assert_eq!((second.action.as_str(), second.observation.as_str()), ("none", "known"));
    assert_eq!(statuses(&sent), [Completed, Completed, Pending], "what is left is what this turn does");
    assert_eq!((second.plan[0].result.as_str(), second.plan[1].result.as_str()), ("known", "found 1"));
}

#[test]
fn the_synthesis_finds_no_pending_step() {
    let mut fixture = planned();
    play(&mut fixture, 0, SEARCH, Ok("found 0"));
    play(&mut fixture, 1, SEARCH, Err("no network"));
    assert_eq!(statuses(&sent(&fixture, &Name::plan(1))), [Completed, Failed, Pending]);
    let synthesis = sent(&fixture, &Name::synthesis());
    assert_eq!(statuses(&synthesis), [Completed, Failed, Failed]);
    let plan = &synthesis.history.last().unwrap().plan;
    assert!(plan[2].result.starts_with("not run"), "{:?}", plan[2]);
}

#[test]
fn a_revision_is_a_plan_again_and_steps_keep_their_numbers() {
    let mut fixture = planned();
    play(&mut fixture, 0, SEARCH, Ok("found 0"));
    play(&mut fixture, 1, SEARCH, Err("no network"));
    let revision = r#"{"decision": "revise", "reason": "no network", "steps": [{"goal": "guess", "depends_on": [0]}]}"#;
    fixture.reply(&decide(&fixture, &Name::plan(1)), revision);
    let sent = sent(&fixture, &Name::step(3));
    let kinds: Vec<_> = sent.history.iter().map(|step| step.step_type.as_str()).collect();
    assert_eq!(kinds, ["plan", "execute", "execute", "plan"]);
    assert_eq!(statuses(&sent), [Completed, Failed, Revised, Pending]);
    let steps: Value = serde_json::from_str(&sent.history[3].observation).unwrap();
    assert_eq!(steps, json!([{"goal": "guess", "tool_hint": "", "depends_on": [0]}]));
}

#[test]
fn a_plan_of_others_is_told_with_all_that_they_and_we_have_done() {
    let step = |goal: &str, status: StepStatus, result: &str| PlanStep {
        goal: goal.to_owned(),
        tool_hint: String::new(),
        depends_on: Vec::new(),
        status,
        result: result.to_owned(),
    };
    let plan = vec![step("find", Completed, "found"), step("look up", Pending, ""), step("compare", Pending, "")];
    let theirs = AgentStep { step_type: "execute".into(), plan, ..AgentStep::default() };
    let pattern = Some("plan-then-execute".into());
    let accepted = Accepted { pattern, history: vec![theirs.clone()], ..question("why?") };
    let mut fixture = Fixture::routed(settings(&[TOOL]), accepted);
    assert_eq!(statuses(&sent(&fixture, &Name::step(1))), [Completed, Pending, Running]);
    play(&mut fixture, 1, SEARCH, Ok("looked up"));
    play(&mut fixture, 2, SEARCH, Ok("compared"));
    let sent = sent(&fixture, &Name::synthesis());
    let kinds: Vec<_> = sent.history.iter().map(|step| step.step_type.as_str()).collect();
    assert_eq!(kinds, ["execute", "plan", "execute", "execute"], "what they have done is told once");
    assert_eq!(sent.history[0], theirs);
    let results: Vec<_> = sent.history[3].plan.iter().map(|step| step.result.as_str()).collect();
    assert_eq!(results, ["found", "looked up", "compared"]);
}
