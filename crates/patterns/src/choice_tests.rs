//! Models answer in many ways: what names one option is understood, everything else is told to them.

use super::*;
use trellis_domain::decision::{DecidedBy, Enforcement};

fn offered(kind: DecisionKind, options: &[&str]) -> Vec<Decision> {
    vec![Decision {
        kind,
        options: options.iter().map(|option| (*option).to_owned()).collect(),
        excluded: Vec::new(),
        chosen: Vec::new(),
        source: "urn:test".into(),
        config_version: 1,
        decided_by: DecidedBy::Model,
        enforcement: Enforcement::Validated,
        signals: Vec::new(),
        rationale: None,
        rejected: None,
    }]
}

fn patterns() -> Vec<Decision> {
    offered(DecisionKind::Pattern, &["react", "plan-then-execute", "Supervisor"])
}

/// What is chosen, or the reason why nothing is.
fn choice(raw: &str) -> Result<String, String> {
    let read = read(raw, patterns());
    let decision = &read.decisions[0];
    assert!(decision.chosen.iter().all(|chosen| decision.options.contains(chosen)), "no choice outside its set");
    if let Some(name) = read.reading.decision::<String>() {
        assert_eq!(decision.chosen, [name.as_str()], "the decision says the same");
        return Ok(name);
    }
    let Reading::Unusable { reason } = read.reading else { panic!("{:?}", read.reading) };
    assert!(decision.chosen.is_empty(), "nothing was chosen");
    Err(reason)
}

#[test]
fn a_name_is_understood_however_it_is_wrapped() {
    let replies = [
        "react",
        "  react\n",
        "React",
        "REACT.",
        "\"react\"",
        "'react'",
        "`react`",
        "**react**",
        "“react”",
        "(react)",
        "[react]",
        "[\"react\"]",
        "```\nreact\n```",
        "```json\n{\"pattern\": \"react\"}\n```",
        r#"{"pattern": "react"}"#,
        r#"{"pattern": " React ", "rationale": "simple"}"#,
        r#"{"name": "react"}"#,
        r#"{"choice": "`react`"}"#,
        r#"[{"pattern": "react"}]"#,
        r#"I would say {"pattern": "react"}, because it is simple."#,
    ];
    for reply in replies {
        assert_eq!(choice(reply).as_deref(), Ok("react"), "{reply}");
    }
}

#[test]
fn a_key_with_capitals_can_be_chosen() {
    for reply in ["Supervisor", "supervisor", "SUPERVISOR", r#"{"pattern": "supervisor"}"#] {
        assert_eq!(choice(reply).as_deref(), Ok("Supervisor"), "{reply}");
    }
}

#[test]
fn keys_that_differ_only_in_capitals_are_told_apart() {
    let choose = |raw: &str| read(raw, offered(DecisionKind::TaskType, &["General", "general"])).reading;
    assert_eq!(choose("general"), Reading::decided("general"));
    assert_eq!(choose("General"), Reading::decided("General"));
}

#[test]
fn keys_that_look_like_values_or_quotes_can_be_chosen() {
    let options = ["2026", "null", "true", "v1.", "*"];
    for option in options {
        let reading = read(option, offered(DecisionKind::TaskType, &options)).reading;
        assert_eq!(reading, Reading::decided(option));
    }
}

