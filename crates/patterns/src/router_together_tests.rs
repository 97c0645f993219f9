//! Task type and pattern in one call, and what happens where that does not work.

use super::model_tests::{SEEDS, due, route_by, seeded};
use super::*;
use crate::fixture::{Fixture, asked, question, settings};
use crate::registry::pattern;
use serde_json::json;
use trellis_domain::decision::{DecidedBy, DecisionKind};

const PROMPT: &str = r#"{"prompt": "Choose.", "response-type": "json"}"#;

fn both(task_type: &str, pattern: &str) -> String {
    let (signals, route) = (json!({"urgency": "high"}), json!({"task_type": task_type, "pattern": pattern}));
    json!({"rationale": "it says so", "signals": signals, "route": route}).to_string()
}

/// With the prompt for both. A workspace that has prompts needs those of its patterns, too.
fn begun(accepted: Accepted) -> Fixture {
    begun_with(&SEEDS, accepted)
}

fn begun_with(seeds: &[(&str, &str, &str)], accepted: Accepted) -> Fixture {
    let patterns = ["react", "plan-then-execute", "supervisor"].map(|name| pattern(&name.into()).unwrap());
    let ids = patterns.iter().flat_map(|pattern| pattern.prompts()).chain(&["route"]);
    let keys: Vec<_> = ids.map(|id| format!("template.{id}")).collect();
    let prompts = keys.iter().map(|key| ("prompt", key.as_str(), PROMPT));
    Fixture::begun(settings(&seeds.iter().copied().chain(prompts).collect::<Vec<_>>()), accepted)
}

fn asking(fixture: &Fixture) -> (Name, &'static str) {
    let orders = due(fixture);
    let (name, prompt) = asked(&orders);
    (name.clone(), prompt.id)
}

#[test]
fn one_prompt_shows_both_sets_and_holds_the_reply_to_them() {
    let fixture = begun(question("why?"));
    assert_eq!(asking(&fixture), (Name::route_task_type(), "route"));
    let orders = due(&fixture);
    let (_, prompt) = asked(&orders);
    assert_eq!(prompt.variables["task_types"][1]["patterns"], json!(["react", "plan-then-execute"]));
    let patterns: Vec<_> = prompt.variables["patterns"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(patterns, ["react", "plan-then-execute", "supervisor"], "each once");
    let schema = prompt.schema.as_ref().unwrap();
    let members: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["route", "signals", "rationale"]);
    let ways = schema["properties"]["route"]["anyOf"].as_array().unwrap();
    let way = |at: usize, name: &str| ways[at]["properties"][name]["enum"].clone();
    assert_eq!((way(1, "task_type"), way(1, "pattern")), (json!(["research"]), json!(["react", "plan-then-execute"])));
    assert_eq!((ways.len(), way(0, "pattern")), (4, json!(["react"])));
    assert_eq!(prompt.offered.iter().map(|offered| offered.kind).collect::<Vec<_>>(), [DecisionKind::TaskType]);
}

#[test]
fn one_reply_makes_the_decisions_of_two() {
    let (mut once, mut twice) = (begun(question("why?")), seeded(question("why?")));
    let together = route_by(&mut once, &[&both("research", "plan-then-execute")]);
    let apart = route_by(
        &mut twice,
        &[
            r#"{"task_type": "research", "rationale": "it says so"}"#,
            r#"{"pattern": "plan-then-execute", "signals": {"urgency": "high"}, "rationale": "it says so"}"#,
        ],
    );
    assert_eq!(together, apart, "sets, sources, versions, choices and reasons");
    assert_eq!((once.records().len(), twice.records().len()), (2, 3), "with one call instead of two");
}

