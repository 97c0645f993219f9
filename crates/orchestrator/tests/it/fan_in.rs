//! Fan-outs and fan-ins between the two roles: who waits, who joins, and for what.

use crate::memory;
use crate::promises::{Serving, bench};
use serde_json::json;
use std::time::Duration;
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::Name;
use trellis_domain::run::Termination;
use trellis_domain::{RunId, Scope, Workspace};
use trellis_orchestrator::contract::play;
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, question, silent};
use trellis_orchestrator::ports::{Commit, NewTurn, OpenTurn, PromptCall, Role};
use trellis_orchestrator::workers::{Stop, WorkerOptions};

/// Everything that is open of a run, however far away its time is.
async fn open_turns(bench: &Bench, run: &RunId) -> Vec<OpenTurn> {
    bench.orchestrator.ports.journal.turns_of(&Workspace::default(), run).await.unwrap()
}

/// The names of a session's open turns.
async fn open_of(bench: &Bench, session: &RunId) -> Vec<String> {
    let open = open_turns(bench, session).await.into_iter().filter(|turn| turn.key.session == *session);
    let mut names: Vec<_> = open.map(|turn| turn.key.name.to_string()).collect();
    names.sort();
    names
}

/// Waits until what was asked for is there.
async fn until(mut is_there: impl AsyncFnMut() -> bool) {
    for _ in 0..500 {
        if is_there().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came");
}

fn role(role: Role) -> WorkerOptions {
    WorkerOptions { roles: vec![role], sweep_every: Duration::from_millis(5), ..WorkerOptions::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_supervisor_stops_after_its_fan_out_and_neither_waits_nor_polls() {
    let bench = Bench::play(memory()).await;
    let scene = json!({"team": [[silent(), silent()]]});
    let run = bench.request(1, question(&scene, "supervisor"), SomeLimits::default()).await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    until(async || bench.prompter.calls.all().len() == 3).await;
    assert_eq!(open_of(&bench, &run).await, ["fanout/1/deadline"], "only the deadline is left, and it is not due");
    let all = open_turns(&bench, &run).await;
    assert_eq!(all.iter().filter(|turn| turn.due.is_none()).count(), 2, "the subagents are at work");
    serving.stop(Stop::Abandon).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_is_made_by_whoever_has_the_role_from_records_alone() {
    let store = memory();
    let agents = Bench::play(store.clone()).await;
    let scene = json!({"team": [[agent("a"), agent("b")]]});
    let run = agents.request(1, question(&scene, "supervisor"), SomeLimits::default()).await;
    let serving = Serving::start(&agents, role(Role::Agent));
    until(async || Played::of(&agents, run.clone()).await.ends().len() == 2).await;
    serving.stop(Stop::Drain).await;
    assert_eq!(open_of(&agents, &run).await, ["fanout/1/check/0", "fanout/1/check/1", "fanout/1/deadline"]);
    assert!(Played::of(&agents, run.clone()).await.joins().is_empty(), "agents do not join");
    // Another process, which has seen nothing of it.
    let aggregator = Bench::play(store).await;
    let serving = Serving::start(&aggregator, role(Role::Aggregator));
    until(async || !Played::of(&aggregator, run.clone()).await.joins().is_empty()).await;
    assert_eq!(open_of(&aggregator, &run).await, ["review/1"], "with the join its other turns are over");
    serving.stop(Stop::Drain).await;
    assert_eq!(Played::of(&aggregator, run.clone()).await.joins().len(), 1);
    assert!(aggregator.prompter.calls.all().is_empty(), "an aggregator asks no model");
    aggregator.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&aggregator, run).await;
    played.keeps_the_promises();
    assert_eq!(played.end().reason, Termination::SubagentsComplete);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_of_a_fan_out_that_nobody_knows_changes_nothing() {
    let bench = Bench::play(memory()).await;
    let run = bench.request(1, question(&agent("a"), "react"), SomeLimits::default()).await;
    let journal = &bench.orchestrator.ports.journal;
    let seen = journal.load(&Workspace::default(), &run).await.unwrap().unwrap().version;
    let stray = |name: Name| NewTurn { session: run.clone(), name, due: None };
    let commit = Commit {
        scope: Scope::default(),
        run: run.clone(),
        session: run.clone(),
        seen,
        seen_of_others: Vec::new(),
        records: Vec::new(),
        close: Vec::new(),
        open: vec![stray(Name::check(1, 0)), stray(Name::deadline(7))],
    };
    journal.commit(commit).await.unwrap();
    bench.finish(std::slice::from_ref(&run), 1).await;
    until(async || open_turns(&bench, &run).await.is_empty()).await;
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    let names: Vec<_> = played.records.iter().map(|record| record.header.name.as_str()).collect();
    assert_eq!(names, ["session", "pattern-decision", "i1", "i1/observation", "i2", "end"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_goals_with_different_results_are_all_heard() {
    // The goals are the same to the letter: only the session tells whose reply it is.
    let script = |call: &PromptCall| match call.id.as_str() {
        "supervisor-decompose" => Ok(json!({"goals": ["same", "same", "same"]}).to_string()),
        "agent-react" => Ok(format!("Final Answer: from {}", call.labels.as_ref().unwrap().session)),
        _ => play::reply(call),
    };
    let bench = bench(script, &[]).await;
    let run = bench.request(1, question(&json!({"team": [[]]}), "supervisor"), SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&bench, run.clone()).await;
    played.keeps_the_promises();
    for index in 0..3 {
        let line = format!("[finding {index}] from {}", run.child(1, index));
        assert!(played.answer().contains(&line), "{}", played.answer());
    }
}
