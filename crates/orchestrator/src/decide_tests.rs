//! What comes before any pattern is asked: ends above, and time.

use super::*;
use std::sync::Arc;
use trellis_domain::document::Document;
use trellis_domain::fan_out::Parent;
use trellis_domain::limits::{Limits, SomeLimits};
use trellis_domain::record::{Accepted, FORMAT, Header, PromptUse, Reading, Record, Replied};
use trellis_domain::usage::Usage;
use trellis_domain::{Collection, Flow, Hash, Timestamp, Workspace};
use trellis_patterns::react::IterationNames;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_micros(ms * 1000)
}

fn record(name: Name, body: Body) -> Arc<Record> {
    let id = SessionId::new("child").unwrap();
    let header = Header {
        format: FORMAT,
        workspace: Workspace::default(),
        flow: Flow::default(),
        run: SessionId::new("root").unwrap(),
        session: id,
        name,
        seq: 1,
        version: 1,
        causes: Vec::new(),
        parents: Vec::new(),
        content: Hash::ZERO,
        config: Hash::ZERO,
        attempt: 1,
        late: false,
        trace: None,
        time: at(0),
    };
    Arc::new(Record { header, body })
}

/// A subagent that nobody waits for after 1,000 ms, in a run of at most 5,000 ms.
fn subagent() -> Session {
    subagent_of("react")
}

fn subagent_of(pattern: &str) -> Session {
    let root = SessionId::new("root").unwrap();
    let parent = Parent {
        session: root.clone(),
        correlation: "c".to_owned(),
        round: 1,
        index: 0,
        siblings: 1,
        ancestors: vec![root],
        deadline: at(1_000),
    };
    let accepted = Accepted {
        question: "why?".into(),
        request: Hash::ZERO,
        group: None,
        state: String::new(),
        collection: Collection::default(),
        streaming: false,
        conversation: None,
        pattern: Some(pattern.into()),
        task_type: None,
        framing: "".into(),
        limits: SomeLimits::default(),
        history: Vec::new(),
        request_id: None,
        earlier: Vec::new(),
        parent: Some(parent),
        by: None,
        configured: None,
        operator: None,
        revision: 0,
        mark: None,
        routed_apart: false,
        room: None,
        not_here: Vec::new(),
        selection: trellis_domain::Selection::default(),
    };
    let routed = Routed {
        task_type: "general".into(),
        pattern: pattern.into(),
        framing: "".into(),
        told: std::sync::Arc::default(),
        termination: String::new(),
        limits: Limits { run_timeout_ms: 5_000, ..Limits::default() },
        decisions: Vec::new(),
    };
    let mut session = Session::new(Arc::default(), Arc::default());
    session.apply(record(Name::session(), Body::from(accepted)));
    session.apply(record(Name::pattern_decision(), Body::Routed(routed)));
    session
}

fn answered() -> Session {
    replied(Reading::answered("42"))
}

fn replied(reading: Reading) -> Session {
    let mut session = subagent();
    let replied = Replied {
        prompt: PromptUse::default(),
        raw: "42".into(),
        parts: Vec::new(),
        stop: None,
        thought: None,
        reading,
        decision: Vec::new(),
        model: None,
        in_token: None,
        out_token: None,
        ms: 1,
        citations: Vec::new(),
        incomplete: None,
        enforced: false,
        failures: Vec::new(),
        repairs: Vec::new(),
        heard: 0,
    };
    session.apply(record(Name::iteration(1), Body::from(replied)));
    session
}

fn turn(ms: i64) -> Turn {
    Turn { name: Name::iteration(1), now: at(ms) }
}

fn ended_above(reason: Termination) -> Ended {
    Ended {
        reason,
        answer: Document::stored("x"),
        error: None,
        usage: Usage::default(),
        total: None,
        criteria: String::new(),
        missing: Vec::new(),
        outage_ms: 0,
        by: None,
        left_out: Vec::new(),
    }
}

#[track_caller]
fn reason(next: Next) -> Termination {
    match next {
        Next::Step(ShellStep::End(ending)) => ending.reason,
        other @ (Next::Step(_) | Next::FanIn(_)) => panic!("no end: {other:?}"),
    }
}

#[test]
fn a_session_in_time_does_what_its_pattern_says() {
    let next = next(&subagent(), &turn(500), None);
    assert!(matches!(next, Next::Step(ShellStep::Perform(..))), "{next:?}");
}

#[test]
fn a_pattern_that_nobody_here_knows_ends_its_session_with_the_reason() {
    let orders = orders(&subagent_of("delphi"), &Turn { name: Name::new("ask/1"), now: at(500) });
    let [Order::End(ending)] = &orders[..] else { panic!("{orders:?}") };
    assert!(ending.error.as_ref().unwrap().contains("no pattern `delphi`"), "{ending:?}");
}

#[test]
fn below_an_ended_session_there_is_only_an_end() {
    let below = |above| reason(next(&subagent(), &turn(500), Some(&ended_above(above))));
    assert_eq!(below(Termination::Timeout), Termination::Timeout);
    assert_eq!(below(Termination::Cancelled), Termination::Cancelled);
    assert_eq!(below(Termination::Error), Termination::Cancelled);
    let asked = reason(next(&answered(), &turn(500), Some(&ended_above(Termination::Error))));
    assert_eq!(asked, Termination::Cancelled, "even if it has an answer: nobody would read it");
}

#[test]
fn nothing_more_is_paid_for_a_subagent_that_nobody_waits_for() {
    assert_eq!(reason(next(&subagent(), &turn(1_000), None)), Termination::Timeout);
}

#[test]
fn an_answer_that_is_recorded_counts_although_the_time_is_over() {
    assert_eq!(reason(next(&answered(), &turn(1_001), None)), Termination::FinalAnswer);
    assert_eq!(reason(next(&answered(), &turn(9_000), None)), Termination::FinalAnswer);
}

#[test]
fn a_fan_in_of_a_run_without_time_ends_the_session() {
    let check = Turn { name: Name::check(1, 0), now: at(500) };
    assert!(matches!(next(&subagent(), &check, None), Next::FanIn(1)));
    let late = Turn { name: Name::deadline(1), now: at(5_001) };
    assert_eq!(reason(next(&subagent(), &late, None)), Termination::Timeout);
}

/// The call was given up because the run had no time left: that is a limit, and nothing that went wrong.
#[test]
fn a_call_that_is_given_up_at_the_end_of_the_time_ends_the_run_at_its_limit() {
    let session = replied(Reading::Failed { reason: "the model did not answer in time".to_owned() });
    assert_eq!(reason(next(&session, &turn(500), None)), Termination::Error);
    assert_eq!(reason(next(&session, &turn(1_000), None)), Termination::Timeout);
    assert_eq!(reason(next(&session, &turn(5_000), None)), Termination::Timeout);
}
