//! How a plan goes from question to answer, and what happens on the way when something fails.

use super::fixture_tests::Planning;
use super::{Plan, PlanState, StepStatus};
use crate::contract::{Effect, Order, Pattern};
use crate::plan::PlanNames;
use crate::plan::{DIRECT_STEP, PlannedStep};
use crate::react::IterationNames;
use crate::synthesis::SynthesisName;
use serde_json::{Map, json};
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::{Name, Reading};
use trellis_domain::run::Termination;

const NONE: [&str; 0] = [];

fn at_most(max_replans: u32) -> Planning {
    Planning::with(SomeLimits { max_replans: Some(max_replans), ..SomeLimits::default() })
}

fn statuses(planning: &Planning) -> Vec<StepStatus> {
    PlanState::of(planning.session()).steps.iter().map(|step| step.status).collect()
}

#[test]
fn a_session_begins_with_its_plan() {
    assert_eq!(Plan.first_turn(), Name::plan(0));
    assert_eq!(Planning::new().prompt(&Name::plan(0)).id, "plan-create");
}

#[test]
fn a_plan_opens_the_steps_that_wait_for_nothing() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[0], &[]]);
    assert_eq!(planning.opened(&Name::plan(0)), ["step/0", "step/2"]);
}

#[test]
fn a_step_is_opened_by_the_last_of_those_it_depends_on() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[], &[0, 1]]);
    planning.run(1, Ok("b"));
    assert_eq!(planning.opened(&Name::step(1)), NONE);
    planning.run(0, Ok("a"));
    assert_eq!(planning.opened(&Name::step(0)), ["step/2"]);
    assert_eq!(planning.opened(&Name::step(1)), NONE, "what came later changes nothing about a turn");
}

#[test]
fn the_place_of_a_step_in_the_list_does_not_decide_when_it_starts() {
    let mut planning = Planning::new();
    planning.plan(&[&[2], &[], &[]]);
    assert_eq!(planning.opened(&Name::plan(0)), ["step/1", "step/2"]);
    planning.run(2, Ok("c"));
    assert_eq!(planning.opened(&Name::step(2)), ["step/0"]);
}

