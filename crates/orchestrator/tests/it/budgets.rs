//! Budgets: what a run may spend on models and agents, however deep its team is.

use crate::memory;
use proptest::prelude::*;
use serde_json::{Value, json};
use trellis_domain::budget::Budget;
use trellis_domain::config::StoredItem;
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::Replied;
use trellis_domain::run::{RunState, Termination};
use trellis_domain::{Caller, Workspace};
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, play, question};

fn calls(most: u32) -> SomeLimits {
    SomeLimits { max_model_calls: Some(most), ..SomeLimits::default() }
}

fn replies(played: &Played) -> impl Iterator<Item = &Replied> {
    played.records.iter().filter_map(|record| record.body.as_replied())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_budget_is_used_up_tells_what_it_found() {
    let bench = Bench::play(memory()).await;
    let played = play(&bench, &json!({"tools": 9, "answer": "so"}), "react", calls(3)).await;
    played.keeps_the_promises();
    let end = played.end();
    assert_eq!((end.reason, end.usage.model_calls), (Termination::Limit, 3));
    let reason = "the budget of 3 model calls (max-model-calls) is used up";
    assert_eq!((end.error.as_deref(), end.left_out.as_slice()), (Some(reason), &[reason.to_owned()][..]));
    assert!(played.answer().starts_with(&format!("No final answer: {reason}. Found so far:")), "{}", played.answer());
    assert_eq!(bench.prompter.calls.all().len(), 3, "nobody was asked a fourth time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_whose_budget_is_used_up_still_puts_together_what_it_has() {
    let bench = Bench::play(memory()).await;
    let busy = json!({"tools": 50, "answer": "never"});
    let scene = json!({"team": [[agent("a"), busy.clone(), busy]]});
    let played = play(&bench, &scene, "supervisor", calls(12)).await;
    played.keeps_the_promises();
    let end = played.end();
    assert_eq!(end.reason, Termination::SubagentsPartial, "{end:?}");
    assert!(played.answer().contains("[finding 0] a"), "{}", played.answer());
    assert!(end.total().model_calls <= 12, "{:?}", end.total());
    let share = played.records.iter().find_map(|record| record.body.as_fanned_out()).and_then(|it| it.share).unwrap();
    assert_eq!((share.model_calls, share.agents), (3, 1), "12 without 1 that was spent and 2 for the answer, by 3");
    assert_eq!(bench.summary(&played.run).await.state, RunState::AnsweredPartial);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_whose_budget_is_used_up_answers_from_the_steps_that_it_made() {
    let bench = Bench::play(memory()).await;
    let steps: Vec<_> = (0..9).map(|n| json!({"say": format!("fact {n}"), "tool": true})).collect();
    let one_by_one = SomeLimits { steps_at_once: Some(1), ..calls(6) };
    let played = play(&bench, &json!({"plan": steps}), "plan-then-execute", one_by_one).await;
    played.keeps_the_promises();
    let end = played.end();
    assert_eq!((end.reason, end.usage.model_calls), (Termination::PlanPartial, 5), "{end:?}");
    assert_eq!(end.missing.len(), 7, "the tool asks a model, too: it was not called for the third step");
    assert!(played.answer().contains("fact 0"), "{}", played.answer());
}

#[tokio::test(flavor = "multi_thread")]
async fn goals_beyond_the_agents_that_are_left_are_left_out_and_that_is_said() {
    let bench = Bench::play(memory()).await;
    let scene = json!({"team": [[agent("a"), agent("b"), agent("c"), agent("d")]]});
    let limits = SomeLimits { max_agents: Some(3), ..SomeLimits::default() };
    let played = play(&bench, &scene, "supervisor", limits).await;
    played.keeps_the_promises();
    let end = played.end();
    assert_eq!((played.ends().len(), end.total().agents), (3, 2), "the supervisor and two of the four");
    assert_eq!(end.left_out, ["4 goals were named; the limit is 2, the rest was left out"]);
    assert_eq!(end.reason, Termination::SubagentsPartial);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_without_room_for_subagents_ends_before_it_asks() {
    let bench = Bench::play(memory()).await;
    let limits = SomeLimits { max_agents: Some(1), ..SomeLimits::default() };
    let played = play(&bench, &json!({"team": [[agent("a")]]}), "supervisor", limits).await;
    played.keeps_the_promises();
    let end = played.end();
    assert_eq!((end.reason, end.usage.model_calls), (Termination::Limit, 0), "{end:?}");
    assert!(end.error.as_ref().is_some_and(|error| error.contains("max-agents (1)")), "{end:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_has_budgets_of_its_own_that_a_request_can_change() {
    let bench = Bench::play(memory()).await;
    let item = StoredItem {
        kind: "agent".to_owned(),
        key: "limits".to_owned(),
        value: json!({"max-model-calls": 2}).to_string(),
    };
    bench.orchestrator.ports.config.put(&Workspace::default(), vec![item], Caller::program()).await.unwrap();
    for (limits, expected) in [(SomeLimits::default(), 2), (calls(4), 4)] {
        let bench = &bench;
        let scene = json!({"tools": 9, "answer": format!("{expected}")});
        let run = bench.request(expected as usize, question(&scene, "react"), limits).await;
        bench.finish(std::slice::from_ref(&run), 1).await;
        let played = Played::of(bench, run).await;
        played.keeps_the_promises();
        assert_eq!((played.end().reason, played.end().usage.model_calls), (Termination::Limit, expected));
    }
}

fn scene() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![(0..6_u32).prop_map(|tools| json!({"tools": tools, "answer": "so"})), Just(json!({"fail": true})),];
    leaf.prop_recursive(3, 40, 5, |inner| {
        let round = prop::collection::vec(inner.clone(), 1..6);
        let team = prop::collection::vec(round, 1..4).prop_map(|rounds| json!({"team": rounds}));
        let calls = (prop::collection::vec(inner, 1..4), 1..3_u32);
        prop_oneof![team, calls.prop_map(|(agents, at_once)| json!({"agents": agents, "at_once": at_once}))]
    })
}

fn budget() -> impl Strategy<Value = Budget> {
    (1..60_u32, 1..4_000_u64, 1..30_u32).prop_map(|(model_calls, tokens, agents)| Budget {
        model_calls,
        tokens,
        agents,
        ..Budget::default()
    })
}

/// However many agents a run has and however they fail: the sum over all of them stays within the budget. A call is not
/// stopped half way, so tokens may exceed it by what was in flight.
async fn stays_within(scene: Value, budget: Budget) {
    let bench = Bench::play(memory()).await;
    crate::agents::add_colleague(&bench, &json!({"pattern": "react"})).await;
    let limits = SomeLimits {
        max_model_calls: Some(budget.model_calls),
        max_tokens: Some(budget.tokens),
        max_agents: Some(budget.agents),
        ..SomeLimits::default()
    };
    let pattern = if scene.get("team").is_some() { "supervisor" } else { "react" };
    let played = play(&bench, &scene, pattern, limits).await;
    played.keeps_the_promises();
    let asked = replies(&played).filter(|replied| !replied.was_declined());
    let tokens = |replied: &Replied| replied.in_token.unwrap_or(0) + replied.out_token.unwrap_or(0);
    let (mut calls, mut spent, mut largest) = (0, 0, 0);
    for replied in asked {
        calls += 1;
        spent += tokens(replied);
        largest = largest.max(tokens(replied));
    }
    let agents = played.ends().len();
    assert!(calls <= budget.model_calls, "{calls} calls, {budget:?}");
    assert!(agents <= budget.agents as usize, "{agents} agents, {budget:?}");
    assert!(spent <= budget.tokens + largest * agents as u64, "{spent} tokens, {budget:?}");
    let total = played.end().total().clone();
    assert_eq!((total.model_calls, total.agents as usize), (calls, agents - 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn no_run_tree_spends_more_than_its_budget(scene in scene(), budget in budget()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(stays_within(scene, budget));
    }
}
