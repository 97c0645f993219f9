//! The prompts that ask for a task type and for a pattern.

use crate::contract::PromptOrder;
use crate::reader::Reader;
use crate::session::Session;
use serde_json::{Map, Value, json};
use trellis_domain::TaskTypeName;
use trellis_domain::decision::Decision;

/// Asks what kind of problem the question is.
pub(super) fn task_type(session: &Session, offered: Decision, problem: Option<&str>) -> PromptOrder {
    let items = &session.settings().task_types;
    let described = offered.options.iter().filter_map(|key| {
        let item = items.get(key.as_str())?;
        Some(json!({ "name": key, "description": item.description, "when_to_use": item.when_to_use }))
    });
    let variables = [
        ("question", json!(session.question())),
        ("context", session.context()),
        ("task_types", described.collect()),
        ("problem", json!(problem)),
    ];
    let properties = [
        ("task_type", json!({ "type": "string", "enum": offered.options })),
        ("rationale", json!({ "type": "string" })),
    ];
    order("task-type-classify", map(variables), object(map(properties)), offered)
}

/// Asks which pattern suits the question, out of those that its task type allows.
pub(super) fn pattern(
    session: &Session,
    task_type: &TaskTypeName,
    offered: Decision,
    problem: Option<&str>,
) -> PromptOrder {
    let settings = session.settings();
    let described = offered.options.iter().filter_map(|key| {
        let item = settings.patterns.get(key.as_str())?;
        Some(json!({ "name": key, "description": item.description, "when_to_use": item.when_to_use }))
    });
    let description = settings.task_types.get(task_type).map(|item| item.description.as_str()).unwrap_or_default();
    let variables = [
        ("question", json!(session.question())),
        ("context", session.context()),
        ("task_type", json!(task_type)),
        ("task_type_description", json!(description)),
        ("patterns", described.collect()),
        ("problem", json!(problem)),
    ];
    let signals = [
        ("complexity", json!({ "type": "string", "enum": ["low", "medium", "high"] })),
        ("independent_dimensions", json!({ "type": "integer" })),
        ("urgency", json!({ "type": "string", "enum": ["low", "normal", "high"] })),
    ];
    let properties = [
        ("pattern", json!({ "type": "string", "enum": offered.options })),
        ("signals", object(map(signals))),
        ("rationale", json!({ "type": "string" })),
    ];
    order("pattern-select", map(variables), object(map(properties)), offered)
}

fn order(id: &'static str, variables: Map<String, Value>, schema: Value, offered: Decision) -> PromptOrder {
    PromptOrder {
        id,
        variables,
        schema: Some(schema),
        reader: Reader::plain(id),
        offered: vec![offered],
        turns: Vec::new(),
    }
}

fn map<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A schema of exactly these members: providers that enforce schemas want each of them required and no others.
fn object(properties: Map<String, Value>) -> Value {
    let required: Vec<_> = properties.keys().cloned().collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
