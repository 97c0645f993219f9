//! What holds for any plan, any replies and any order of events.

use super::mend::mend;
use super::read::{read_plan, read_revision, read_step};
use super::script_tests::{Script, any_script, kept, smooth};
use super::shell_tests::{Outcome, Shell};
use super::{PlanDecision, PlanRules, PlanTurn};
use crate::plan::PlanNames;
use crate::plan::PlannedStep;
use crate::reader::ReadReply;
use crate::synthesis::SynthesisName;
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Enforcement};
use trellis_domain::record::{Name, Reading};
use trellis_domain::run::Termination;

fn is_step(name: &Name) -> bool {
    matches!(PlanTurn::of(&name.first_asking()), Some(PlanTurn::Step(_)))
}

/// The number of the last plan that replaced another.
fn last_revision(shell: &Shell<'_>) -> u32 {
    shell.steps().last().map_or(0, |(_, plan)| *plan)
}

/// Everything that can run has run, and only that.
fn check_end(shell: &Shell<'_>) {
    let opened = |name: &Name| shell.opened.iter().filter(|turn| *turn == name).count();
    assert_eq!((shell.endings.len(), opened(&Name::synthesis())), (1, 1));
    let steps = shell.steps();
    let mut missing = Vec::new();
    for (number, (step, plan)) in (0_u32..).zip(&steps) {
        let outcome = shell.outcome(number);
        let ran = opened(&Name::step(number)) == 1;
        assert_eq!(ran, outcome != Outcome::Open, "step {number} ran but did not end");
        let is_superseded = !ran && *plan < last_revision(shell);
        let hindered = |other: &u32| shell.outcome(*other) != Outcome::Completed;
        assert!(ran || is_superseded || step.depends_on.iter().any(hindered), "step {number} could run and did not");
        if outcome == Outcome::Failed || !ran && !is_superseded {
            missing.push(number);
        }
    }
    let is_complete = missing.is_empty() && shell.session().left_out().is_empty();
    let reason = if is_complete { Termination::PlanComplete } else { Termination::PlanPartial };
    assert_eq!((shell.endings[0].reason, &shell.endings[0].missing), (reason, &missing));
    let opened_steps = shell.opened.iter().filter(|turn| is_step(turn)).count();
    assert!(opened_steps <= steps.len(), "a step runs that no plan has");
    assert!(shell.is_decided_the_same_again());
}

fn limit(script: &Script) -> usize {
    script.limits.max_plan_steps.map_or(50, |most| usize::try_from(most).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_step_that_can_run_runs_once_and_there_is_one_answer(script in any_script(), seed: u64) {
        let shell = Shell::run(&script, seed, 0);
        check_end(&shell);
        prop_assert!(shell.steps().len() <= limit(&script));
        let reviews = shell.opened.iter().filter(|turn| matches!(PlanTurn::of(turn), Some(PlanTurn::Plan(1..)))).count();
        prop_assert!(reviews <= usize::try_from(script.limits.max_replans.unwrap()).unwrap());
    }

    #[test]
    fn lost_workers_and_turns_handled_twice_change_nothing_about_that(script in any_script(), seed: u64) {
        check_end(&Shell::run(&script, seed, 6));
    }

    #[test]
    fn the_order_of_completion_changes_nothing_when_all_goes_well(script in smooth(), seeds: [u64; 2]) {
        let [one, other] = seeds.map(|seed| Shell::run(&script, seed, 3));
        prop_assert_eq!(&one.asked, &other.asked);
        prop_assert_eq!(&one.endings, &other.endings);
        let turns = |shell: &Shell<'_>| shell.opened.iter().cloned().collect::<BTreeSet<_>>();
        prop_assert_eq!(turns(&one), turns(&other));
    }

    #[test]
    fn the_order_of_completion_never_changes_what_a_step_is_told(script in kept(), seeds: [u64; 2]) {
        let [one, other] = seeds.map(|seed| Shell::run(&script, seed, 0));
        prop_assert_eq!(one.steps(), other.steps());
        for (name, variables) in one.asked.iter().filter(|(name, _)| is_step(name)) {
            prop_assert!(other.asked.get(name).is_none_or(|others| others == variables), "{} differs", name);
        }
    }

    #[test]
    fn whatever_is_mended_is_a_graph_without_cycles(entries in prop::collection::vec(entry(), 0..12), rules in rules()) {
        let (steps, _) = mend(&entries, &rules);
        check_plan(&steps, &rules);
    }

    #[test]
    fn any_reply_is_read_and_what_is_read_can_be_recorded(reply in json(), text in ".*", rules in rules()) {
        for raw in [reply.to_string(), text.clone(), format!("{text}\n```json\n{reply}\n```")] {
            let plan = read_plan(&raw, &rules, Vec::new());
            let revision = read_revision(&raw, &rules, vec![decision(DecisionKind::Replan, &["keep", "revise"])]);
            let step = read_step(&raw, "Step 0: x", vec![decision(DecisionKind::Tool, &["sum", "none"])]);
            for read in [&plan, &revision, &step] {
                check_read(read, &rules);
            }
        }
    }
}

fn check_plan(steps: &[PlannedStep], rules: &PlanRules) {
    assert!(steps.len() <= usize::try_from(rules.most).unwrap());
    let mut done: BTreeSet<u32> = rules.finished.iter().copied().collect();
    let mut waiting: Vec<_> = (rules.first..).zip(steps).collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|(number, step)| {
            let ready = step.depends_on.iter().all(|other| done.contains(other));
            !(ready && done.insert(*number))
        });
        assert!(waiting.len() < before, "these can never start: {waiting:?}");
    }
    for step in steps {
        assert!(!step.goal.trim().is_empty() && step.goal.chars().count() <= 2_000);
        assert!(step.depends_on.is_sorted_by(|one, next| one < next), "each reference once, in order");
    }
}

