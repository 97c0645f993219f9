//! A session that waits for a person: a record, no worker, an answer by anybody who may, and an end to the waiting.

use crate::{memory, promises::Serving};
use serde_json::json;
use std::time::Duration;
use trellis_domain::config::StoredItem;
use trellis_domain::limits::SomeLimits;
use trellis_domain::record::{Name, Record};
use trellis_domain::run::RunState;
use trellis_domain::{Caller, RunId, SessionId, Surface, Workspace};
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::contract::teams::{Played, agent, question};
use trellis_orchestrator::workers::{Stop, WorkerOptions};
use trellis_orchestrator::{Answering, Cancelling, DecideError};

const HOUR: u64 = 3_600_000;

/// A bench whose only tool needs approval.
async fn bench(timeout_ms: u64, approvers: &[&str]) -> Bench {
    let bench = Bench::play(memory()).await;
    let tool = json!({
        "type": "text-completion", "name": "search", "description": "finds facts", "requires-approval": true,
        "approval-timeout-ms": timeout_ms, "approvers": approvers,
    });
    let item = StoredItem { kind: "tool".to_owned(), key: "search".to_owned(), value: tool.to_string() };
    bench.orchestrator.ports.config.put(&Workspace::default(), vec![item], Caller::program()).await.unwrap();
    bench
}

fn ada() -> Caller {
    Caller::new(Some("ada".to_owned()), Surface::CommandLine)
}

pub(crate) fn answering(choice: &str) -> Answering {
    Answering {
        question: None,
        choice: choice.to_owned(),
        reason: None,
        arguments: None,
        result: None,
        content: None,
        by: ada(),
    }
}

pub(crate) async fn decide(bench: &Bench, run: &RunId, answer: &Answering) -> Result<SessionId, DecideError> {
    let answered = bench.runs().decide(&Workspace::default(), run, answer).await?;
    Ok(answered.session)
}

