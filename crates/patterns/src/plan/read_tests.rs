//! How replies are understood, and what is said about those that are not.

use super::read::{read_plan, read_revision, read_step};
use super::{PlanRules, PlannedStep};
use crate::plan::PlanDecision;
use crate::plan::StepAside;
use crate::reader::ReadReply;
use serde_json::json;
use trellis_domain::decision::{DecidedBy, Decision, DecisionKind, Enforcement};
use trellis_domain::document::Document;
use trellis_domain::record::Reading;

fn offered(kind: DecisionKind, options: &[&str]) -> Vec<Decision> {
    vec![Decision {
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
    }]
}

fn step(raw: &str) -> ReadReply {
    read_step(raw, "Step 2: look", offered(DecisionKind::Tool, &["search", "sum", "none"]))
}

fn revision(raw: &str) -> ReadReply {
    let rules = PlanRules { first: 3, finished: vec![0, 1], most: 5 };
    read_revision(raw, &rules, offered(DecisionKind::Replan, &["keep", "revise"]))
}

fn plan(raw: &str) -> ReadReply {
    read_plan(raw, &PlanRules { first: 0, finished: Vec::new(), most: 5 }, Vec::new())
}

fn thought(reply: &ReadReply) -> &str {
    reply.thought.as_ref().map_or("", Document::text)
}

#[track_caller]
fn reason(reply: &ReadReply) -> &str {
    let Reading::Unusable { reason } = &reply.reading else { panic!("{:?}", reply.reading) };
    reason
}

#[track_caller]
fn steps(reply: &ReadReply) -> Vec<PlannedStep> {
    let planning = PlanDecision::of(&reply.reading).unwrap_or_else(|| panic!("{:?}", reply.reading));
    planning.steps.unwrap()
}

#[track_caller]
fn goals(reply: &ReadReply) -> Vec<String> {
    steps(reply).into_iter().map(|step| step.goal).collect()
}

