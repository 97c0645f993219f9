//! What the prompts are told, and from which sets their replies choose.

use super::PlanRules;
use super::fixture_tests::{Planning, TOOLS};
use crate::fixture::question;
use crate::plan::PlanNames;
use crate::reader::Reader;
use crate::synthesis::SynthesisName;
use serde_json::{Value, json};
use trellis_domain::decision::option::{KEEP, REVISE};
use trellis_domain::decision::{DecidedBy, DecisionKind, Enforcement};
use trellis_domain::document::Document;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentStep;
use trellis_domain::record::{Accepted, Name};

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn variable_names(planning: &Planning, turn: &Name) -> Vec<String> {
    planning.prompt(turn).variables.keys().cloned().collect()
}

#[test]
fn a_planner_sees_question_framing_and_the_tools_that_apply_at_first() {
    let planning = Planning::new();
    let order = planning.prompt(&Name::plan(0));
    assert_eq!(
        Value::Object(order.variables),
        json!({
            "question": "why?", "context": "Be brief.", "framing": "Be brief.", "max_steps": 50, "problem": null,
            "tools": [
                {"name": "search", "description": "about search", "arguments": [
                    {"name": "question", "type": "string", "description": "The question to ask"}]},
                {"name": "sum", "description": "about sum", "arguments": [
                    {"name": "question", "type": "string", "description": "The question to ask"}]},
            ],
        })
    );
    assert_eq!(order.schema.unwrap()["properties"]["steps"]["maxItems"], 50);
}

#[test]
fn a_step_sees_its_hint_and_only_the_results_it_was_declared_to_build_on() {
    let mut planning = Planning::new();
    planning.replies(
        &Name::plan(0),
        json!([{"goal": "a"}, {"goal": "b"}, {"goal": "c", "tool_hint": "sum", "depends_on": [1]}]),
    );
    planning.run(1, Ok("bee"));
    planning.run(0, Ok("ay"));
    let turn = Name::step(2);
    assert_eq!(planning.variable(&turn, "goal"), "c");
    assert_eq!(planning.variable(&turn, "tool_hint"), "sum");
    let results = planning.variable(&turn, "previous_results");
    assert_eq!(results, json!([{"index": 1, "goal": "b", "result": "bee"}]));
    assert_eq!(
        variable_names(&planning, &turn),
        ["question", "context", "goal", "tool_hint", "previous_results", "tools", "problem"]
    );
}

#[test]
fn results_come_in_the_order_of_their_numbers_and_large_ones_in_part() {
    let mut planning = Planning::with(SomeLimits { shown_observation_bytes: Some(4), ..SomeLimits::default() });
    planning.plan(&[&[], &[], &[1, 0]]);
    planning.run(1, Ok("bb"));
    planning.run(0, Ok("aaaaaa"));
    let results = planning.variable(&Name::step(2), "previous_results");
    assert_eq!(results[0]["result"], "aaaa\n[cut: 4 of 6 bytes shown]");
    assert_eq!(results[1]["result"], "bb");
}

#[test]
fn a_step_chooses_one_of_its_tools_or_none_and_the_choice_says_what_was_ruled_out() {
    let mut planning = Planning::new();
    planning.plan(&[&[]]);
    let order = planning.prompt(&Name::step(0));
    let [decision] = order.offered.as_slice() else { panic!("{order:?}") };
    assert_eq!((decision.kind, decision.enforcement), (DecisionKind::Tool, Enforcement::Validated));
    assert_eq!(decision.options, ["search", "sum", "none"]);
    assert_eq!(decision.excluded[0].name, "read");
    assert_eq!(decision.source, "urn:trellis:config:default:tool");
    assert_eq!(decision.config_version, 5);
    let members = &order.schema.unwrap()["properties"];
    assert_eq!(members["tool"]["enum"], json!(["search", "sum", "none"]));
    let ways = members["arguments"]["anyOf"].as_array().unwrap();
    let names = |way: &serde_json::Value| way["required"].clone();
    assert_eq!(ways.iter().map(names).collect::<Vec<_>>(), [json!(["question"]), json!([])], "of a tool, or of none");
}