pub(crate) async fn until_waiting(bench: &Bench, run: &RunId, questions: usize) {
    for _ in 0..1_000 {
        let summary = bench.summary(run).await;
        if summary.state == RunState::Waiting && summary.parked.len() == questions {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it never waited for {questions}: {:?}", bench.summary(run).await);
}

pub(crate) fn names(records: &[std::sync::Arc<Record>]) -> String {
    records.iter().map(|record| record.header.name.as_str()).collect::<Vec<_>>().join(" ")
}

/// A run whose call was approved by somebody who may, with other arguments.
pub(crate) async fn approved() -> Played {
    let bench = bench(HOUR, &["ada"]).await;
    let run = bench.request(1, question(&agent("so"), "react"), SomeLimits::default()).await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    until_waiting(&bench, &run, 1).await;
    let edited = json!({"question": "something else"}).as_object().cloned();
    let approval = Answering { arguments: edited, reason: Some("it is cheap".to_owned()), ..answering("approve") };
    decide(&bench, &run, &approval).await.unwrap();
    bench.follow(&run).await;
    serving.stop(Stop::Drain).await;
    Played::of(&bench, run).await
}

/// A run whose call nobody approved in time.
pub(crate) async fn expired() -> Played {
    let bench = bench(50, &[]).await;
    let run = bench.request(1, question(&agent("so"), "react"), SomeLimits::default()).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    Played::of(&bench, run).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_needs_approval_waits_without_a_worker_and_goes_on_with_the_answer() {
    let bench = bench(HOUR, &[]).await;
    let run = bench.request(1, question(&agent("so"), "react"), SomeLimits::default()).await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    until_waiting(&bench, &run, 1).await;
    assert!(bench.tools.calls.all().is_empty(), "nothing is called before somebody agrees");
    let open = bench.orchestrator.ports.journal.turns_of(&Workspace::default(), &run).await.unwrap();
    assert_eq!(open.iter().map(|turn| turn.key.name.as_str()).collect::<Vec<_>>(), ["park/1/expiry"]);
    assert!(bench.orchestrator.ports.journal.in_hand(&Workspace::default()).await.unwrap().is_empty());
    let wrong = decide(&bench, &run, &answering("perhaps")).await.unwrap_err().to_string();
    assert_eq!(wrong, "`perhaps` is not one of the options; choose one of approve, deny");
    let edited = json!({"question": "something else"}).as_object().cloned();
    let approval = Answering { arguments: edited, reason: Some("it is cheap".to_owned()), ..answering("approve") };
    decide(&bench, &run, &approval).await.unwrap();
    bench.follow(&run).await;
    serving.stop(Stop::Drain).await;
    let played = Played::of(&bench, run.clone()).await;
    played.keeps_the_promises();
    assert_eq!(names(&played.records), "session pattern-decision i1 park/1 park/1/decision i1/observation i2 end");
    let observed = played.records.iter().find_map(|record| record.body.as_observed()).unwrap();
    let result = observed.result.as_ref().map(|result| result.text().to_owned());
    assert_eq!(result.as_deref(), Some("fact \"something else\""), "called as the person wished");
    let settled = played.records.iter().find_map(|record| record.body.as_settled()).unwrap();
    assert_eq!(settled.by, Some(ada()), "who decided is on record");
    let again = decide(&bench, &run, &answering("deny")).await.unwrap_err().to_string();
    assert_eq!(again, "the run has ended (answered); there is nothing to decide");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_denied_is_not_called_and_the_model_is_told() {
    let bench = bench(HOUR, &["ada"]).await;
    let run = bench.request(1, question(&agent("so"), "reflexion"), SomeLimits::default()).await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    until_waiting(&bench, &run, 1).await;
    let stranger = Answering { by: Caller::new(Some("bob".to_owned()), Surface::Api), ..answering("approve") };
    let refused = decide(&bench, &run, &stranger).await.unwrap_err().to_string();
    assert_eq!(refused, "this is for ada to decide");
    let denial = Answering { reason: Some("too dear".to_owned()), ..answering("deny") };
    decide(&bench, &run, &denial).await.unwrap();
    bench.follow(&run).await;
    serving.stop(Stop::Drain).await;
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    assert!(bench.tools.calls.all().is_empty());
    let observed = played.records.iter().find_map(|record| record.body.as_observed()).unwrap();
    let told = observed.error.clone().unwrap();
    assert!(told.starts_with("the tool `search` was not called;") && told.ends_with(": too dear"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_waited_for_for_ever() {
    let bench = bench(50, &[]).await;
    let limits = SomeLimits { run_timeout_ms: Some(600_000), ..SomeLimits::default() };
    let run = bench.request(1, question(&agent("so"), "react"), limits).await;
    bench.finish(std::slice::from_ref(&run), 1).await;
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    let settled = played.records.iter().find_map(|record| record.body.as_settled()).unwrap();
    assert_eq!((settled.by.clone(), settled.decision.chosen.as_slice()), (None, ["deny".to_owned()].as_slice()));
    assert!(bench.tools.calls.all().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn several_agents_of_a_team_wait_and_are_answered_one_by_one_or_cancelled() {
    let bench = bench(HOUR, &[]).await;
    let scene = json!({"team": [[agent("a"), {"plan": [{"say": "x", "tool": true}, {"say": "y", "tool": true}]}]]});
    let run = bench.request(1, question(&scene, "supervisor"), SomeLimits::default()).await;
    let serving = Serving::start(&bench, WorkerOptions::default());
    until_waiting(&bench, &run, 3).await;
    let several = decide(&bench, &run, &answering("approve")).await.unwrap_err();
    let DecideError::Several(open) = several else { panic!("{several}") };
    assert_eq!(open.len(), 3);
    let parked = bench.summary(&run).await.parked;
    for (session, number) in &parked[1..] {
        let one = Answering { question: Some((session.clone(), *number)), ..answering("approve") };
        decide(&bench, &run, &one).await.unwrap();
        assert!(matches!(
            decide(&bench, &run, &one).await.unwrap_err(),
            DecideError::AlreadyDecided { .. } | DecideError::NothingToDecide | DecideError::Ended(_)
        ));
    }
    until_waiting(&bench, &run, 1).await;
    let cancelled = bench.runs().cancel(&Workspace::default(), &run, &ada()).await.unwrap();
    assert_eq!(cancelled, Cancelling::Cancelled);
    serving.stop(Stop::Drain).await;
    let summary = bench.summary(&run).await;
    assert_eq!((summary.state, summary.parked.len()), (RunState::Cancelled, 0));
    let open = bench.orchestrator.ports.journal.turns_of(&Workspace::default(), &run).await.unwrap();
    assert!(open.is_empty(), "{open:?}");
    let played = Played::of(&bench, run).await;
    played.keeps_the_promises();
    assert!(played.records.iter().any(|record| record.header.name == Name::park(1)));
}
