//! Supervisors and their subagents as neighbours see them.

use super::tests::{ITEMS, begun, decide, full, reply, sent, through_the_broker};
use super::*;
use crate::contract::{Ending, Order};
use crate::fixture::{Fixture, settings};
use crate::react::IterationNames;
use crate::supervisor::TeamNames;
use crate::synthesis::SynthesisName;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use trellis_domain::Caller;
use trellis_domain::fan_out::{FannedOut, Goal, JoinCause, Joined, Member};
use trellis_domain::record::{Body, Routed};
use trellis_domain::run::Termination;
use trellis_domain::told::Told;
use trellis_domain::usage::Usage;

const GOALS: &str = r#"{"goals": [{"goal": "debt", "context": "Look at 2025."}, "law", "law"]}"#;

/// Sends out the goals that the reply names, and gives the fan-out.
#[track_caller]
fn send_out(fixture: &mut Fixture, name: &Name, text: &str) -> FannedOut {
    reply(fixture, name, text);
    let Some(Order::FanOut(fan_out)) = decide(fixture, name).pop() else { panic!("no fan-out") };
    fixture.record(Name::fan_out(fan_out.round), Body::FannedOut(*fan_out.clone()));
    *fan_out
}

fn join(fixture: &mut Fixture, fan_out: &FannedOut, reasons: &[Termination]) {
    let member = |(goal, reason): (&Goal, &Termination)| Member {
        index: goal.index,
        session: goal.session.clone(),
        goal: goal.goal.clone(),
        reason: *reason,
        answer: Document::stored(if reason.is_answer() { format!("answer {}", goal.index) } else { String::new() }),
        error: (!reason.is_answer()).then(|| "too late".to_owned()),
        usage: Usage::default(),
    };
    let members = fan_out.goals.iter().zip(reasons).map(member).collect();
    let (round, correlation) = (fan_out.round, fan_out.correlation.clone());
    let joined = Joined { round, correlation, cause: JoinCause::AllEnded, members, outage_ms: 0 };
    fixture.record(Name::join(round), Body::Joined(joined));
}

/// A run that began under earlier rules has what people said at the end of the framing, and is proven by them.
#[test]
fn what_people_said_reaches_subagents_by_the_rules_that_the_run_began_under() {
    const FRAMING: &str = "Be brief.\n\nLook at 2025.";
    const SAID: &str = "New message from the person who asked: only Europe";
    for (revision, framing, told) in [(4, format!("{FRAMING}\n\n{SAID}"), ""), (5, FRAMING.to_owned(), SAID)] {
        let mut supervisor = Fixture::routed(settings(&ITEMS), Accepted { revision, ..full("supervisor") });
        let said = Told { text: "only Europe".into(), by: Caller::program() };
        supervisor.record(Name::told(1), Body::Told(said));
        let fan_out = send_out(&mut supervisor, &Name::decompose(), GOALS);
        let (_, routed) = crate::fan_out::child(&supervisor.session, &fan_out, &fan_out.goals[0]).unwrap();
        assert_eq!((&*routed.framing, &*routed.told), (framing.as_str(), told), "revision {revision}");
    }
}

#[test]
fn a_subagents_first_request_names_goal_fan_out_parent_and_siblings() {
    let mut supervisor = begun("supervisor");
    assert_eq!(sent(&supervisor, &Name::decompose()).history.len(), 1);
    let fan_out = send_out(&mut supervisor, &Name::decompose(), GOALS);
    let subagent = Fixture::subagent(&supervisor.session, &fan_out, 0);
    let sent = sent(&subagent, &Name::iteration(1));
    let expected = AgentRequest {
        question: "debt".into(),
        state: "undefined".into(),
        group: Some(vec!["default".into(), "read".into()]),
        history: Vec::new(),
        collection: "papers".into(),
        streaming: true,
        session_id: fan_out.goals[0].session.as_str().into(),
        conversation_id: "talk-1".into(),
        pattern: "react".into(),
        task_type: "general".into(),
        framing: "Be brief.\n\nLook at 2025.".into(),
        correlation_id: fan_out.correlation.clone(),
        parent_session_id: "S".into(),
        subagent_goal: "debt".into(),
        expected_siblings: 3,
    };
    assert_eq!(sent, expected);
    assert!(is_subagent(&sent));
    assert_eq!(turn_of(&sent), WireTurn::New);
}