#[test]
fn a_reply_without_a_task_type_leads_to_two_calls() {
    for reply in ["Hm.", r#"{"route": {"task_type": "sorcery", "pattern": "react"}}"#] {
        let mut fixture = begun(question("why?"));
        fixture.reply(&due(&fixture), reply);
        assert_eq!(asking(&fixture), (Name::route_task_type().retry(), "task-type-classify"));
        fixture.reply(&due(&fixture), "research");
        assert_eq!(asking(&fixture), (Name::route_pattern(), "pattern-select"));
        let routed = route_by(&mut fixture, &["react"]);
        assert_eq!((routed.task_type.as_str(), routed.pattern.as_str()), ("research", "react"));
        let rejected = routed.decisions[0].rejected.as_ref().map(|document| document.text().to_owned());
        assert_eq!(rejected.as_deref(), Some(reply), "what was refused stays on record");
    }
}

#[test]
fn a_model_that_did_not_answer_this_is_asked_in_the_other_form() {
    let mut fixture = begun(question("why?"));
    fixture.fail(&due(&fixture), "this schema is not supported");
    assert_eq!(asking(&fixture), (Name::route_task_type().retry(), "task-type-classify"));
    assert_eq!(route_by(&mut fixture, &["research", "react"]).task_type, "research");
}

#[test]
fn a_pattern_that_the_task_type_does_not_allow_is_asked_for_again() {
    let mut fixture = begun(question("why?"));
    let reply = both("research", "supervisor");
    fixture.reply(&due(&fixture), &reply);
    assert_eq!(asking(&fixture), (Name::route_pattern(), "pattern-select"));
    let routed = route_by(&mut fixture, &["react"]);
    assert_eq!((routed.task_type.as_str(), routed.pattern.as_str()), ("research", "react"));
    let pattern = &routed.decisions[1];
    let rejected = pattern.rejected.as_ref().map(trellis_domain::document::Document::text);
    assert_eq!((pattern.decided_by, rejected), (DecidedBy::Model, Some(reply.as_str())));
}

/// Whatever the reply says of it.
#[test]
fn a_pattern_without_a_choice_is_still_the_only_option() {
    let mut fixture = begun(question("why?"));
    let routed = route_by(&mut fixture, &[&both("summarisation", "react")]);
    assert_eq!(
        routed.decisions.iter().map(|it| it.decided_by).collect::<Vec<_>>(),
        [DecidedBy::Model, DecidedBy::OnlyOption]
    );
    assert_eq!(fixture.records().len(), 2);
}

#[test]
fn names_may_stand_beside_the_reason() {
    let mut fixture = begun(question("why?"));
    let routed = route_by(&mut fixture, &[r#"{"task_type": "general", "pattern": "supervisor"}"#]);
    assert_eq!((routed.task_type.as_str(), routed.pattern.as_str()), ("general", "supervisor"));
}

#[test]
fn older_runs_older_workspaces_and_settled_choices_are_not_asked_together() {
    let older = begun(Accepted { revision: 1, ..question("why?") });
    assert_eq!(asking(&older).1, "task-type-classify");
    assert_eq!(asking(&seeded(question("why?"))).1, "task-type-classify");
    let named = begun(Accepted { task_type: Some("research".into()), ..question("why?") });
    assert_eq!(asking(&named), (Name::route_pattern(), "pattern-select"));
}

/// Small models choose better one after the other.
#[test]
fn who_is_to_be_asked_in_two_calls_is() {
    let fixture = begun(Accepted { routed_apart: true, ..question("why?") });
    assert_eq!(asking(&fixture), (Name::route_task_type(), "task-type-classify"));
}

#[test]
fn examples_show_both_choices_where_their_pattern_is_allowed() {
    let task_type = r#"{"description": "find out", "valid_patterns": ["react", "plan-then-execute"],
        "examples": [{"question": "Who?", "pattern": "react"}, {"question": "So?", "pattern": "debate"}, "How?"]}"#;
    let extra = [("agent-task-type", "research", task_type)];
    let seeds = SEEDS.into_iter().filter(|(_, key, _)| *key != "research").chain(extra);
    let fixture = begun_with(&seeds.collect::<Vec<_>>(), question("why?"));
    let orders = due(&fixture);
    let (_, prompt) = asked(&orders);
    let reply = json!({"route": {"task_type": "research", "pattern": "react"}});
    assert_eq!(prompt.variables["examples"], json!([{"question": "Who?", "reply": reply}]));
}
