//! How the router is played, and what the tests of the other roles share.

use super::tests::{PARTNER, ask, settings};
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_domain::config::Settings;
use trellis_domain::parts::Reply;
use trellis_domain::reading::Citation;
use trellis_patterns::Reader;

pub(super) const TRACE: &str = "Trace how Company X came to its present owners, step by step";
pub(super) const COMPARE: &str = "Compare Company X and Company Y as potential partners by risk";

pub(super) async fn json_of(settings: &Arc<Settings>, prompt: &str, variables: Value) -> Value {
    serde_json::from_str(&ask(settings, prompt, variables).await.raw).unwrap()
}

/// The task type and the pattern that the router gets for a question.
pub(super) async fn routed(question: &str) -> (Value, Value) {
    let settings = settings();
    let names = settings.task_types.keys().map(|name| json!({ "name": name }));
    let variables =
        json!({ "question": question, "context": null, "task_types": names.collect::<Value>(), "problem": null });
    let task_type = json_of(&settings, "task-type-classify", variables).await;
    let item = &settings.task_types[task_type["task_type"].as_str().unwrap()];
    let patterns = item.valid_patterns.as_deref().unwrap().iter().map(|name| json!({ "name": name }));
    let variables = json!({
        "question": question, "context": null, "task_type": item.name, "task_type_description": item.description,
        "patterns": patterns.collect::<Value>(), "problem": null,
    });
    (task_type, json_of(&settings, "pattern-select", variables).await)
}

/// The findings or steps that an answer cites, with the stated confidence.
pub(super) fn cited(answer: &str, known: Vec<u32>) -> Vec<(u32, String)> {
    let stated = |citation: Citation| (citation.index, citation.confidence.unwrap_or_default());
    trellis_patterns::read(&Reader::under("supervisor-synthesise", known), &Reply::of_text(answer), Vec::new())
        .citations
        .into_iter()
        .map(stated)
        .collect()
}

#[tokio::test]
async fn the_worked_example_is_routed_to_a_supervisor() {
    let (task_type, pattern) = routed(PARTNER).await;
    assert_eq!(task_type["task_type"], "risk-assessment");
    assert_eq!(pattern["pattern"], "supervisor");
    assert_eq!(pattern["signals"], json!({ "complexity": "high", "independent_dimensions": 4, "urgency": "normal" }));
    assert_eq!(
        pattern["rationale"],
        "Scripted choice: the task has four independent investigative dimensions, well-suited to parallel \
         decomposition."
    );
}

#[tokio::test]
async fn other_questions_are_routed_by_their_words() {
    for (question, task_type, pattern) in [
        ("Why is moss green?", "general", "react"),
        ("Explain step by step how bread is made", "general", "plan-then-execute"),
        ("Look at moss from several angles", "general", "supervisor"),
        ("Trace the river to its source", "research", "plan-then-execute"),
        ("Find out who planted the tree", "research", "react"),
        ("Summarise the notes on moss", "summarisation", "react"),
        ("Do a risk assessment of the old bridge", "risk-assessment", "react"),
        ("", "general", "react"),
    ] {
        let (chosen, selected) = routed(question).await;
        assert_eq!((&chosen["task_type"], &selected["pattern"]), (&json!(task_type), &json!(pattern)), "{question}");
        assert!(chosen["rationale"].as_str().unwrap().starts_with("Scripted choice: "));
    }
    assert_eq!(routed("This is urgent: why is moss green?").await.1["signals"]["urgency"], "high");
}