#[test]
fn the_request_after_a_join_names_the_correlation_and_carries_the_results() {
    let mut fixture = begun("supervisor");
    let fan_out = send_out(&mut fixture, &Name::decompose(), GOALS);
    join(&mut fixture, &fan_out, &[Termination::FinalAnswer; 3]);
    for name in [Name::review(1), Name::synthesis()] {
        let sent = sent(&fixture, &name);
        assert_eq!(
            (sent.question.as_str(), sent.session_id.as_str(), sent.pattern.as_str()),
            ("why?", "S", "supervisor")
        );
        assert_eq!((sent.conversation_id.as_str(), sent.streaming), ("talk-1", true));
        assert_eq!(
            (sent.correlation_id.as_str(), sent.parent_session_id.as_str(), sent.expected_siblings),
            ("", "", 0)
        );
        let [brought, decomposed, joined] = sent.history.as_slice() else { panic!("{:?}", sent.history) };
        assert_eq!(brought.action, "a");
        assert_eq!((decomposed.step_type.as_str(), decomposed.action.as_str()), ("decompose", "decompose"));
        assert_eq!(decomposed.observation, r#"["debt","law","law"]"#);
        assert!(decomposed.thought.starts_with("Decomposed into 3"), "{}", decomposed.thought);
        assert_eq!(
            (joined.thought.as_str(), joined.action.as_str(), joined.step_type.as_str()),
            ("All subagents completed", "aggregate", "synthesise")
        );
        let named: Value = serde_json::from_str(&joined.observation).unwrap();
        assert_eq!(named, json!({ "correlation_id": fan_out.correlation }));
        let results = [("debt", "answer 0"), ("law", "answer 1"), ("law [2]", "answer 2")];
        let results = results.map(|(goal, result)| (goal.to_owned(), result.to_owned()));
        assert_eq!(joined.subagent_results, BTreeMap::from(results), "equal goals do not hide each other");
        let expected = WireTurn::Synthesis { session: "S".into(), correlation: fan_out.correlation.clone() };
        assert_eq!(turn_of(&sent), expected);
    }
}

#[test]
fn subagents_that_did_not_complete_are_flagged() {
    let mut fixture = begun("supervisor");
    let fan_out = send_out(&mut fixture, &Name::decompose(), GOALS);
    join(&mut fixture, &fan_out, &[Termination::FinalAnswer, Termination::Timeout, Termination::Error]);
    let step = sent(&fixture, &Name::synthesis()).history.pop().unwrap();
    assert_eq!(step.thought, "Some subagents did not complete");
    assert_eq!(step.subagent_results["law"], "(incomplete: too late)");
}

#[test]
fn a_second_round_follows_the_first_and_is_the_one_that_is_meant() {
    let mut fixture = begun("supervisor");
    let first = send_out(&mut fixture, &Name::decompose(), GOALS);
    join(&mut fixture, &first, &[Termination::FinalAnswer; 3]);
    let again = r#"{"decision": "again", "reason": "no tax yet", "goals": ["tax"]}"#;
    let second = send_out(&mut fixture, &Name::review(1), again);
    join(&mut fixture, &second, &[Termination::FinalAnswer]);
    let sent = sent(&fixture, &Name::review(2));
    let kinds: Vec<_> = sent.history.iter().map(|step| step.step_type.as_str()).collect();
    assert_eq!(kinds, ["", "decompose", "synthesise", "decompose", "synthesise"]);
    assert!(sent.history[3].thought.contains("no tax yet"), "{}", sent.history[3].thought);
    assert_eq!(turn_of(&sent), WireTurn::Synthesis { session: "S".into(), correlation: second.correlation });
}

#[test]
fn a_supervisor_below_another_stays_a_subagent_after_its_join() {
    let mut above = begun("supervisor");
    let outer =
        send_out(&mut above, &Name::decompose(), r#"{"goals": [{"goal": "debt", "pattern": "supervisor"}, "law"]}"#);
    let mut nested = Fixture::subagent(&above.session, &outer, 0);
    nested.become_routed(Routed { pattern: "supervisor".into(), ..nested.session.routed().unwrap().clone() });
    let inner = send_out(&mut nested, &Name::decompose(), r#"["a", "b"]"#);
    join(&mut nested, &inner, &[Termination::FinalAnswer; 2]);
    let sent = sent(&nested, &Name::synthesis());
    assert_eq!((sent.correlation_id.as_str(), sent.parent_session_id.as_str()), (outer.correlation.as_str(), "S"));
    let session = outer.goals[0].session.as_str().to_owned();
    assert_eq!(turn_of(&sent), WireTurn::Synthesis { session, correlation: inner.correlation }, "not a completion");
}

fn end(fixture: &mut Fixture, ending: Ending) {
    let ended = ending.into_ended(&fixture.session, trellis_domain::Timestamp::from_micros(0));
    fixture.record(Name::end(), Body::from(ended));
}

#[test]
fn an_ended_subagent_tells_its_answer_in_exactly_one_step() {
    let mut supervisor = begun("supervisor");
    let fan_out = send_out(&mut supervisor, &Name::decompose(), GOALS);
    let mut subagent = Fixture::subagent(&supervisor.session, &fan_out, 1);
    assert_eq!(completion(&subagent.session), None, "not before its end");
    end(&mut subagent, Ending::answered(Termination::FinalAnswer, "42"));
    let sent = through_the_broker(&completion(&subagent.session).unwrap());
    let step = AgentStep {
        thought: "Subagent completed".into(),
        action: "complete".into(),
        observation: "42".into(),
        step_type: "subagent-completion".into(),
        ..AgentStep::default()
    };
    let session = fan_out.goals[1].session.as_str().to_owned();
    let expected = AgentRequest {
        question: "law".into(),
        group: Some(vec!["default".into(), "read".into()]),
        history: vec![step],
        collection: "papers".into(),
        session_id: session.clone(),
        conversation_id: "talk-1".into(),
        correlation_id: fan_out.correlation.clone(),
        parent_session_id: "S".into(),
        subagent_goal: "law".into(),
        expected_siblings: 3,
        ..AgentRequest::default()
    };
    assert_eq!(sent, expected);
    assert_eq!(turn_of(&sent), WireTurn::Completion { session, correlation: fan_out.correlation });
}

#[test]
fn a_subagent_that_failed_tells_that_too() {
    let mut supervisor = begun("supervisor");
    let fan_out = send_out(&mut supervisor, &Name::decompose(), GOALS);
    let told = |ending: Ending| {
        let mut subagent = Fixture::subagent(&supervisor.session, &fan_out, 0);
        end(&mut subagent, ending);
        completion(&subagent.session).unwrap().history.remove(0)
    };
    let failed = told(Ending::failed(Termination::Error, "no network"));
    assert_eq!(
        (failed.thought.as_str(), failed.observation.as_str()),
        ("Subagent did not complete", "Error: no network")
    );
    let stopped = told(Ending { error: Some("e".into()), ..Ending::answered(Termination::MaxIterations, "so far: x") });
    assert_eq!(stopped.observation, "so far: x");
}

#[test]
fn nobody_is_told_of_the_end_of_a_root() {
    let mut fixture = begun("react");
    end(&mut fixture, Ending::answered(Termination::FinalAnswer, "42"));
    assert_eq!(completion(&fixture.session), None);
}
