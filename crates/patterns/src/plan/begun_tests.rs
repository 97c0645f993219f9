//! Plans that others have begun go on where they stand.

use super::fixture_tests::{Planning, TOOLS};
use super::{Plan, PlanState, StepStatus};
use crate::contract::Pattern;
use crate::fixture::question;
use crate::plan::PlanNames;
use crate::synthesis::SynthesisName;
use serde_json::json;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::StepStatus::{Completed, Failed, Pending, Revised, Running};
use trellis_domain::message::{self, AgentStep, PlanStep};
use trellis_domain::record::{Accepted, Name};
use trellis_domain::run::Termination;

const NONE: [&str; 0] = [];

fn step(goal: &str, status: message::StepStatus, result: &str, depends_on: &[u32]) -> PlanStep {
    PlanStep {
        goal: goal.to_owned(),
        tool_hint: "sum".to_owned(),
        depends_on: depends_on.to_vec(),
        status,
        result: result.to_owned(),
    }
}

/// A question with the history of whoever has begun it.
fn asked(plan: Vec<PlanStep>) -> Accepted {
    let taken = AgentStep { action: "sum".into(), observation: "o".into(), plan, ..AgentStep::default() };
    Accepted { history: vec![taken], ..question("why?") }
}

fn begun(plan: Vec<PlanStep>) -> Planning {
    Planning::of(&TOOLS, asked(plan))
}