#[test]
fn a_plan_is_read_in_whatever_form_it_comes() {
    for raw in [
        r#"{"steps": [{"goal": "a", "tool_hint": null, "depends_on": []}, {"goal": "b", "depends_on": [0]}]}"#,
        r#"[{"step": "a"}, {"description": "b", "dependencies": ["0"]}]"#,
        r#"["a", "b"]"#,
        r#"{"plan": [{"task": "a"}, "b"]}"#,
        r#"{"plan": {"steps": ["a", "b"]}}"#,
        r#"[{"steps": ["a", "b"]}]"#,
        "Here it is:\n```json\n[\"a\", \"b\"]\n```",
    ] {
        let reply = plan(raw);
        assert_eq!(goals(&reply), ["a", "b"], "{raw}");
        assert_eq!(thought(&reply), "Created plan with 2 steps");
    }
    assert_eq!(goals(&plan(r#"My plan: [{"goal": "a"}]"#)), ["a"]);
}

#[test]
fn a_plan_without_steps_is_told_to_the_planner() {
    assert!(reason(&plan("I would look around.")).starts_with("it is not JSON"));
    for raw in ["[]", r#"{"steps": []}"#, "[1, null, {}]", r#"[{"goal": "  "}]"#] {
        assert!(reason(&plan(raw)).starts_with("the plan has no step"), "{raw}");
    }
    for raw in ["{}", "7", r#"{"steps": "look"}"#] {
        assert!(reason(&plan(raw)).starts_with("the reply has no list of steps"), "{raw}");
    }
}

#[test]
fn a_step_names_a_tool_and_its_arguments() {
    for raw in [
        r#"{"tool": "search", "arguments": {"question": "x"}}"#,
        r#"[{"tool": "search", "arguments": {"question": "x"}}]"#,
        r#"{"tool": " `Search` ", "arguments": "{\"question\": \"x\"}", "answer": "", "surprising": null}"#,
        "I will look.\n{\"tool\": \"search\", \"arguments\": {\"question\": \"x\"}}",
    ] {
        let reply = step(raw);
        let Reading::Acted { tool, arguments, value, .. } = &reply.reading else { panic!("{raw}: {reply:?}") };
        assert_eq!((tool.as_str(), value), ("search", &serde_json::Value::Null));
        assert_eq!(json!(arguments), json!({"question": "x"}));
        assert_eq!(thought(&reply), "Step 2: look → calling search");
        assert_eq!(reply.decisions[0].chosen, ["search"]);
    }
}

#[test]
fn arguments_may_be_left_out() {
    for arguments in ["null", "{}", r#""""#, r#""{}""#] {
        let reply = step(&format!(r#"{{"tool": "sum", "arguments": {arguments}}}"#));
        assert!(matches!(&reply.reading, Reading::Acted { arguments, .. } if arguments.is_empty()), "{reply:?}");
    }
    assert!(matches!(step(r#"{"tool": "sum"}"#).reading, Reading::Acted { .. }));
}

#[test]
fn a_step_without_a_tool_answers() {
    for raw in [
        r#"{"tool": "none", "answer": "42"}"#,
        r#"{"tool": null, "arguments": 7, "answer": "42"}"#,
        r#"{"tool": "", "answer": " 42 "}"#,
        r#"{"answer": 42}"#,
        r#"{"tool": "None", "answer": "42", "surprising": false}"#,
    ] {
        let reply = step(raw);
        let Some(answer) = reply.reading.text() else { panic!("{raw}: {reply:?}") };
        assert_eq!(answer.text(), "42");
        assert_eq!(thought(&reply), "Step 2: look → no tool needed");
        assert_eq!(reply.decisions[0].chosen, ["none"]);
    }
}

#[test]
fn a_step_can_say_that_it_is_surprised() {
    for word in ["true", r#""True""#] {
        let reply = step(&format!(r#"{{"tool": "sum", "arguments": {{}}, "surprising": {word}}}"#));
        assert!(reply.reading.call().is_some() && StepAside::of(&reply.reading).surprising, "{reply:?}");
    }
}

#[test]
fn a_tool_outside_the_set_is_not_chosen_and_the_reply_is_kept_as_rejected() {
    let reply = step(r#"{"tool": "telepathy", "arguments": {}}"#);
    assert_eq!(reason(&reply), "there is no tool `telepathy`; name one of search, sum, none");
    assert!(reply.decisions[0].chosen.is_empty());
    assert_eq!(reply.decisions[0].rejected.as_ref().map(Document::text), Some("telepathy"));
}

#[test]
fn what_a_step_got_wrong_is_told() {
    assert!(reason(&step("I would search.")).contains("reply with one JSON object"));
    assert!(reason(&step("[]")).contains("not one object"));
    assert!(reason(&step(r#"[{"tool": "sum"}, {"tool": "sum"}]"#)).contains("not one object"));
    assert!(reason(&step(r#"{"tool": 3}"#)).contains("not the name of a tool"));
    assert!(reason(&step(r#"{"tool": "none"}"#)).starts_with("neither a tool nor an answer"));
    assert!(reason(&step("{}")).starts_with("neither a tool nor an answer"));
    for arguments in ["[1]", "3", r#""x=1""#, r#""[1]""#] {
        let reply = step(&format!(r#"{{"tool": "sum", "arguments": {arguments}}}"#));
        assert!(reason(&reply).starts_with("`arguments` is not a JSON object"), "{arguments}");
        assert!(reply.decisions[0].chosen.is_empty());
    }
    let deep = [r#"{"a":"#.repeat(90), "1".to_owned(), "}".repeat(90)].concat();
    assert!(reason(&step(&format!(r#"{{"tool": "sum", "arguments": {deep}}}"#))).contains("64 levels"));
}

#[test]
fn a_planner_keeps_or_revises() {
    for raw in [
        r#"{"decision": "keep", "reason": "fine"}"#,
        r#"[{"decision": "Keep", "reason": "fine", "steps": null}]"#,
        r#"{"decision": "keep", "rationale": "fine", "steps": []}"#,
    ] {
        let reply = revision(raw);
        assert_eq!(reply.reading, Reading::decided(PlanDecision { steps: None }), "{raw}");
        assert!(reply.repairs.is_empty());
        assert_eq!(thought(&reply), "Kept the plan");
        assert_eq!(reply.decisions[0].rationale.as_ref().map(Document::text), Some("fine"));
    }
    for raw in [
        r#"{"decision": "revise", "reason": "r", "steps": [{"goal": "a"}, {"goal": "b", "depends_on": [3, 1]}]}"#,
        r#"{"steps": ["a", {"goal": "b", "depends_on": [3, 1]}]}"#,
        r#"["a", {"goal": "b", "depends_on": [3, 1]}]"#,
    ] {
        let reply = revision(raw);
        assert_eq!(goals(&reply), ["a", "b"]);
        assert_eq!(thought(&reply), "Revised the plan: 2 new steps");
        assert_eq!(reply.decisions[0].chosen, ["revise"]);
        assert_eq!(steps(&reply)[1].depends_on, [1, 3]);
    }
}

#[test]
fn new_steps_of_a_plan_that_is_kept_are_ignored_and_noted() {
    let reply = revision(r#"{"decision": "keep", "steps": ["a"]}"#);
    assert_eq!(reply.reading, Reading::decided(PlanDecision { steps: None }));
    assert_eq!(reply.repairs, ["the plan is kept, new steps were ignored"]);
}

#[test]
fn a_planner_that_does_not_decide_is_told() {
    for raw in ["hm", "{}", "[]", r#"{"decision": "panic", "steps": ["a"]}"#, r#"{"reason": "because", "steps": []}"#] {
        let reply = revision(raw);
        assert!(reason(&reply).contains("keep"), "{raw}");
        assert!(reply.decisions[0].chosen.is_empty());
        assert_eq!(reply.decisions[0].rejected.as_ref().map(Document::text), Some(raw));
    }
    for raw in [r#"{"decision": "revise"}"#, r#"{"decision": "revise", "task": "x"}"#] {
        assert!(reason(&revision(raw)).starts_with("a revised plan needs at least one step"), "{raw}");
    }
}