#[test]
fn a_step_calls_one_tool_once_and_its_result_closes_the_turn() {
    let mut planning = Planning::new();
    planning.plan(&[&[]]);
    planning.reply(&Name::step(0), r#"{"tool": "sum", "arguments": {"question": "1+1"}}"#);
    let arguments: Map<_, _> = serde_json::from_str(r#"{"question": "1+1"}"#).unwrap();
    let call = Effect::CallTool { tool: "sum".into(), arguments };
    assert_eq!(planning.decide(&Name::step(0)), [Order::Perform(Name::step_result(0), call)]);
    planning.observe(0, Ok("2"), None);
    assert_eq!(planning.opened(&Name::step(0)), ["synthesis"]);
}

#[test]
fn a_hint_is_advice_and_a_step_may_choose_otherwise() {
    for (reply, called) in
        [(r#"{"tool": "sum", "arguments": {}}"#, true), (r#"{"tool": "none", "answer": "a"}"#, false)]
    {
        let mut planning = Planning::new();
        planning.replies(&Name::plan(0), json!({"steps": [{"goal": "find it", "tool_hint": "search"}]}));
        assert_eq!(planning.variable(&Name::step(0), "tool_hint"), "search");
        assert_eq!(
            planning.prompt(&Name::step(0)).offered[0].options,
            ["search", "sum", "none"],
            "the set is not narrowed"
        );
        planning.reply(&Name::step(0), reply);
        let orders = planning.decide(&Name::step(0));
        let calls = matches!(orders.as_slice(), [Order::Perform(_, Effect::CallTool { tool, .. })] if tool == "sum");
        assert_eq!(calls, called, "{orders:?}");
    }
}

#[test]
fn a_step_without_a_tool_has_its_answer_as_result() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[0]]);
    planning.reply(&Name::step(0), r#"{"tool": "none", "answer": "known already"}"#);
    assert_eq!(planning.opened(&Name::step(0)), ["step/1"]);
    assert!(!planning.session().has(&Name::step_result(0)));
    assert_eq!(planning.variable(&Name::step(1), "previous_results")[0]["result"], "known already");
}

#[test]
fn no_more_steps_run_at_once_than_allowed() {
    let mut planning = Planning::with(SomeLimits { steps_at_once: Some(2), ..SomeLimits::default() });
    planning.plan(&[&[], &[], &[], &[]]);
    assert_eq!(planning.opened(&Name::plan(0)), ["step/0", "step/1"]);
    planning.run(1, Ok("b"));
    assert_eq!(planning.opened(&Name::step(1)), ["step/2"]);
    planning.run(0, Ok("a"));
    assert_eq!(planning.opened(&Name::step(0)), ["step/3"]);
}

#[test]
fn a_limit_of_no_steps_at_once_still_lets_one_run() {
    let mut planning = Planning::with(SomeLimits { steps_at_once: Some(0), ..SomeLimits::default() });
    planning.plan(&[&[], &[]]);
    assert_eq!(planning.opened(&Name::plan(0)), ["step/0"]);
}

#[test]
fn the_last_step_opens_the_synthesis_and_the_answer_ends_the_session() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[]]);
    planning.run(0, Ok("a"));
    assert_eq!(planning.opened(&Name::step(0)), NONE);
    planning.run(1, Ok("b"));
    assert_eq!(planning.opened(&Name::step(1)), ["synthesis"]);
    planning.reply(&Name::synthesis(), "Because of a [step 0] and b [step 1].");
    let ending = planning.ending(&Name::synthesis());
    assert_eq!(ending.reason, Termination::PlanComplete);
    assert_eq!(ending.answer, "Because of a [step 0] and b [step 1].");
    assert_eq!((ending.error, ending.missing), (None, Vec::new()));
    let cited: Vec<_> = planning.replied(&Name::synthesis()).citations.iter().map(|citation| citation.index).collect();
    assert_eq!(cited, [0, 1]);
}

#[test]
fn a_plan_of_fifty_steps_is_not_stopped_by_the_iterations_of_another_pattern() {
    let mut planning = Planning::with(SomeLimits { max_iterations: Some(1), ..SomeLimits::default() });
    let chain: Vec<Vec<u32>> = (0..50_u32).map(|number| number.checked_sub(1).into_iter().collect()).collect();
    planning.plan(&chain.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for number in 0..50 {
        planning.run(number, Ok("done"));
    }
    assert_eq!(planning.opened(&Name::step(49)), ["synthesis"]);
}

#[test]
fn a_plan_that_cannot_be_read_is_asked_for_again_with_the_reason() {
    let mut planning = Planning::new();
    planning.reply(&Name::plan(0), "First I would look around.");
    assert!(planning.variable(&Name::plan(0), "problem").as_str().unwrap().contains("it is not JSON"));
    planning.plan(&[&[]]);
    assert!(planning.session().has(&Name::plan(0).retry()));
    assert_eq!(planning.opened(&Name::plan(0)), ["step/0"]);
}

#[test]
fn two_unreadable_plans_give_a_plan_of_one_step_that_answers_directly() {
    let mut planning = Planning::new();
    planning.reply(&Name::plan(0), "no");
    planning.reply(&Name::plan(0), "[]");
    assert_eq!(planning.opened(&Name::plan(0)), ["step/0"]);
    let state = PlanState::of(planning.session());
    let [step] = state.steps.as_slice() else { panic!("{state:?}") };
    let direct = PlannedStep { goal: DIRECT_STEP.to_owned(), ..PlannedStep::default() };
    let PlannedStep { goal, tool_hint, depends_on } = direct;
    assert_eq!((&step.goal, &step.tool_hint, &step.depends_on), (&goal, &tool_hint, &depends_on));
}

#[test]
fn a_planner_that_cannot_be_reached_ends_the_session_with_the_reason() {
    let mut planning = Planning::new();
    planning.fail(&Name::plan(0), "no provider");
    let ending = planning.ending(&Name::plan(0));
    assert_eq!((ending.reason, ending.error.as_deref()), (Termination::Error, Some("no provider")));
}

#[test]
fn a_tool_error_fails_the_step_and_asks_the_planner() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[0]]);
    planning.run(0, Err("no network"));
    assert_eq!(planning.opened(&Name::step(0)), ["plan/1"]);
    assert_eq!(statuses(&planning), [StepStatus::Failed, StepStatus::Pending]);
}