#[test]
fn what_the_schema_of_an_argument_refers_to_stands_in_its_place() {
    let prompt = r##","type":"prompt","template":"find","arguments":[{"name":"place","schema":{"$ref":"#/$defs/p","$defs":{"p":{"type":"string"}}}}]"##;
    let mut planning = Planning::of(&[("find", prompt)], question("why?"));
    planning.plan(&[&[]]);
    let schema = planning.prompt(&Name::step(0)).schema.unwrap();
    let place = &schema["properties"]["arguments"]["anyOf"][0]["properties"]["place"];
    assert_eq!(*place, json!({ "type": "string", "description": "" }), "{schema}");
}

#[test]
fn without_tools_there_is_still_the_option_to_use_none() {
    let mut planning = Planning::of(&TOOLS, Accepted { group: Some(Vec::new()), ..question("why?") });
    planning.plan(&[&[]]);
    assert_eq!(planning.prompt(&Name::step(0)).offered[0].options, ["none"]);
}

#[test]
fn a_tool_that_is_called_none_is_ruled_out_and_said_so() {
    let mut planning = Planning::of(&[("none", ""), ("sum", "")], question("why?"));
    planning.plan(&[&[]]);
    assert_eq!(names(&planning.variable(&Name::step(0), "tools")), ["sum"]);
    let decision = &planning.prompt(&Name::step(0)).offered[0];
    assert_eq!(decision.options, ["sum", "none"]);
    assert_eq!(decision.excluded[0].reason, "name: in a plan, `none` stands for no tool");
}

#[test]
fn a_tool_state_reaches_the_steps_that_build_on_it_and_no_others() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[], &[0], &[2], &[1]]);
    planning.reply(&Name::step(0), r#"{"tool": "search", "arguments": {"question": "x"}}"#);
    planning.observe(0, Ok("found"), Some("searched"));
    planning.run(1, Ok("b"));
    planning.run(2, Ok("c"));
    let tools = |number| planning.variable(&Name::step(number), "tools");
    assert_eq!(names(&tools(3)), ["read", "search", "sum"], "through step 2 from step 0");
    assert_eq!(names(&tools(4)), ["search", "sum"], "step 0 was done before, but step 4 does not rest on it");
}

#[test]
fn a_failed_tool_changes_no_state_and_the_request_can_bring_one() {
    let accepted = Accepted { state: "searched".into(), ..question("why?") };
    let planning = Planning::of(&TOOLS, accepted);
    assert_eq!(names(&planning.variable(&Name::plan(0), "tools")), ["read", "search", "sum"]);
    let mut planning = Planning::new();
    planning.plan(&[&[], &[0]]);
    planning.reply(&Name::step(0), r#"{"tool": "search", "arguments": {"question": "x"}}"#);
    planning.observe(0, Err("no network"), None);
    planning.reply(&Name::plan(1), r#"{"decision": "keep"}"#);
    assert_eq!(names(&planning.variable(&Name::step(1), "tools")), ["search", "sum"]);
}

#[test]
fn a_review_sees_every_step_that_stands_and_where_numbers_go_on() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[], &[0]]);
    planning.reply(&Name::step(0), r#"{"tool": "search", "arguments": {}, "surprising": true}"#);
    planning.observe(0, Ok("odd"), Some("searched"));
    planning.run(1, Err("no network"));
    let turn = Name::plan(1);
    assert_eq!(
        planning.variable(&turn, "steps"),
        json!([
            {"index": 0, "goal": "goal 0", "status": "completed", "result": "odd", "depends_on": [], "surprising": true},
            {"index": 1, "goal": "goal 1", "status": "failed", "result": "Error: no network", "depends_on": [],
             "surprising": false},
            {"index": 2, "goal": "goal 2", "status": "pending", "result": "", "depends_on": [0], "surprising": false},
        ])
    );
    assert_eq!(planning.variable(&turn, "next_index"), 3);
    assert_eq!(planning.variable(&turn, "max_steps"), 47);
    let rules = PlanRules { first: 3, finished: vec![0], most: 47 };
    assert_eq!(planning.prompt(&turn).reader, Reader::under("plan-revise", rules), "nothing new builds on a failure");
    assert_eq!(names(&planning.variable(&turn, "tools")), ["read", "search", "sum"], "new steps may build on step 0");
    assert_eq!(
        variable_names(&planning, &turn),
        ["question", "context", "steps", "next_index", "max_steps", "tools", "problem"]
    );
    planning.replies(&turn, json!({"decision": "revise", "steps": ["another way"]}));
    planning.run(3, Err("no network"));
    let indices: Vec<_> =
        planning.variable(&Name::plan(2), "steps").as_array().unwrap().iter().map(|s| s["index"].clone()).collect();
    assert_eq!(indices, [0, 1, 3], "what is superseded is not shown");
}

