//! Agents that are called like tools: a child session in the same run, whose answer is what came of the call.

use crate::memory;
use serde_json::{Value, json};
use trellis_domain::config::StoredItem;
use trellis_domain::decision::DecidedBy;
use trellis_domain::fan_out::FannedOut;
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::Observed;
use trellis_domain::run::Termination;
use trellis_domain::{Caller, Workspace};
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, play};

/// A tool `colleague` that stands for the agent that these settings name.
pub(crate) async fn add_colleague(bench: &Bench, settings: &Value) {
    let mut tool = json!({"type": "agent", "name": "colleague", "description": "knows more"});
    tool.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    put(bench, "tool", "colleague", &tool).await;
}

pub(crate) async fn put(bench: &Bench, kind: &str, key: &str, value: &Value) {
    let item = StoredItem { kind: kind.to_owned(), key: key.to_owned(), value: value.to_string() };
    bench.orchestrator.ports.config.put(&Workspace::default(), vec![item], Caller::program()).await.unwrap();
}

async fn bench(settings: &Value) -> Bench {
    let bench = Bench::play(memory()).await;
    add_colleague(&bench, settings).await;
    bench
}

fn observations(played: &Played) -> Vec<&Observed> {
    let own = played.records.iter().filter(|record| record.header.session == played.run);
    own.filter_map(|record| record.body.as_observed()).collect()
}

fn fan_outs(played: &Played) -> Vec<&FannedOut> {
    played.records.iter().filter_map(|record| record.body.as_fanned_out()).collect()
}