#[test]
fn a_surprise_asks_the_planner() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[0]]);
    planning.reply(&Name::step(0), r#"{"answer": "the company does not exist", "surprising": true}"#);
    assert_eq!(planning.opened(&Name::step(0)), ["plan/1"]);
    planning.reply(&Name::plan(1), r#"{"decision": "keep", "reason": "no matter"}"#);
    assert_eq!(planning.opened(&Name::plan(1)), ["step/1"]);
}

#[test]
fn a_failure_holds_back_what_builds_on_it_and_the_planner_waits_for_the_rest() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[], &[1], &[0]]);
    planning.run(0, Err("no network"));
    assert_eq!(planning.opened(&Name::step(0)), NONE);
    planning.run(1, Ok("b"));
    assert_eq!(
        planning.opened(&Name::step(1)),
        ["step/2"],
        "it does not build on the failure, in whatever order they end"
    );
    planning.run(2, Ok("c"));
    assert_eq!(planning.opened(&Name::step(2)), ["plan/1"]);
}

#[test]
fn a_surprise_holds_back_what_builds_on_it_only() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[], &[0], &[1]]);
    planning.reply(&Name::step(0), r#"{"answer": "it does not exist", "surprising": true}"#);
    assert_eq!(planning.opened(&Name::step(0)), NONE);
    planning.run(1, Ok("b"));
    assert_eq!(planning.opened(&Name::step(1)), ["step/3"]);
}

#[test]
fn a_kept_plan_accepts_the_failure_and_its_dependents_see_the_error() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[0]]);
    planning.run(0, Err("no network"));
    planning.reply(&Name::plan(1), r#"{"decision": "keep", "reason": "go on without"}"#);
    assert_eq!(planning.opened(&Name::plan(1)), ["step/1"]);
    assert_eq!(
        planning.variable(&Name::step(1), "previous_results"),
        json!([{"index": 0, "goal": "goal 0", "result": "Error: no network"}])
    );
    planning.run(1, Ok("b"));
    assert_eq!(planning.opened(&Name::step(1)), ["synthesis"]);
    planning.reply(&Name::synthesis(), "b");
    let ending = planning.ending(&Name::synthesis());
    assert_eq!((ending.reason, ending.missing), (Termination::PlanPartial, vec![0]));
}

#[test]
fn a_revised_plan_supersedes_what_had_not_started_and_numbers_go_on() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[], &[0], &[2]]);
    planning.run(0, Err("no network"));
    planning.run(1, Ok("b"));
    planning.replies(
        &Name::plan(1),
        json!({"decision": "revise", "reason": "another way", "steps": [
            {"goal": "ask someone", "depends_on": [1]}, {"goal": "sum up", "depends_on": [4]},
        ]}),
    );
    assert_eq!(planning.opened(&Name::plan(1)), ["step/4"]);
    let (failed, completed, revised) = (StepStatus::Failed, StepStatus::Completed, StepStatus::Revised);
    assert_eq!(statuses(&planning), [failed, completed, revised, revised, StepStatus::Running, StepStatus::Pending]);
    let state = PlanState::of(planning.session());
    assert_eq!(state.steps.iter().map(|step| step.plan).collect::<Vec<_>>(), [0, 0, 0, 0, 1, 1]);
    planning.run(4, Ok("e"));
    planning.run(5, Ok("f"));
    planning.reply(&Name::synthesis(), "done");
    let ending = planning.ending(&Name::synthesis());
    assert_eq!(
        (ending.reason, ending.missing),
        (Termination::PlanPartial, vec![0]),
        "superseded steps are not missing"
    );
}

