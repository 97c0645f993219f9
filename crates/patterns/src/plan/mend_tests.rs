//! What is put right in a plan.

use super::PlanRules;
use super::mend::mend;
use crate::plan::PlannedStep;
use serde_json::{Value, json};

fn mended(entries: &Value) -> (Vec<PlannedStep>, Vec<String>) {
    mend(entries.as_array().unwrap(), &PlanRules { first: 0, finished: Vec::new(), most: 50 })
}

/// The goals with their references, and the notes.
#[track_caller]
fn check(entries: Value, steps: &[(&str, &[u32])], notes: &[&str]) {
    let (found, remarks) = mended(&entries);
    let found: Vec<_> = found.iter().map(|step| (step.goal.as_str(), step.depends_on.as_slice())).collect();
    assert_eq!(found, steps);
    assert_eq!(remarks, notes);
}

#[test]
fn a_sound_plan_stays_as_it_is() {
    check(
        json!([{"goal": "a", "depends_on": [1]}, {"goal": "b", "depends_on": null}, {"goal": "c", "depends_on": [0, 1]}]),
        &[("a", &[1]), ("b", &[]), ("c", &[0, 1])],
        &[],
    );
}

#[test]
fn references_are_read_in_whatever_form_they_come() {
    check(
        json!([{"goal": "a"}, {"goal": "b", "depends-on": "0"}, {"goal": "c", "dependencies": 1},
               {"goal": "d", "depends_on": [2, " 1 ", null, 2]}]),
        &[("a", &[]), ("b", &[0]), ("c", &[1]), ("d", &[1, 2])],
        &[],
    );
}

#[test]
fn references_that_lead_nowhere_are_dropped() {
    check(
        json!([{"goal": "a", "depends_on": [0, 9]}, {"goal": "b", "depends_on": [-1, 0.5, "zero", [0], true, 0]}]),
        &[("a", &[]), ("b", &[0])],
        &[
            "step 0: dropped the reference to itself",
            "step 1: dropped a reference that is not the number of a step",
            "step 1: dropped a reference that is not the number of a step",
            "step 1: dropped a reference that is not the number of a step",
            "step 1: dropped a reference that is not the number of a step",
            "step 1: dropped a reference that is not the number of a step",
            "step 0: dropped the reference to step 9, which cannot be built on",
        ],
    );
}

#[test]
fn entries_without_a_goal_are_dropped_and_the_others_move_up() {
    check(
        json!([{"tool_hint": "sum"}, "a", 7, {"goal": "", "description": "b", "depends_on": [1, 0]}]),
        &[("a", &[]), ("b", &[0])],
        &[
            "step 0: dropped, it has no goal",
            "step 2: dropped, it has no goal",
            "step 3: dropped the reference to step 0, which cannot be built on",
        ],
    );
}

#[test]
fn steps_that_are_alike_are_one_step() {
    check(
        json!([{"goal": "a"}, {"goal": "a"}, {"goal": "b", "depends_on": [1]}, {"goal": "b", "depends_on": [0]},
               {"goal": "c", "depends_on": [0, 1, 3]}]),
        &[("a", &[]), ("b", &[0]), ("c", &[0, 1])],
        &["step 1: merged with step 0, which is the same", "step 3: merged with step 2, which is the same"],
    );
}

#[test]
fn the_same_goal_with_another_tool_is_another_step() {
    let (steps, notes) = mended(&json!([{"goal": "a", "tool_hint": "sum"}, {"goal": "a", "tool": "search"}]));
    let hints: Vec<_> = steps.iter().map(|step| step.tool_hint.as_str()).collect();
    assert_eq!((hints, notes), (vec!["sum", "search"], Vec::new()));
}

#[test]
fn a_cycle_is_broken_where_it_closes() {
    check(
        json!([{"goal": "a", "depends_on": [2]}, {"goal": "b", "depends_on": [0]}, {"goal": "c", "depends_on": [1]}]),
        &[("a", &[2]), ("b", &[0]), ("c", &[])],
        &["step 2: dropped the reference to step 1, which depends on it"],
    );
}

#[test]
fn a_plan_is_cut_to_what_is_allowed_and_nothing_refers_to_the_rest() {
    let entries = json!(["a", {"goal": "b", "depends_on": [2]}, "c", "d"]);
    let (steps, notes) = mend(entries.as_array().unwrap(), &PlanRules { first: 0, finished: Vec::new(), most: 2 });
    assert_eq!(steps.iter().map(|step| step.depends_on.len()).collect::<Vec<_>>(), [0, 0]);
    assert_eq!(
        notes,
        [
            "step 1: dropped the reference to step 2, which cannot be built on",
            "4 steps were named; the limit is 2, the rest was left out",
        ]
    );
}

#[test]
fn a_revision_counts_on_and_builds_only_on_what_is_finished() {
    let entries = json!(["a", {}, {"goal": "b", "depends_on": [10, 3, 4, 12]}]);
    let rules = PlanRules { first: 10, finished: vec![0, 3], most: 5 };
    let (steps, notes) = mend(entries.as_array().unwrap(), &rules);
    assert_eq!(steps[1].depends_on, [3, 10]);
    assert_eq!(
        notes,
        [
            "step 11: dropped, it has no goal",
            "step 12: dropped the reference to itself",
            "step 12: dropped the reference to step 4, which cannot be built on"
        ]
    );
}

#[test]
fn goals_are_trimmed_and_cut_and_hints_of_another_kind_ignored() {
    let (steps, notes) = mended(&json!([{"goal": format!("  {}", "ä".repeat(3_000)), "tool_hint": ["sum"]}]));
    assert_eq!((steps[0].goal.chars().count(), steps[0].tool_hint.as_str()), (2_000, ""));
    assert_eq!(
        notes,
        ["step 0: the goal was cut to 2000 characters", "step 0: the tool hint is not text and was ignored"]
    );
}

#[test]
fn a_reply_that_is_wrong_all_over_gets_a_short_list_of_notes() {
    let (steps, notes) = mended(&Value::Array(vec![json!(1); 1_000]));
    assert!(steps.is_empty());
    assert_eq!((notes.len(), notes.last().map(String::as_str)), (21, Some("and 980 more")));
    let entries: Vec<_> = (0..1_000).map(|goal| json!({"goal": goal.to_string(), "depends_on": [5_000]})).collect();
    let (steps, notes) = mended(&Value::Array(entries));
    let cut = "1000 steps were named; the limit is 50, the rest was left out";
    assert_eq!((steps.len(), notes.last().map(String::as_str)), (50, Some(cut)), "that is never one note too many");
}
