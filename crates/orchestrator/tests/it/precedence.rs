//! Limits from every source, seen in what a run does: the operator's usual limit, the task type's, the pattern's, the
//! request's, in rising order, and never above the operator's maximum.

use crate::memory;
use crate::promises::put;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trellis_domain::limits::{Limits, SomeLimits};
use trellis_domain::{RunId, Timestamp};
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, question};
use trellis_orchestrator::orchestrator::{Options, Orchestrator};
use trellis_orchestrator::ports::all_due_turns;
use trellis_patterns::plan::PlanTurn;
use trellis_patterns::router::OperatorLimits;

/// What each source says about one limit.
#[derive(Debug, Clone, Copy, Default)]
struct Sources {
    operator: u64,
    task_type: Option<u64>,
    pattern: Option<u64>,
    request: Option<u64>,
    maximum: Option<u64>,
}

/// Each source beats the one before it, the maximum holds for all of them, and it raises nothing.
fn cases() -> [(Sources, u64); 7] {
    let operator = Sources { operator: 1, ..Sources::default() };
    let task_type = Sources { task_type: Some(2), ..operator };
    let pattern = Sources { pattern: Some(3), ..task_type };
    let request = Sources { request: Some(4), ..pattern };
    let lower = Sources { request: Some(2), ..pattern };
    [
        (operator, 1),
        (task_type, 2),
        (pattern, 3),
        (request, 4),
        (lower, 2),
        (Sources { maximum: Some(3), ..request }, 3),
        (Sources { maximum: Some(2), operator: 4, ..Sources::default() }, 2),
    ]
}

fn some(name: &str, value: Option<u64>) -> Value {
    let entry = value.map(|value| (name.to_owned(), json!(value)));
    Value::Object(entry.into_iter().collect::<Map<_, _>>())
}

fn limits(name: &str, value: Option<u64>) -> SomeLimits {
    serde_json::from_value(some(name, value)).unwrap()
}

/// A bench on which every source has its say, and the run that is asked for.
async fn begun(name: &str, unit: u64, sources: Sources, scene: &Value, pattern: &str) -> (Bench, RunId) {
    let scaled = |value: Option<u64>| value.map(|value| value * unit);
    let first = Bench::play(memory()).await;
    let usual = Limits::default().refined(&limits(name, scaled(Some(sources.operator))), &SomeLimits::default());
    let maximum = limits(name, scaled(sources.maximum));
    let options = Options { limits: OperatorLimits { usual, maximum }, ..Options::default() };
    let orchestrator = Arc::new(Orchestrator::new(first.orchestrator.ports.clone(), options));
    let bench = Bench { orchestrator, ..first };
    let general = json!({"name": "general", "limits": some(name, scaled(sources.task_type))});
    let item = json!({"name": pattern, "limits": some(name, scaled(sources.pattern))});
    // Subagents can only be what is configured.
    put(&bench, &[("agent-pattern", "react", json!({"name": "react"}))]).await;
    put(&bench, &[("agent-task-type", "general", general), ("agent-pattern", pattern, item)]).await;
    let run = bench.request(1, question(scene, pattern), limits(name, scaled(sources.request))).await;
    (bench, run)
}

async fn finished(name: &str, sources: Sources, scene: &Value, pattern: &str) -> Played {
    let (bench, run) = begun(name, 1, sources, scene, pattern).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    played
}

#[tokio::test(flavor = "multi_thread")]
async fn siblings_are_limited_by_every_source() {
    let scene = json!({"team": [vec![agent("a"); 6]]});
    for (sources, expected) in cases() {
        let played = finished("max-siblings", sources, &scene, "supervisor").await;
        assert_eq!(played.joins()[0].members.len() as u64, expected, "{sources:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rounds_are_limited_by_every_source() {
    let scene = json!({"team": vec![[agent("a")]; 6]});
    for (sources, expected) in cases() {
        let played = finished("max-rounds", sources, &scene, "supervisor").await;
        assert_eq!(played.joins().len() as u64, expected, "{sources:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn depth_is_limited_by_every_source() {
    let scene = (0..6).fold(agent("deep"), |below, _| json!({"team": [[below]]}));
    for (sources, expected) in cases() {
        let played = finished("max-depth", sources, &scene, "supervisor").await;
        let below = played.records.iter().filter_map(|record| record.body.as_accepted()?.parent.as_ref());
        let deepest = below.map(|parent| parent.ancestors.len() as u64).max();
        assert_eq!(deepest, Some(expected), "{sources:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_steps_are_limited_by_every_source() {
    let step = |n: usize| json!({"say": n});
    let scene = json!({"plan": (0..6).map(step).collect::<Vec<_>>()});
    for (sources, expected) in cases() {
        let played = finished("max-plan-steps", sources, &scene, "plan-then-execute").await;
        assert_eq!(turns(&played, |kind| matches!(kind, PlanTurn::Step(_))), expected, "{sources:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_are_limited_by_every_source() {
    // Each step fails and the next one rests on it, so the planner is asked as often as it may be.
    let step = |n: usize| json!({"say": n, "tool": true, "fail": true, "needs": n.checked_sub(1).map(|n| [n])});
    let scene = json!({"plan": (0..8).map(step).collect::<Vec<_>>()});
    for (sources, expected) in cases() {
        let played = finished("max-replans", sources, &scene, "plan-then-execute").await;
        let asked = turns(&played, |kind| matches!(kind, PlanTurn::Plan(revision) if revision > 0));
        assert_eq!(asked, expected, "{sources:?}");
    }
}

fn turns(played: &Played, is_meant: impl Fn(PlanTurn) -> bool) -> u64 {
    let kinds = played.records.iter().filter_map(|record| PlanTurn::of(&record.header.name));
    kinds.filter(|kind| is_meant(*kind)).count() as u64
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_at_once_are_limited_by_every_source() {
    let step = |n: usize| json!({"say": n});
    let scene = json!({"plan": (0..6).map(step).collect::<Vec<_>>()});
    for (sources, expected) in cases() {
        let (bench, run) = begun("steps-at-once", 1, sources, &scene, "plan-then-execute").await;
        let journal = &bench.orchestrator.ports.journal;
        let open = async || all_due_turns(&**journal, Timestamp::from_micros(i64::MAX)).await.unwrap();
        let first = open().await.remove(0);
        bench.orchestrator.handle(&first).await.unwrap();
        assert_eq!(open().await.len() as u64, expected, "{sources:?}");
        bench.finish(&[run], 1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_for_a_fan_in_is_limited_by_every_source() {
    // Tens of seconds, so that the moments between the decision and its record do not count.
    const UNIT: u64 = 10_000;
    let scene = json!({"team": [[agent("a")]]});
    for (sources, expected) in cases() {
        let (bench, run) = begun("fan-in-timeout-ms", UNIT, sources, &scene, "supervisor").await;
        bench.finish(std::slice::from_ref(&run), 1).await;
        let played = Played::of(&bench, run).await;
        let record = played.records.iter().find(|record| record.body.as_fanned_out().is_some()).unwrap();
        let given = record.body.as_fanned_out().unwrap().deadline.ms_since(record.header.time);
        assert_eq!((given + UNIT / 2) / UNIT, expected, "{sources:?}");
    }
}