fn check_read(read: &ReadReply, rules: &PlanRules) {
    let stored = serde_json::to_string(&read.reading).unwrap();
    assert_eq!(serde_json::from_str::<Reading>(&stored).unwrap(), read.reading);
    for decision in &read.decisions {
        assert!(decision.chosen.iter().all(|chosen| decision.options.contains(chosen)), "{decision:?}");
    }
    if let Some(steps) = PlanDecision::of(&read.reading).and_then(|planning| planning.steps) {
        assert!(!steps.is_empty());
        check_plan(&steps, rules);
    }
}

fn decision(kind: DecisionKind, options: &[&str]) -> Decision {
    Decision {
        kind,
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        excluded: Vec::new(),
        chosen: Vec::new(),
        source: "urn:x".into(),
        config_version: 1,
        decided_by: DecidedBy::Model,
        enforcement: Enforcement::Validated,
        signals: Vec::new(),
        rationale: None,
        rejected: None,
    }
}

fn rules() -> impl Strategy<Value = PlanRules> {
    (0..5_u32, prop::collection::btree_set(0..5_u32, 0..4), 0..8_u32).prop_map(|(first, finished, most)| PlanRules {
        first,
        finished: finished.into_iter().filter(|number| *number < first).collect(),
        most,
    })
}

/// Anything, and often something like a step.
fn entry() -> impl Strategy<Value = Value> {
    let step = ("[a-f]", prop::collection::vec(0..14_u32, 0..4));
    let step = step.prop_map(|(goal, depends_on)| serde_json::json!({"goal": goal, "depends_on": depends_on}));
    prop_oneof![1 => json(), 3 => step]
}

/// Anything, with a liking for the words of plans.
fn json() -> impl Strategy<Value = Value> {
    const WORDS: [&str; 12] = [
        "goal",
        "step",
        "steps",
        "plan",
        "depends_on",
        "dependencies",
        "tool_hint",
        "tool",
        "arguments",
        "answer",
        "decision",
        "reason",
    ];
    let text = prop_oneof![
        prop::sample::select(vec!["keep", "revise", "none", "sum", "a", "b", "", "1", "true"]).prop_map(str::to_owned),
        "\\PC{0,12}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..10_i64).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        let members = (prop::sample::select(WORDS.to_vec()), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Value::Array),
            prop::collection::vec(members, 0..6)
                .prop_map(|members| { members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }),
        ]
    })
}
