//! Routing by a model: it chooses freely inside the sets, and never anywhere else.

use super::*;
use crate::contract::Effect;
use crate::fixture::{Fixture, asked, question, settings, turn};
use crate::react::IterationNames;
use serde_json::{Value, json};
use trellis_domain::decision::{DecidedBy, Enforcement};
use trellis_domain::document::Document;
use trellis_domain::record::{Body, Exchange};

/// The seed set of the specification, with a pattern nobody has implemented.
pub(super) const SEEDS: [(&str, &str, &str); 9] = [
    ("agent-pattern", "react", r#"{"description":"Reason and act","when_to_use":"Open-ended"}"#),
    ("agent-pattern", "plan-then-execute", r#"{"description":"Plan first","when_to_use":"Steps are clear"}"#),
    ("agent-pattern", "supervisor", r#"{"description":"Subagents","when_to_use":"Independent parts"}"#),
    ("agent-pattern", "delphi", r#"{"description":"Two sides"}"#),
    (
        "agent-task-type",
        "general",
        r#"{"description":"Anything","when_to_use":"Nothing else fits","framing":"Be brief."}"#,
    ),
    (
        "agent-task-type",
        "research",
        r#"{"description":"Find out","framing_prompt":"Cite.","valid_patterns":["react","plan-then-execute"]}"#,
    ),
    (
        "agent-task-type",
        "risk-assessment",
        r#"{"description":"Risks","valid_patterns":["supervisor","plan-then-execute","react"],
            "termination":"Every risk has a source.","limits":{"max-siblings":4}}"#,
    ),
    ("agent-task-type", "summarisation", r#"{"valid_patterns":["react"]}"#),
    ("agent", "additional-context", "Today is Monday."),
];

pub(super) fn seeded(accepted: Accepted) -> Fixture {
    Fixture::begun(settings(&SEEDS), accepted)
}

pub(super) fn due(fixture: &Fixture) -> Vec<Order> {
    let orders = decide(&fixture.session, &turn(Name::route()));
    assert_eq!(orders, decide(&fixture.session, &turn(Name::route())), "the same records give the same orders");
    orders
}

/// Replies one after the other until routing is done; the last one is repeated.
#[track_caller]
pub(super) fn route_by(fixture: &mut Fixture, replies: &[&str]) -> Routed {
    let mut replies = replies.iter().copied();
    let mut last = "";
    for _ in 0..=4 {
        let orders = due(fixture);
        if let [Order::Become(routed)] = orders.as_slice() {
            return inside(*routed.clone());
        }
        last = replies.next().unwrap_or(last);
        fixture.reply(&orders, last);
    }
    panic!("routing asks more than two questions twice");
}

/// The promise: no choice outside its set, and each choice with its set, source, version and maker.
fn inside(routed: Routed) -> Routed {
    let [task_type, pattern] = routed.decisions.as_slice() else { panic!("{:?}", routed.decisions) };
    assert_eq!(
        (&task_type.chosen, &pattern.chosen),
        (&vec![routed.task_type.to_string()], &vec![routed.pattern.to_string()])
    );
    for decision in [task_type, pattern] {
        assert!(decision.options.contains(&decision.chosen[0]), "{decision:?}");
        assert!(!decision.source.is_empty());
        assert_eq!(decision.config_version, 5);
        let nobody_asked = decision.enforcement == Enforcement::None;
        assert!(nobody_asked || matches!(decision.decided_by, DecidedBy::Model | DecidedBy::Fallback), "{decision:?}");
    }
    routed
}

fn makers(routed: &Routed) -> [DecidedBy; 2] {
    [routed.decisions[0].decided_by, routed.decisions[1].decided_by]
}

#[test]
fn the_first_question_shows_all_task_types_and_when_to_use_them() {
    let run = trellis_domain::SessionId::new("a").unwrap();
    let earlier = vec![Exchange { run: Some(run), question: "Who?".into(), answer: "Ada.".into() }];
    let fixture = seeded(Accepted { earlier, ..question("why?") });
    let orders = due(&fixture);
    let (name, prompt) = asked(&orders);
    assert_eq!((name, prompt.id), (&Name::route_task_type(), "task-type-classify"));
    assert_eq!(prompt.variables["question"], "why?");
    assert_eq!(
        prompt.variables["context"],
        "Today is Monday.\n\nEarlier in this conversation:\n\nQuestion: Who?\nAnswer: Ada."
    );
    assert_eq!(prompt.variables["problem"], Value::Null);
    let shown = prompt.variables["task_types"].as_array().unwrap();
    assert_eq!(shown[3], json!({"name": "general", "description": "Anything", "when_to_use": "Nothing else fits"}));
    let names: Vec<_> = shown.iter().map(|shown| shown["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["summarisation", "research", "risk-assessment", "general"], "what allows the least comes first");
    let names = ["general", "research", "risk-assessment", "summarisation"];
    let schema = prompt.schema.as_ref().unwrap();
    assert_eq!(schema["properties"]["task_type"]["enum"], json!(names), "the reply can be held to the set");
    assert_eq!(schema["required"], json!(["task_type", "rationale"]));
}

#[test]
fn the_second_question_shows_only_patterns_that_the_task_type_allows_and_that_can_run() {
    let mut fixture = seeded(question("why?"));
    fixture.reply(&due(&fixture), "risk-assessment");
    let orders = due(&fixture);
    let (name, prompt) = asked(&orders);
    assert_eq!((name, prompt.id), (&Name::route_pattern(), "pattern-select"));
    assert_eq!(prompt.variables["task_type"], "risk-assessment");
    assert_eq!(prompt.variables["task_type_description"], "Risks");
    assert_eq!(
        prompt.variables["patterns"],
        json!([
            {"name": "supervisor", "description": "Subagents", "when_to_use": "Independent parts"},
            {"name": "plan-then-execute", "description": "Plan first", "when_to_use": "Steps are clear"},
            {"name": "react", "description": "Reason and act", "when_to_use": "Open-ended"},
        ])
    );
    let schema = prompt.schema.as_ref().unwrap();
    assert_eq!(schema["properties"]["pattern"]["enum"], json!(["supervisor", "plan-then-execute", "react"]));
    assert_eq!(schema["properties"]["signals"]["required"], json!(["complexity", "independent_dimensions", "urgency"]));
}

/// Short descriptions that differ are chosen from before the names are, and examples show how.
#[test]
fn descriptions_and_examples_help_to_choose() {
    let task_type = |description: &str, patterns: &[&str], examples: Value| {
        json!({ "description": description, "valid_patterns": patterns, "examples": examples }).to_string()
    };
    let (many, few) = (["react", "plan-then-execute"], ["react"]);
    let example = |question: &str, pattern: &str| json!({ "question": question, "pattern": pattern });
    let general = task_type(
        "do something",
        &many,
        json!([example("Sing.", "react"), example("First rhyme, then sing.", "plan-then-execute"), "Dance."]),
    );
    let shorter = task_type("shorten a text", &few, json!(["Cut this.", "Cut that."]));
    let seeds = [
        ("agent-pattern", "react", r#"{"description": "look around"}"#),
        ("agent-pattern", "plan-then-execute", r#"{"description": "follow steps"}"#),
        ("agent-task-type", "general", &general),
        ("agent-task-type", "shorter", &shorter),
    ];
    let mut fixture = Fixture::begun(settings(&seeds), question("why?"));
    let orders = due(&fixture);
    let (_, prompt) = asked(&orders);
    let shown = |prompt: &PromptOrder| {
        let examples = prompt.variables["examples"].as_array().unwrap().iter();
        examples.map(|it| format!("{} {}", it["question"].as_str().unwrap(), it["reply"])).collect::<Vec<_>>()
    };
    assert_eq!(
        shown(prompt),
        [
            r#"Cut this. {"to_do":"shorten a text","task_type":"shorter"}"#,
            r#"Sing. {"to_do":"do something","task_type":"general"}"#,
            r#"Cut that. {"to_do":"shorten a text","task_type":"shorter"}"#,
            r#"First rhyme, then sing. {"to_do":"do something","task_type":"general"}"#,
        ],
        "as many of each, mixed"
    );
    let properties = &prompt.schema.as_ref().unwrap()["properties"];
    let members: Vec<_> = properties.as_object().unwrap().keys().collect();
    assert_eq!(members, ["to_do", "task_type", "rationale"]);
    assert_eq!(properties["to_do"]["enum"], json!(["shorten a text", "do something"]));
    fixture.reply(&orders, r#"{"to_do": "do something", "task_type": "general", "rationale": "A song."}"#);
    let orders = due(&fixture);
    let (_, prompt) = asked(&orders);
    assert_eq!(
        shown(prompt),
        [
            r#"Sing. {"how":"look around","pattern":"react"}"#,
            r#"First rhyme, then sing. {"how":"follow steps","pattern":"plan-then-execute"}"#,
        ]
    );
    fixture.reply(&orders, r#"{"how": "follow steps", "pattern": "plan-then-execute"}"#);
    assert_eq!(route_by(&mut fixture, &[]).pattern, "plan-then-execute");
}

/// One task type without examples, or with a description that says nothing or too much, and nobody gets an advantage.
#[test]
fn without_examples_or_descriptions_of_all_there_are_none() {
    let long = json!({ "description": "x".repeat(400), "examples": ["Sing."] }).to_string();
    for other in ["{}", &long] {
        let seeds = [
            ("agent-task-type", "general", r#"{"description": "do", "examples": ["Cut."]}"#),
            ("agent-task-type", "other", other),
        ];
        let fixture = Fixture::begun(settings(&seeds), question("why?"));
        let orders = due(&fixture);
        let (_, prompt) = asked(&orders);
        assert_eq!(prompt.variables["by_description"], false);
        assert_eq!(prompt.variables["examples"].as_array().unwrap().is_empty(), other == "{}");
        assert_eq!(prompt.schema.as_ref().unwrap()["required"], json!(["task_type", "rationale"]));
    }
}

#[test]
fn the_choices_are_recorded_with_candidates_reasons_and_signals() {
    let mut fixture = seeded(question("why?"));
    let replies = [
        r#"{"task_type": "risk-assessment", "rationale": "It asks for risks."}"#,
        r#"{"pattern": "supervisor", "signals": {"complexity": "high", "independent_dimensions": 4, "urgency": "low"},
            "rationale": "Four fields."}"#,
    ];
    let routed = route_by(&mut fixture, &replies);
    assert_eq!(makers(&routed), [DecidedBy::Model; 2]);
    assert_eq!(routed.termination, "Every risk has a source.");
    assert_eq!(routed.limits.max_siblings, 4);
    let [task_type, pattern] = routed.decisions.as_slice() else { panic!() };
    assert_eq!(task_type.rationale.as_ref().map(Document::text), Some("It asks for risks."));
    assert_eq!(task_type.source, "urn:trellis:config:default:agent-task-type");
    assert_eq!(pattern.source, "urn:trellis:config:default:agent-task-type:risk-assessment");
    assert_eq!(pattern.signals, ["complexity: high", "independent_dimensions: 4", "urgency: low"]);
    assert_eq!(pattern.rationale.as_ref().map(Document::text), Some("Four fields."));
    assert_eq!((pattern.enforcement, &pattern.rejected), (Enforcement::Validated, &None));
    assert_eq!(pattern.excluded[0].name, "delphi");
}

#[test]
fn a_set_that_was_enforced_while_the_model_wrote_stays_recorded_so() {
    let mut fixture = seeded(question("why?"));
    let orders = due(&fixture);
    let [Order::Perform(name, Effect::AskModel(prompt))] = orders.as_slice() else { panic!("{orders:?}") };
    let mut prompt = prompt.clone();
    prompt.offered[0].enforcement = Enforcement::Decoding;
    fixture.reply(&[Order::Perform(name.clone(), Effect::AskModel(prompt))], "summarisation");
    assert_eq!(route_by(&mut fixture, &[]).decisions[0].enforcement, Enforcement::Decoding);
}

#[test]
fn a_task_type_with_one_pattern_needs_no_second_question() {
    let routed = route_by(&mut seeded(question("why?")), &["summarisation"]);
    assert_eq!(makers(&routed), [DecidedBy::Model, DecidedBy::OnlyOption]);
    assert_eq!(routed.decisions[1].enforcement, Enforcement::None);
}

#[test]
fn a_caller_who_names_only_the_task_type_leaves_the_pattern_to_the_model() {
    let mut fixture = seeded(Accepted { task_type: Some("research".into()), ..question("why?") });
    assert_eq!(asked(&due(&fixture)).0, &Name::route_pattern());
    let routed = route_by(&mut fixture, &["plan-then-execute"]);
    assert_eq!(makers(&routed), [DecidedBy::Caller, DecidedBy::Model]);
    assert_eq!((routed.pattern.as_str(), &*routed.framing), ("plan-then-execute", "Cite."));
}

#[test]
fn a_reply_outside_the_set_is_asked_again_with_the_reason() {
    let mut fixture = seeded(question("why?"));
    fixture.reply(&due(&fixture), "poetry");
    let orders = due(&fixture);
    let (name, prompt) = asked(&orders);
    assert_eq!(name, &Name::route_task_type().retry());
    assert_eq!(prompt.variables["problem"], "`poetry` is not one of general, research, risk-assessment, summarisation");
    let routed = route_by(&mut fixture, &["research", "delphi", "react"]);
    assert_eq!((routed.task_type.as_str(), routed.pattern.as_str()), ("research", "react"));
    assert_eq!(makers(&routed), [DecidedBy::Model; 2]);
    let rejected = |i: usize| routed.decisions[i].rejected.as_ref().map(Document::text);
    assert_eq!((rejected(0), rejected(1)), (Some("poetry"), Some("delphi")), "what was named in vain stays on record");
}

#[test]
fn twice_outside_the_set_falls_back_to_general_and_the_first_valid_pattern() {
    let replies = ["poetry", r#"{"task_type": "drama", "rationale": "It is one."}"#, "delphi", "telepathy"];
    let routed = route_by(&mut seeded(question("why?")), &replies);
    assert_eq!((routed.task_type.as_str(), &*routed.framing), ("general", "Be brief."));
    assert_eq!(routed.pattern, "plan-then-execute", "general allows all, in the order of their keys");
    assert_eq!(makers(&routed), [DecidedBy::Fallback; 2]);
    let task_type = &routed.decisions[0];
    assert_eq!(task_type.enforcement, Enforcement::Validated);
    assert_eq!(task_type.rationale, None, "the model's reason was for something else");
    assert_eq!(
        task_type.rejected.as_ref().map(Document::text),
        Some(r#"{"task_type": "drama", "rationale": "It is one."}"#)
    );
}

#[test]
fn a_model_that_cannot_be_reached_falls_back_without_a_second_try() {
    let mut fixture = seeded(question("why?"));
    fixture.fail(&due(&fixture), "no network");
    assert_eq!(asked(&due(&fixture)).0, &Name::route_pattern());
    fixture.fail(&due(&fixture), "no network");
    let routed = route_by(&mut fixture, &[]);
    assert_eq!(makers(&routed), [DecidedBy::Fallback; 2]);
    assert_eq!((routed.task_type.as_str(), routed.pattern.as_str()), ("general", "plan-then-execute"));
}

#[test]
fn without_general_the_fallback_is_the_first_task_type() {
    let items: Vec<_> = SEEDS.into_iter().filter(|(_, key, _)| *key != "general").collect();
    let mut fixture = Fixture::begun(settings(&items), question("why?"));
    let routed = route_by(&mut fixture, &["general"]);
    assert_eq!((routed.task_type.as_str(), makers(&routed)[0]), ("research", DecidedBy::Fallback));
}

#[test]
fn the_fallback_pattern_is_the_first_that_can_run_not_the_first_that_is_listed() {
    let list = r#"{"valid_patterns":["delphi","nope","supervisor","react"]}"#;
    let mut items = SEEDS.to_vec();
    items.push(("agent-task-type", "odd", list));
    let mut fixture = Fixture::begun(settings(&items), Accepted { task_type: Some("odd".into()), ..question("why?") });
    let routed = route_by(&mut fixture, &["delphi", "nope"]);
    assert_eq!((routed.pattern.as_str(), makers(&routed)[1]), ("supervisor", DecidedBy::Fallback));
}

#[test]
fn keys_with_capitals_are_chosen_as_they_are_written() {
    let items = [
        ("agent-task-type", "General", r#"{"valid_patterns":["react"]}"#),
        ("agent-task-type", "Due Diligence", r#"{"name":"dd","valid_patterns":["react"],"framing":"Dig."}"#),
        SEEDS[0],
    ];
    for reply in ["due diligence", "DUE DILIGENCE", r#"{"task_type": "Due Diligence"}"#] {
        let routed = route_by(&mut Fixture::begun(settings(&items), question("why?")), &[reply]);
        assert_eq!((routed.task_type.as_str(), &*routed.framing), ("Due Diligence", "Dig."), "{reply}");
        assert_eq!(makers(&routed)[0], DecidedBy::Model);
    }
}

#[test]
fn a_worker_that_takes_over_anywhere_asks_the_same_and_chooses_the_same() {
    let script = ["poetry", "risk-assessment", "delphi", "react"];
    let mut straight = seeded(question("why?"));
    let expected = route_by(&mut straight, &script);
    let records: Vec<_> = straight.session.in_order().cloned().collect();
    for known in 1..=records.len() {
        let mut session = Session::new(straight.session.settings().clone(), std::sync::Arc::default());
        records[..known].iter().for_each(|record| session.apply(record.clone()));
        match decide(&session, &turn(Name::route())).as_slice() {
            [Order::Become(routed)] => assert_eq!((known, routed.as_ref()), (records.len(), &expected)),
            orders => assert_eq!(asked(orders).0, &records[known].header.name, "what comes next is asked next"),
        }
    }
}

#[test]
fn what_needs_no_model_is_routed_the_same_in_a_turn_of_its_own() {
    let named = [("react", ""), ("supervisor", "research"), ("telepathy", "poetry"), ("", "summarisation")];
    for (pattern, task_type) in named {
        let (pattern, task_type) = (PatternName::given(pattern), TaskTypeName::given(task_type));
        let accepted = Accepted { pattern, task_type, ..question("why?") };
        let fixture = seeded(accepted.clone());
        let workspace = Workspace::default();
        let at_once = without_model(&settings(&SEEDS), &workspace, Wishes::of(&accepted), &OperatorLimits::default());
        assert_eq!(due(&fixture), [Order::Become(Box::new(at_once.unwrap()))]);
    }
}

#[test]
fn a_changed_configuration_changes_the_sets_of_new_sessions() {
    let with = |items: &[(&str, &str, &str)]| {
        let fixture = Fixture::begun(settings(items), question("why?"));
        asked(&due(&fixture)).1.offered[0].options.clone()
    };
    let poetry = ("agent-task-type", "poetry", "{}");
    assert_eq!(with(&SEEDS).len(), 4);
    assert_eq!(with(&[&SEEDS[..], &[poetry]].concat())[1], "poetry");
}

#[test]
fn the_operators_and_the_requests_limits_hold_while_routing() {
    let request = SomeLimits { model_timeout_ms: Some(5_000), ..SomeLimits::default() };
    let maximum = SomeLimits { run_timeout_ms: Some(60_000), ..SomeLimits::default() };
    let operator = OperatorLimits { maximum, ..OperatorLimits::default() };
    let fixture = Fixture::under(operator, settings(&SEEDS), Accepted { limits: request, ..question("why?") });
    let limits = fixture.session.limits();
    assert_eq!((limits.model_timeout_ms, limits.run_timeout_ms), (5_000, 60_000));
}

#[test]
fn a_session_that_is_routed_already_is_not_routed_again() {
    let mut fixture = seeded(question("why?"));
    let routed = route_by(&mut fixture, &["summarisation"]);
    fixture.record(Name::pattern_decision(), Body::Routed(routed));
    assert_eq!(due(&fixture), [Order::Close]);
}

#[test]
fn a_turn_of_a_pattern_is_not_for_the_router() {
    let orders = decide(&seeded(question("why?")).session, &turn(Name::iteration(1)));
    assert!(matches!(orders.as_slice(), [Order::End(ending)] if ending.reason == Termination::Error), "{orders:?}");
}