fn text(observed: &Observed) -> &str {
    observed.result.as_ref().map_or("", |result| result.text())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_answers_is_what_came_of_the_call() {
    let bench = bench(&json!({"pattern": "react"})).await;
    let scene = json!({"agents": [agent("it is blue"), agent("it is old")], "answer": "blue and old"});
    let played = play(&bench, &scene, "react", SomeLimits::default()).await;
    played.keeps_the_promises();
    assert_eq!(played.answer(), "blue and old");
    let texts: Vec<_> = observations(&played).into_iter().map(text).collect();
    assert_eq!(texts, ["it is blue", "it is old"]);
    let names = played.records.iter().filter(|it| it.header.session == played.run);
    let names: Vec<_> = names.map(|record| record.header.name.as_str()).collect();
    let one = ["i1", "fanout/1", "fanout/1/join", "i1/observation"];
    assert_eq!(names[2..6], one, "sent out, joined, and then the turn goes on");
    let end = played.end();
    assert_eq!((end.total().agents, end.total().model_calls, end.usage.model_calls), (2, 7, 3));
    let [decision] = &fan_outs(&played)[0].decisions[..] else { panic!("one choice for one call") };
    assert_eq!((&decision.options[..], decision.decided_by), (&["react".to_owned()][..], DecidedBy::Rule));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_team_can_be_called() {
    let bench = bench(&json!({"pattern": "supervisor"})).await;
    let team = json!({"team": [[agent("a"), agent("b")]]});
    let played = play(&bench, &json!({"agents": [team], "answer": "so"}), "react", SomeLimits::default()).await;
    played.keeps_the_promises();
    assert!(text(observations(&played)[0]).contains("[finding 1] b"), "{:?}", observations(&played));
    assert_eq!(played.end().total().agents, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_one_reply_work_side_by_side() {
    let bench = bench(&json!({"pattern": "react"})).await;
    let goals: Vec<_> = ["a", "b", "c"].map(agent).to_vec();
    let scene = json!({"agents": goals, "tools": 4, "at_once": 4, "answer": "so"});
    let played = play(&bench, &scene, "react", SomeLimits::default()).await;
    played.keeps_the_promises();
    let [fan_out] = &fan_outs(&played)[..] else { panic!("all of them at once") };
    assert_eq!(fan_out.goals.len(), 3);
    let mut texts: Vec<_> = observations(&played).into_iter().map(text).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["a", "b", "c", "fact \"3\""], "what else was called is called before");
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_of_a_plan_call_agents_side_by_side() {
    let bench = bench(&json!({"pattern": "react"})).await;
    let step = |answer: &str| json!({"agent": agent(answer)});
    let scene = json!({"plan": [step("a"), step("b"), step("c"), {"say": "d", "tool": true, "needs": [0, 1]}]});
    let played = play(&bench, &scene, "plan-then-execute", SomeLimits::default()).await;
    played.keeps_the_promises();
    assert_eq!(played.end().reason, Termination::PlanComplete, "{:?}", played.end());
    assert_eq!(fan_outs(&played).len(), 3);
    for found in ["[step 0] a", "[step 1] b", "[step 2] c"] {
        assert!(played.answer().contains(found), "{}", played.answer());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispatch_may_choose_one() {
    let bench = bench(&json!({"pattern": "react"})).await;
    put(&bench, "tool", "search", &json!({"type": "agent", "name": "search", "pattern": "react"})).await;
    let played = play(&bench, &json!({"answer": "unused"}), "dispatch", SomeLimits::default()).await;
    played.keeps_the_promises();
    assert_eq!(played.answer(), "done", "the agent's own answer: {:?}", played.end());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_fails_is_an_observation() {
    let bench = bench(&json!({"pattern": "react"})).await;
    let scene = json!({"agents": [{"fail": true}], "answer": "without it"});
    let played = play(&bench, &scene, "react", SomeLimits::default()).await;
    played.keeps_the_promises();
    let error = observations(&played)[0].error.clone().unwrap();
    assert_eq!(error, "the agent `colleague` did not answer: the model did not answer: the model is dead");
    assert_eq!(played.answer(), "without it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_says_nothing_is_waited_for_until_its_deadline() {
    let bench = bench(&json!({"pattern": "react"})).await;
    let scene = json!({"agents": [{"silent": true}], "answer": "without it"});
    let limits = SomeLimits { fan_in_timeout_ms: Some(200), ..SomeLimits::default() };
    let played = play(&bench, &scene, "react", limits).await;
    played.keeps_the_promises();
    let error = observations(&played)[0].error.clone().unwrap();
    assert!(error.starts_with("the agent `colleague` did not answer: it had not ended"), "{error}");
    assert_eq!(played.answer(), "without it");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_call_agents_end_at_the_depth_limit() {
    let bench = bench(&json!({"pattern": "react"})).await;
    let mut scene = agent("the deepest");
    for _ in 0..5 {
        scene = json!({"agents": [scene], "answer": "so"});
    }
    let limits = SomeLimits { max_depth: Some(2), ..SomeLimits::default() };
    let played = play(&bench, &scene, "react", limits).await;
    played.keeps_the_promises();
    assert_eq!(played.ends().len(), 3, "the root, its agent, and the agent of that one");
    let excluded = played.records.iter().filter_map(|record| record.body.as_replied());
    let mut excluded = excluded.flat_map(|replied| &replied.decision).flat_map(|decision| &decision.excluded);
    assert!(excluded.any(|it| it.name == "colleague" && it.reason == "subagents are limited to depth 2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_without_room_for_another_agent_is_told_to_the_model() {
    let bench = bench(&json!({"pattern": "react"})).await;
    let goals = ["a", "b", "c", "d"].map(agent);
    let scene = json!({"agents": goals, "answer": "so"});
    let limits = SomeLimits { max_agents: Some(3), ..SomeLimits::default() };
    let played = play(&bench, &scene, "react", limits).await;
    played.keeps_the_promises();
    let refused = observations(&played).into_iter().find_map(|it| it.error.as_deref()).unwrap();
    assert!(refused.contains("max-agents (3)"), "{refused}");
    assert_eq!(played.end().total().agents, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn teams_that_are_called_at_once_have_the_agents_that_they_need() {
    let bench = bench(&json!({"pattern": "supervisor"})).await;
    let goals = vec![json!({"team": [[agent("a")]]}); 8];
    let scene = json!({"agents": goals, "at_once": 8, "answer": "so"});
    let played = play(&bench, &scene, "react", SomeLimits::default()).await;
    played.keeps_the_promises();
    let found = observations(&played).into_iter().filter(|it| text(it).contains("[finding 0] a"));
    assert_eq!(found.count(), 8, "{:?}", observations(&played));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_agents_found_is_told_at_a_limit() {
    let bench = bench(&json!({"pattern": "react"})).await;
    let scene = json!({"agents": [agent("it is blue"), agent("it is old")], "answer": "never"});
    let limits = SomeLimits { max_iterations: Some(2), ..SomeLimits::default() };
    let played = play(&bench, &scene, "react", limits).await;
    played.keeps_the_promises();
    assert!(played.answer().contains("colleague: it is blue"), "{}", played.answer());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_called_again_and_again_with_the_same_question_is_noticed() {
    let bench = bench(&json!({"pattern": "react"})).await;
    let goals = vec![json!({"answer": "the same"}); 9];
    let played = play(&bench, &json!({"agents": goals, "answer": "so"}), "react", SomeLimits::default()).await;
    played.keeps_the_promises();
    assert!(played.ends().len() < 5, "{} agents were called", played.ends().len() - 1);
    assert_eq!(played.end().reason, Termination::Limit, "{:?}", played.end());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_type_as_a_tool_brings_its_own_words_and_patterns() {
    let bench = bench(&json!({"task-type": "audit"})).await;
    let task_type = json!({
        "name": "audit", "description": "checks", "framing": "Check everything twice.",
        "valid_patterns": ["plan-then-execute", "nowhere"],
    });
    put(&bench, "agent-task-type", "audit", &task_type).await;
    let scene = json!({"agents": [{"plan": [{"say": "x"}]}], "answer": "so"});
    let played = play(&bench, &scene, "react", SomeLimits::default()).await;
    played.keeps_the_promises();
    let mut below = played.records.iter().filter(|record| record.header.session != played.run);
    let routed = below.find_map(|record| record.body.as_routed()).unwrap();
    assert_eq!(
        (&*routed.task_type, &*routed.pattern, &*routed.framing),
        ("audit", "plan-then-execute", "Check everything twice.")
    );
    let [decision] = &fan_outs(&played)[0].decisions[..] else { panic!("one choice for one call") };
    assert_eq!(decision.excluded[0].name, "nowhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_question_is_told_to_the_model() {
    let bench = bench(&json!({"pattern": "react"})).await;
    put(&bench, "tool", "search", &json!({"type": "agent", "name": "search", "pattern": "nowhere"})).await;
    let played = play(&bench, &json!({"tools": 1, "answer": "so"}), "react", SomeLimits::default()).await;
    played.keeps_the_promises();
    let error = observations(&played)[0].error.clone().unwrap();
    assert!(error.contains("there is no tool `search`"), "an agent that cannot run is not offered: {error}");
}
