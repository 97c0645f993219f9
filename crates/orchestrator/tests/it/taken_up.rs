//! What others have begun and a request brings along: it goes on where it stands, and what follows can be proven.

use crate::memory;
use serde_json::{Value, json};
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::{AgentRequest, AgentStep, PlanStep, StepStatus};
use trellis_domain::record::{Accepted, Body, Name};
use trellis_domain::run::Termination;
use trellis_domain::{RunId, Scope, SessionId};
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, question};
use trellis_orchestrator::ports::{Commit, NewRecord, NewTurn, Outcome, RealWorld, World, all_due_turns};

fn planned(goal: &Value, status: StepStatus, result: &str, depends_on: &[u32]) -> PlanStep {
    PlanStep {
        goal: goal.to_string(),
        tool_hint: "search".to_owned(),
        depends_on: depends_on.to_vec(),
        status,
        result: result.to_owned(),
    }
}

fn with_plan(plan: Vec<PlanStep>) -> AgentStep {
    AgentStep { step_type: "execute".to_owned(), plan, ..AgentStep::default() }
}

async fn gone_on_with(step: AgentStep, scene: &Value, pattern: &str) -> Played {
    let bench = Bench::play(memory()).await;
    let request = AgentRequest { history: vec![step], ..question(scene, pattern) };
    let run = bench.request(1, request, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    played
}

fn names(played: &Played) -> Vec<&str> {
    let mut names: Vec<_> = played.records.iter().map(|record| record.header.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_goes_on_with_the_steps_that_are_left() {
    let tool = |say: &str| json!({"say": say, "tool": true});
    let plan = vec![
        planned(&tool("zero"), StepStatus::Completed, "fact zero", &[]),
        planned(&tool("one"), StepStatus::Pending, "", &[0]),
        planned(&json!({"say": "two"}), StepStatus::Pending, "", &[]),
        planned(&tool("three"), StepStatus::Running, "", &[0, 1]),
    ];
    let played = gone_on_with(with_plan(plan), &json!({"plan": []}), "plan-then-execute").await;
    let ours = ["step/1", "step/1/result", "step/2", "step/3", "step/3/result", "synthesis"];
    assert_eq!(names(&played)[..3], ["end", "pattern-decision", "session"]);
    assert_eq!(names(&played)[3..], ours);
    assert_eq!((played.end().reason, played.end().usage.tool_calls), (Termination::PlanComplete, 2));
    let answer = played.answer();
    assert!(answer.starts_with("[step 0] fact zero") && answer.contains("[step 3] fact \"three\""), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_revised_if_what_others_did_had_failed() {
    let first = [json!({"say": "zero", "tool": true}), json!({"say": "one", "needs": [0]})];
    let plan = vec![
        planned(&first[0], StepStatus::Failed, "no network", &[]),
        planned(&first[1], StepStatus::Pending, "", &[0]),
    ];
    let scene = json!({"plan": first, "revisions": [[{"say": "two", "tool": true}]]});
    let played = gone_on_with(with_plan(plan), &scene, "plan-then-execute").await;
    let expected = ["end", "pattern-decision", "plan/1", "session", "step/2", "step/2/result", "synthesis"];
    assert_eq!(names(&played), expected);
    assert_eq!((played.end().reason, played.end().missing.as_slice()), (Termination::PlanPartial, [0].as_slice()));
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_are_put_together_and_nobody_is_sent_out() {
    let results = [("debt", "little"), ("law", "none")].map(|(goal, found)| (goal.to_owned(), found.to_owned()));
    let joined =
        AgentStep { step_type: "synthesise".to_owned(), subagent_results: results.into(), ..AgentStep::default() };
    let played = gone_on_with(joined, &json!({"team": [[agent("a")]]}), "supervisor").await;
    assert_eq!(names(&played), ["end", "pattern-decision", "session", "synthesis"]);
    assert_eq!(played.end().reason, Termination::SubagentsComplete);
    let answer = played.answer();
    assert!(answer.starts_with("[finding 0] little (confidence: high)\n[finding 1] none"), "{answer}");
}

/// Accepts the same as this run was asked, by the rules of an earlier version.
async fn accepted_earlier(bench: &Bench, run: &RunId, earlier: SessionId) {
    const BEFORE: u32 = 7;
    let first = bench.records(run).await.remove(0);
    let accepted = first.body.as_accepted().unwrap().clone();
    let record = NewRecord {
        session: earlier.clone(),
        name: Name::session(),
        causes: Vec::new(),
        config: first.header.config,
        attempt: 1,
        time: RealWorld.now(),
        body: Body::from(Accepted { revision: BEFORE, ..accepted }),
    };
    let commit = Commit {
        scope: Scope::default(),
        run: earlier.clone(),
        session: earlier.clone(),
        seen: 0,
        seen_of_others: Vec::new(),
        records: vec![record],
        close: Vec::new(),
        open: vec![NewTurn { session: earlier, name: Name::route(), due: None }],
    };
    let outcome = bench.orchestrator.ports.journal.commit(commit).await.unwrap();
    assert!(matches!(outcome, Outcome::Committed(_)));
}

/// It goes on by its own rules, and so does whoever proves it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_began_before_makes_its_plan_anew() {
    let bench = Bench::play(memory()).await;
    let zero = json!({"say": "zero"});
    let taken = with_plan(vec![planned(&zero, StepStatus::Completed, "fact zero", &[])]);
    let request = AgentRequest { history: vec![taken], ..question(&json!({"plan": [zero]}), "plan-then-execute") };
    let run = bench.request(1, request, SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    assert_eq!(names(&Played::of(&bench, run.clone()).await), ["end", "pattern-decision", "session", "synthesis"]);

    let earlier = SessionId::new("earlier").unwrap();
    accepted_earlier(&bench, &run, earlier.clone()).await;
    loop {
        let due = all_due_turns(&*bench.orchestrator.ports.journal, RealWorld.now()).await.unwrap();
        for turn in &due {
            bench.orchestrator.handle(turn).await.unwrap();
        }
        if due.is_empty() {
            break;
        }
    }
    let played = Played::of(&bench, earlier).await;
    played.keeps_the_promises();
    assert_eq!(names(&played), ["end", "pattern-decision", "plan", "session", "step/0", "synthesis"]);
}