#[test]
fn a_review_is_a_choice_with_its_reason() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[0]]);
    planning.run(0, Err("no network"));
    planning.reply(&Name::plan(1), r#"{"decision": "keep", "reason": "it does not matter"}"#);
    let [decision] = planning.replied(&Name::plan(1)).decision.as_slice() else { panic!("one decision") };
    assert_eq!(decision.kind, DecisionKind::Replan);
    assert_eq!(decision.options, [KEEP, REVISE]);
    assert_eq!((decision.chosen.as_slice(), decision.decided_by), (&["keep".to_owned()][..], DecidedBy::Model));
    assert_eq!(decision.source, "urn:trustgraph:agent:S/plan");
    assert_eq!(decision.rationale.as_ref().map(Document::text), Some("it does not matter"));
}

#[test]
fn a_plan_that_is_kept_for_want_of_a_usable_reply_says_so() {
    let mut planning = Planning::new();
    planning.plan(&[&[], &[0]]);
    planning.run(0, Err("no network"));
    planning.reply(&Name::plan(1), "hm");
    let first = &planning.replied(&Name::plan(1)).decision[0];
    assert_eq!((first.chosen.len(), first.rejected.as_ref().map(Document::text)), (0, Some("hm")));
    planning.reply(&Name::plan(1), "hm again");
    let second = &planning.replied(&Name::plan(1).retry()).decision[0];
    assert_eq!((second.chosen.as_slice(), second.decided_by), (&["keep".to_owned()][..], DecidedBy::Fallback));
}

#[test]
fn a_synthesis_sees_the_results_and_what_is_missing() {
    let mut planning = Planning::with(SomeLimits { max_replans: Some(0), ..SomeLimits::default() });
    planning.plan(&[&[], &[], &[]]);
    planning.run(0, Ok("ay"));
    planning.run(1, Err("no network"));
    planning.run(2, Ok(""));
    let order = planning.prompt(&Name::synthesis());
    assert_eq!(order.id, "plan-synthesise");
    assert_eq!(
        Value::Object(order.variables),
        json!({
            "question": "why?", "context": "Be brief.", "framing": "Be brief.",
            "steps": [
                {"index": 0, "goal": "goal 0", "status": "completed", "result": "ay"},
                {"index": 1, "goal": "goal 1", "status": "failed", "result": "Error: no network"},
            ],
            "missing": [{"index": 1, "goal": "goal 1", "reason": "no network"}], "problem": null,
        })
    );
    assert!(order.schema.is_none() && crate::registry::form(&order.reader) == crate::reader::ReplyForm::Answer);
}

/// Every prompt of a plan is told the steps that its caller brought along, each cut to what is shown of one.
#[test]
fn a_history_is_shown_to_every_prompt() {
    let long = format!("X owns Y. {}", "x".repeat(70_000));
    let step = AgentStep { action: "search".into(), observation: long, ..AgentStep::default() };
    let mut planning = Planning::of(&TOOLS, Accepted { history: vec![step], ..question("why?") });
    let told = "Done before this question was asked:\n\nStep 1\nAction: search\nArgs: {}\nObservation: X owns Y. ";
    let shows = |planning: &Planning, name: Name| {
        let context = planning.variable(&name, "context").as_str().unwrap().to_owned();
        assert!(context.starts_with(&format!("Be brief.\n\n{told}")), "{name}: {context:.200}");
        assert!(context.ends_with("[cut: 65536 of 70010 bytes shown]"), "{name}");
    };
    shows(&planning, Name::plan(0));
    planning.plan(&[&[], &[0]]);
    shows(&planning, Name::step(0));
    planning.run(0, Err("no"));
    shows(&planning, Name::plan(1));
    planning.reply(&Name::plan(1), r#"{"decision": "keep"}"#);
    shows(&planning, Name::synthesis());
}