#[test]
fn a_planner_that_says_nothing_usable_keeps_the_plan() {
    for dead in [false, true] {
        let mut planning = Planning::new();
        planning.plan(&[&[], &[0]]);
        planning.run(0, Err("no network"));
        planning.reply(&Name::plan(1), "hm");
        if dead {
            planning.fail(&Name::plan(1), "no provider");
        } else {
            planning.reply(&Name::plan(1), r#"{"decision": "panic"}"#);
        }
        assert_eq!(planning.opened(&Name::plan(1)), ["step/1"]);
    }
}

#[test]
fn revisions_are_bounded() {
    let mut planning = at_most(2);
    planning.plan(&[&[], &[0], &[1], &[2]]);
    for (number, review) in [(0, Name::plan(1)), (1, Name::plan(2))] {
        planning.run(number, Err("no"));
        assert_eq!(planning.opened(&Name::step(number)), [review.as_str()]);
        planning.reply(&review, r#"{"decision": "keep"}"#);
    }
    planning.run(2, Err("no"));
    assert_eq!(planning.opened(&Name::step(2)), ["synthesis"], "step 3 cannot run and nobody is asked any more");
}

#[test]
fn without_revisions_steps_that_rest_on_a_failure_are_left_out_and_the_others_run() {
    let mut planning = at_most(0);
    planning.plan(&[&[], &[0], &[1], &[]]);
    planning.run(0, Err("no network"));
    assert_eq!(planning.opened(&Name::step(0)), NONE);
    planning.run(3, Ok("d"));
    assert_eq!(planning.opened(&Name::step(3)), ["synthesis"]);
    assert_eq!(
        planning.variable(&Name::synthesis(), "missing"),
        json!([
            {"index": 0, "goal": "goal 0", "reason": "no network"},
            {"index": 1, "goal": "goal 1", "reason": "not run, because step 0 failed"},
            {"index": 2, "goal": "goal 2", "reason": "not run, because step 1 was not run"},
        ])
    );
    planning.reply(&Name::synthesis(), "d");
    let ending = planning.ending(&Name::synthesis());
    assert_eq!((ending.reason, ending.missing), (Termination::PlanPartial, vec![0, 1, 2]));
}

#[test]
fn without_revisions_a_surprise_holds_nothing_up() {
    let mut planning = at_most(0);
    planning.plan(&[&[], &[0]]);
    planning.reply(&Name::step(0), r#"{"answer": "odd", "surprising": true}"#);
    assert_eq!(planning.opened(&Name::step(0)), ["step/1"]);
}

#[test]
fn a_plan_without_room_for_another_step_is_not_put_in_question() {
    let mut planning = Planning::with(SomeLimits { max_plan_steps: Some(2), ..SomeLimits::default() });
    planning.plan(&[&[], &[], &[]]);
    assert_eq!(statuses(&planning).len(), 2, "cut to what is allowed");
    planning.run(0, Err("no"));
    planning.run(1, Ok("b"));
    assert_eq!(planning.opened(&Name::step(1)), ["synthesis"]);
}

#[test]
fn an_unknown_tool_is_told_to_the_model_and_fails_the_step_the_second_time() {
    let mut planning = at_most(0);
    planning.plan(&[&[]]);
    planning.reply(&Name::step(0), r#"{"tool": "telepathy", "arguments": {}}"#);
    let problem = planning.variable(&Name::step(0), "problem");
    assert_eq!(problem, "there is no tool `telepathy`; name one of search, sum, none");
    planning.reply(&Name::step(0), r#"{"tool": "telepathy", "arguments": {}}"#);
    let told = Effect::Report { error: problem.as_str().unwrap().into() };
    assert_eq!(planning.decide(&Name::step(0)), [Order::Perform(Name::step_result(0), told)]);
    planning.report(&Name::step(0));
    assert_eq!(statuses(&planning), [StepStatus::Failed]);
    assert_eq!(planning.opened(&Name::step(0)), ["synthesis"]);
}

#[test]
fn a_step_whose_call_fails_is_a_failed_step_and_not_the_end() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[]]);
    planning.fail(&Name::step(0), "no provider");
    planning.report(&Name::step(0));
    planning.run(1, Ok("b"));
    assert_eq!(planning.opened(&Name::step(1)), ["plan/1"]);
    let replied = planning.replied(&Name::step(0));
    assert_eq!(replied.reading, Reading::Failed { reason: "no provider".into() });
}

#[test]
fn an_answer_that_cannot_be_written_leaves_the_results_themselves() {
    let mut planning = at_most(0);
    planning.plan(&[&[], &[]]);
    planning.run(0, Ok("42"));
    planning.run(1, Err("no network"));
    planning.fail(&Name::synthesis(), "no provider");
    let ending = planning.ending(&Name::synthesis());
    assert_eq!((ending.reason, ending.error.as_deref()), (Termination::PlanPartial, Some("no provider")));
    assert_eq!(ending.answer, "No answer could be written from the results. Found so far:\n- Step 0, goal 0: 42");
    assert_eq!(ending.missing, [1]);
}

#[test]
fn an_empty_answer_is_asked_for_once_more() {
    let mut planning = Planning::new();
    planning.plan(&[&[]]);
    planning.run(0, Ok("42"));
    planning.reply(&Name::synthesis(), " ");
    planning.reply(&Name::synthesis(), "42 it is");
    assert_eq!(planning.ending(&Name::synthesis()).answer, "42 it is");
}

#[test]
fn without_any_result_and_any_answer_the_session_fails() {
    let mut planning = at_most(0);
    planning.plan(&[&[]]);
    planning.run(0, Err("no network"));
    planning.fail(&Name::synthesis(), "no provider");
    let ending = planning.ending(&Name::synthesis());
    assert_eq!((ending.reason, ending.answer.as_str()), (Termination::Error, ""));
}

#[test]
fn turns_that_a_plan_does_not_have_end_the_session_with_a_clear_error() {
    let mut planning = Planning::new();
    assert_eq!(planning.ending(&Name::iteration(1)).error.as_deref(), Some("a plan has no turn `i1`"));
    assert_eq!(planning.ending(&Name::new("nonsense")).error.as_deref(), Some("a plan has no turn `nonsense`"));
    planning.plan(&[&[]]);
    assert_eq!(planning.ending(&Name::step(7)).error.as_deref(), Some("the plan has no step 7"));
}

#[test]
fn steps_that_finish_together_share_what_follows() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[], &[0], &[1]]);
    planning.run(0, Ok("a"));
    let mut first = planning.clone();
    planning.run(1, Ok("b"));
    assert_eq!(planning.opened(&Name::step(0)), ["step/2"], "decided again with the other result in front");
    assert_eq!(planning.opened(&Name::step(1)), ["step/3"]);
    first.run(2, Ok("c"));
    assert_eq!(first.opened(&Name::step(0)), ["step/2"], "the same when asked again much later");
}

#[test]
fn a_plan_that_was_cut_ends_as_one_in_part_and_says_what_was_left_out() {
    let mut planning = Planning::with(SomeLimits { max_plan_steps: Some(2), ..SomeLimits::default() });
    planning.plan(&[&[], &[], &[]]);
    planning.run(0, Ok("a"));
    planning.run(1, Ok("b"));
    planning.reply(&Name::synthesis(), "both");
    let ending = planning.ending(&Name::synthesis());
    assert_eq!((ending.reason, ending.missing.as_slice()), (Termination::PlanPartial, [].as_slice()));
    let left_out = ending.into_ended(planning.session(), trellis_domain::Timestamp::from_micros(0)).left_out;
    assert_eq!(left_out, ["3 steps were named; the limit is 2, the rest was left out"]);
}