#[test]
fn a_reply_may_repeat_the_task_type_beside_the_pattern() {
    assert_eq!(choice(r#"{"task_type": "research", "pattern": "react"}"#).as_deref(), Ok("react"));
    let read = read(r#"{"pattern": "react", "task_type": "b"}"#, offered(DecisionKind::TaskType, &["a", "b", "react"]));
    assert_eq!(read.reading, Reading::decided("b"));
}

#[test]
fn what_was_asked_for_is_not_replaced_by_another_member() {
    assert!(choice(r#"{"pattern": "delphi", "name": "react"}"#).is_err());
}

#[test]
fn everything_else_is_told_to_the_model_with_the_options() {
    let names_nothing = "the reply names nothing; name one of react, plan-then-execute, Supervisor";
    for reply in ["", "  \n ", "{}", "[]", r#"{"pattern": 3}"#, r#"{"pattern": null}"#, r#"["react", "Supervisor"]"#] {
        assert_eq!(choice(reply).unwrap_err(), names_nothing, "{reply}");
    }
    assert_eq!(choice("delphi").unwrap_err(), "`delphi` is not one of react, plan-then-execute, Supervisor");
    for reply in ["3", "null", "true", "react or supervisor", "react, of course", "reactor", "{\"pattern\": "] {
        assert!(choice(reply).unwrap_err().contains("is not one of react"), "{reply}");
    }
}

#[test]
fn a_long_reply_is_quoted_in_part_and_kept_whole() {
    let reply = "all of them ".repeat(10_000);
    let read = read(&reply, patterns());
    let Reading::Unusable { reason } = read.reading else { panic!("{:?}", read.reading) };
    assert!(reason.chars().count() < 200, "{}", reason.len());
    assert_eq!(read.decisions[0].rejected.as_ref().map(Document::text), Some(reply.trim()));
}

#[test]
fn the_reason_and_the_signals_are_kept_as_the_models_claims() {
    let reply = r#"{"pattern": "Supervisor",
        "signals": {"complexity": "high", "independent_dimensions": 4, "urgency": "low"},
        "rationale": " Four fields, each by itself. "}"#;
    let decision = &read(reply, patterns()).decisions[0];
    assert_eq!(decision.signals, ["complexity: high", "independent_dimensions: 4", "urgency: low"]);
    assert_eq!(decision.rationale.as_ref().map(Document::text), Some("Four fields, each by itself."));
    assert_eq!(decision.rejected, None);
}

#[test]
fn signals_of_any_shape_stay_small() {
    let many: serde_json::Map<_, _> =
        (0..1000).map(|i| (format!("s{i}"), serde_json::json!("x".repeat(5_000)))).collect();
    let reply = serde_json::json!({ "pattern": "react", "signals": many }).to_string();
    let decision = &read(&reply, patterns()).decisions[0];
    assert!(decision.signals.len() <= 12 && decision.signals.iter().all(|signal| signal.chars().count() <= 200));
    let reply = r#"{"pattern": "react", "signals": ["complexity", 3]}"#;
    assert!(read(reply, patterns()).decisions[0].signals.is_empty());
}

#[test]
fn without_a_set_nothing_can_be_chosen() {
    assert!(matches!(read("react", Vec::new()).reading, Reading::Unusable { .. }));
}

#[test]
fn what_a_reply_describes_counts_whatever_name_follows() {
    let names = [("judge a risk", "risk"), ("find something out", "research")];
    let names = names.map(|(phrase, name)| (phrase.to_owned(), name.to_owned())).into();
    let descriptions = Descriptions { member: "to_do".to_owned(), names };
    let read = |raw: &str| {
        let read = read_described(raw, &descriptions, offered(DecisionKind::TaskType, &["risk", "research"]));
        (read.reading.decision::<&str>().map(str::to_owned), read.repairs)
    };
    let (risk, research) = (Some("risk".to_owned()), Some("research".to_owned()));
    assert_eq!(read(r#"{"to_do": "judge a risk", "task_type": "risk"}"#), (risk.clone(), Vec::new()));
    assert_eq!(read(r#"{"to_do": "judge a risk"}"#), (risk.clone(), Vec::new()), "a name is not needed");
    let note = "the reply describes risk and names `research`: the description counts".to_owned();
    assert_eq!(read(r#"{"to_do": "judge a risk", "task_type": "research"}"#), (risk, vec![note]));
    assert_eq!(read(r#"{"to_do": "something", "task_type": "research"}"#), (research.clone(), Vec::new()));
    assert_eq!(read("research"), (research, Vec::new()));
}