fn causes(planning: &Planning, name: &Name) -> Vec<String> {
    Plan.causes(planning.session(), name).iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_done_is_not_done_again_and_the_rest_is() {
    let mut planning = begun(vec![
        step("find", Completed, "found", &[]),
        step("compare", Pending, "", &[0]),
        step("guess", Revised, "", &[7]),
        step("weigh", Running, "half of it", &[]),
    ]);
    assert_eq!(planning.opened(&Name::plan(0)), ["step/1", "step/3"]);
    let results = planning.variable(&Name::step(1), "previous_results");
    assert_eq!(results, json!([{"index": 0, "goal": "find", "result": "found"}]));
    assert_eq!(planning.variable(&Name::step(1), "tool_hint"), "sum");
    assert_eq!(planning.variable(&Name::step(1), "context"), "Be brief.", "the steps have a place of their own");
    planning.run(3, Ok("heavy"));
    assert_eq!(planning.opened(&Name::step(3)), NONE);
    planning.run(1, Ok("alike"));
    assert_eq!(planning.opened(&Name::step(1)), ["synthesis"]);
    assert_eq!(
        planning.variable(&Name::synthesis(), "steps"),
        json!([
            {"index": 0, "goal": "find", "status": "completed", "result": "found"},
            {"index": 1, "goal": "compare", "status": "completed", "result": "alike"},
            {"index": 3, "goal": "weigh", "status": "completed", "result": "heavy"},
        ])
    );
    planning.reply(&Name::synthesis(), "Found [step 0], alike [step 1].");
    let ending = planning.ending(&Name::synthesis());
    assert_eq!((ending.reason, ending.missing), (Termination::PlanComplete, Vec::new()));
    let cited: Vec<_> = planning.replied(&Name::synthesis()).citations.iter().map(|citation| citation.index).collect();
    assert_eq!(cited, [0, 1], "steps of others are cited like our own");
}

#[test]
fn a_plan_that_is_done_is_answered_at_once() {
    let planning = begun(vec![step("find", Completed, "found", &[])]);
    assert_eq!(planning.opened(&Name::plan(0)), ["synthesis"]);
    assert_eq!(planning.variable(&Name::synthesis(), "steps")[0]["result"], "found");
}

#[test]
fn what_others_failed_at_is_looked_at_before_anything_builds_on_it() {
    let mut planning = begun(vec![
        step("find", Failed, "no network", &[]),
        step("look up", Failed, "", &[]),
        step("compare", Pending, "", &[0]),
        step("weigh", Pending, "", &[]),
    ]);
    assert_eq!(planning.opened(&Name::plan(0)), ["step/3"]);
    planning.run(3, Ok("heavy"));
    assert_eq!(planning.opened(&Name::step(3)), ["plan/1"]);
    let steps = planning.variable(&Name::plan(1), "steps");
    assert_eq!((&steps[0]["status"], &steps[0]["result"]), (&json!("failed"), &json!("no network")));
    assert_eq!(steps[1]["result"], "it failed, and nobody says why");
    assert_eq!(planning.variable(&Name::plan(1), "next_index"), 4);
    planning.replies(&Name::plan(1), json!({"decision": "keep", "reason": "it does not matter"}));
    assert_eq!(planning.opened(&Name::plan(1)), ["step/2"]);
    assert_eq!(causes(&planning, &Name::step(2)), ["pattern-decision", "plan/1"]);
    planning.run(2, Ok("alike"));
    planning.reply(&Name::synthesis(), "So.");
    let ending = planning.ending(&Name::synthesis());
    assert_eq!((ending.reason, ending.missing), (Termination::PlanPartial, vec![0, 1]));
}

#[test]
fn steps_follow_from_what_the_session_began_with() {
    let mut planning = begun(vec![
        step("find", Completed, "found", &[]),
        step("compare", Pending, "", &[0]),
        step("weigh", Pending, "", &[0, 1]),
    ]);
    assert_eq!(causes(&planning, &Name::step(1)), ["pattern-decision"]);
    planning.run(1, Ok("alike"));
    assert_eq!(causes(&planning, &Name::step(2)), ["pattern-decision", "step/1/result"]);
}

#[test]
fn a_plan_that_cannot_go_on_is_made_again_with_what_came_of_it_as_context() {
    let usable = || vec![step("find", Completed, "found", &[]), step("compare", Pending, "", &[0])];
    let broken = vec![step("find", Completed, "found", &[]), step("compare", Pending, "", &[7])];
    for accepted in [asked(broken), Accepted { revision: 7, ..asked(usable()) }] {
        let planning = Planning::of(&TOOLS, accepted);
        assert_eq!(planning.prompt(&Name::plan(0)).id, "plan-create");
        let context = planning.variable(&Name::plan(0), "context");
        assert!(context.as_str().is_some_and(|context| context.contains("found")), "{context}");
    }
    assert_eq!(begun(usable()).opened(&Name::plan(0)), ["step/1"]);
}

#[test]
fn a_plan_of_others_has_no_more_steps_than_one_that_is_made_here() {
    let plan = vec![
        step("find", Completed, "found", &[]),
        step("compare", Pending, "", &[0]),
        step("weigh", Pending, "", &[]),
        step("judge", Pending, "", &[2]),
    ];
    let limits = SomeLimits { max_plan_steps: Some(2), ..SomeLimits::default() };
    let mut planning = Planning::of(&TOOLS, Accepted { limits, ..asked(plan) });
    assert_eq!(planning.opened(&Name::plan(0)), ["step/1"]);
    planning.run(1, Ok("alike"));
    assert_eq!(planning.opened(&Name::step(1)), ["synthesis"]);
    let too_many = "not run, because a plan may have 2 steps; raise max-plan-steps";
    assert_eq!(
        planning.variable(&Name::synthesis(), "missing"),
        json!([{"index": 2, "goal": "weigh", "reason": too_many}, {"index": 3, "goal": "judge", "reason": too_many}])
    );
    planning.reply(&Name::synthesis(), "So.");
    let ending = planning.ending(&Name::synthesis());
    assert_eq!((ending.reason, ending.missing), (Termination::PlanPartial, vec![2, 3]));
}

#[test]
fn what_a_step_builds_on_counts_once() {
    let mut planning = begun(vec![step("find", Pending, "", &[]), step("compare", Pending, "", &[0, 0])]);
    planning.run(0, Ok("found"));
    assert_eq!(causes(&planning, &Name::step(1)), ["pattern-decision", "step/0/result"]);
}

#[test]
fn every_step_of_others_has_the_number_of_its_place() {
    let planning = begun(vec![step("a", Revised, "", &[]), step("b", Completed, "done", &[])]);
    let state = PlanState::of(planning.session());
    let steps: Vec<_> = state.steps.iter().map(|step| (step.number, step.status, step.result)).collect();
    assert_eq!(steps, [(0, StepStatus::Revised, ""), (1, StepStatus::Completed, "done")]);
    assert_eq!((state.plans, state.next_number()), (1, 2));
}
