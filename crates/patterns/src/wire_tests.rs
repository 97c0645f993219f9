//! Requests as neighbours see them, and requests as they send them.

use super::*;
use crate::contract::Order;
use crate::fixture::{Fixture, question, settings, turn};
use crate::react::IterationNames;
use crate::registry::pattern;
use serde_json::json;
use std::collections::BTreeMap;
use trellis_domain::broker;
use trellis_domain::{Collection, ConversationId, PatternName};

pub(super) const ITEMS: [(&str, &str, &str); 2] = [
    ("tool", "search", r#"{"type":"text-completion","state":"searched"}"#),
    ("agent-task-type", "general", r#"{"framing":"Be brief."}"#),
];

/// A request with everything that a caller can set.
pub(super) fn full(pattern: &str) -> Accepted {
    let brought =
        AgentStep { thought: "t".into(), action: "a".into(), observation: "o".into(), ..AgentStep::default() };
    Accepted {
        group: Some(vec!["default".into(), "read".into()]),
        collection: Collection::new("papers").unwrap(),
        conversation: Some(ConversationId::new("talk-1").unwrap()),
        pattern: PatternName::given(pattern),
        history: vec![brought],
        ..question("why?")
    }
}

pub(super) fn begun(pattern: &str) -> Fixture {
    Fixture::routed(settings(&ITEMS), full(pattern))
}

pub(super) fn decide(fixture: &Fixture, name: &Name) -> Vec<Order> {
    pattern(&fixture.session.routed().unwrap().pattern).unwrap().decide(&fixture.session, &turn(name.clone()))
}

#[track_caller]
pub(super) fn reply(fixture: &mut Fixture, name: &Name, text: &str) {
    fixture.reply(&decide(fixture, name), text);
}

/// The request of a turn, after it has been written and read in the broker's dialect.
#[track_caller]
pub(super) fn sent(fixture: &Fixture, name: &Name) -> AgentRequest {
    through_the_broker(&request(&fixture.session, name).expect("the turn has a request"))
}

pub(super) fn through_the_broker(request: &AgentRequest) -> AgentRequest {
    let text = broker::request(request).to_string();
    let read: AgentRequest = serde_json::from_str(&text).unwrap();
    assert_eq!(read, *request, "nothing is lost on the way");
    read
}

#[test]
fn a_turn_carries_on_what_the_session_began_with() {
    let sent = sent(&begun("react"), &Name::iteration(1));
    let expected = AgentRequest {
        question: "why?".into(),
        state: "undefined".into(),
        group: Some(vec!["default".into(), "read".into()]),
        history: full("").history,
        collection: "papers".into(),
        streaming: true,
        session_id: "S".into(),
        conversation_id: "talk-1".into(),
        pattern: "react".into(),
        task_type: "general".into(),
        framing: "Be brief.".into(),
        ..AgentRequest::default()
    };
    assert_eq!(sent, expected);
    assert_eq!(turn_of(&sent), WireTurn::Continuation);
}

#[test]
fn each_iteration_becomes_a_step_of_the_history() {
    let mut fixture = begun("react");
    let first = Name::iteration(1);
    let arguments =
        json!({"question": "x \"y\"", "n": 3, "f": 1.5, "b": true, "z": null, "list": [1, "two"], "o": {"k": 1}});
    reply(&mut fixture, &first, &format!("Thought: look\nAction: search\nArgs: {arguments}"));
    fixture.observe(Name::observation(1), Ok("found"), Some("searched"));
    assert_eq!(sent(&fixture, &first).history.len(), 1, "an iteration is not part of its own history");
    reply(&mut fixture, &Name::iteration(2), "Thought: I wonder.");
    fixture.report(&decide(&fixture, &Name::iteration(2)));
    let sent = sent(&fixture, &Name::iteration(3));
    assert_eq!(sent.state, "searched");
    let [brought, step, unreadable] = sent.history.as_slice() else { panic!("{:?}", sent.history) };
    assert_eq!(brought.action, "a");
    assert_eq!(
        (step.thought.as_str(), step.action.as_str(), step.observation.as_str(), step.step_type.as_str()),
        ("look", "search", "found", "react")
    );
    let texts: BTreeMap<_, _> = step.arguments.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let expected = [
        ("question", "x \"y\""),
        ("n", "3"),
        ("f", "1.5"),
        ("b", "true"),
        ("z", "null"),
        ("list", r#"[1,"two"]"#),
        ("o", r#"{"k":1}"#),
    ];
    assert_eq!(texts, BTreeMap::from(expected));
    assert_eq!((unreadable.action.as_str(), unreadable.arguments.len()), ("__parse_error__", 0));
    assert!(unreadable.observation.starts_with("Error: "));
}

#[test]
fn before_routing_a_request_says_what_the_caller_said_and_afterwards_what_was_chosen() {
    let research = ("agent-task-type", "research", r#"{"framing":"Cite."}"#);
    let settings = settings(&[ITEMS[0], ITEMS[1], research]);
    let mut fixture = Fixture::begun(settings, Accepted { history: Vec::new(), ..full("") });
    let unrouted = sent(&fixture, &Name::route());
    assert_eq!((unrouted.pattern.as_str(), unrouted.task_type.as_str(), unrouted.framing.as_str()), ("", "", ""));
    assert_eq!((unrouted.history.len(), turn_of(&unrouted)), (0, WireTurn::New));
    let route = |fixture: &Fixture| crate::router::decide(&fixture.session, &turn(Name::route()));
    fixture.reply(&route(&fixture), "research");
    let Some(Order::Become(routed)) = route(&fixture).pop() else { panic!("not routed") };
    fixture.become_routed(*routed);
    let routed = sent(&fixture, &Name::iteration(1));
    assert_eq!(
        (routed.pattern.as_str(), routed.task_type.as_str(), routed.framing.as_str()),
        ("react", "research", "Cite.")
    );
}

#[test]
fn turns_of_fan_ins_are_not_requests() {
    let fixture = begun("supervisor");
    for name in [Name::check(1, 0), Name::deadline(1), Name::end()] {
        assert_eq!(request(&fixture.session, &name), None, "{name}");
    }
}

fn step_of(kind: &str) -> AgentStep {
    AgentStep { step_type: kind.into(), ..AgentStep::default() }
}

#[test]
fn incoming_requests_are_told_apart_by_their_fields() {
    let incoming = |correlation: &str, pattern: &str, history: Vec<AgentStep>| {
        turn_of(&AgentRequest {
            session_id: "s".into(),
            correlation_id: correlation.into(),
            pattern: pattern.into(),
            history,
            ..AgentRequest::default()
        })
    };
    let completion = WireTurn::Completion { session: "s".into(), correlation: "c".into() };
    assert_eq!(incoming("c", "", vec![step_of("subagent-completion")]), completion);
    assert_eq!(incoming("c", "", vec![step_of("react"), step_of("subagent-completion"), step_of("")]), completion);
    assert_eq!(incoming("", "", vec![step_of("subagent-completion")]), WireTurn::Continuation, "of no fan-out");
    assert_eq!(incoming("c", "react", vec![step_of("react")]), WireTurn::Continuation, "a subagent goes on");
    assert_eq!(incoming("c", "react", Vec::new()), WireTurn::New);
    assert_eq!(incoming("", "", Vec::new()), WireTurn::New);
    assert_eq!(incoming("", "", vec![step_of("")]), WireTurn::Continuation);
    assert_eq!(incoming("", "supervisor", vec![step_of("synthesise")]), WireTurn::Continuation, "it joins nothing");
}

#[test]
fn a_synthesis_is_known_by_its_correlation_or_as_the_original_writes_it_by_its_results() {
    let incoming = |observation: &str, results: &[(&str, &str)]| {
        let results = results.iter().map(|(goal, result)| ((*goal).to_owned(), (*result).to_owned())).collect();
        let step = AgentStep { observation: observation.into(), subagent_results: results, ..step_of("synthesise") };
        turn_of(&AgentRequest { session_id: "s".into(), history: vec![step], ..AgentRequest::default() })
    };
    let synthesis = |correlation: &str| WireTurn::Synthesis { session: "s".into(), correlation: correlation.into() };
    assert_eq!(incoming(r#"{"correlation_id": "c"}"#, &[]), synthesis("c"));
    assert_eq!(incoming(r#"{"correlation_id": "c"}"#, &[("g", "r")]), synthesis("c"));
    assert_eq!(incoming(r#"{"g": "r"}"#, &[("g", "r")]), synthesis(""));
    assert_eq!(incoming("not json", &[("g", "r")]), synthesis(""));
    for names_nothing in [r#"{"correlation_id": 3}"#, r#"{"correlation_id": ""}"#, "{}", ""] {
        assert_eq!(incoming(names_nothing, &[]), WireTurn::Continuation, "{names_nothing}");
    }
}
