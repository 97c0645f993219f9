//! The prompts that ask for a task type, for a pattern, and for both.

use crate::contract::PromptOrder;
use crate::reader::Reader;
use crate::session::Session;
use serde_json::{Map, Value, json};
use trellis_domain::TaskTypeName;
use trellis_domain::decision::Decision;

/// The prompt for both. A workspace that has none is asked in two calls.
pub(crate) const ROUTE: &str = "route";
/// The member of its reply that holds both names.
pub(super) const CHOICE: &str = "route";

/// The patterns of one task type.
pub(super) struct PatternSet {
    pub(super) task_type: TaskTypeName,
    pub(super) offered: Decision,
    /// Whether there is anything to choose.
    pub(super) is_open: bool,
}

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
    let properties = [
        ("pattern", json!({ "type": "string", "enum": offered.options })),
        ("signals", signals()),
        ("rationale", json!({ "type": "string" })),
    ];
    order("pattern-select", map(variables), object(map(properties)), offered)
}

/// Asks for both. Whoever writes the reply gives the reason before the names: what is written first is what the rest follows
/// from.
pub(super) fn route(session: &Session, offered: Decision, sets: &[PatternSet], reader: Reader) -> PromptOrder {
    let settings = session.settings();
    let task_types = sets.iter().map(|PatternSet { task_type, offered, .. }| {
        let item = settings.task_types.get(task_type);
        let (description, when) = item.map_or(("", ""), |item| (&item.description, &item.when_to_use));
        json!({ "name": task_type, "description": description, "when_to_use": when, "patterns": offered.options })
    });
    let mut names: Vec<&String> = Vec::new();
    for name in sets.iter().flat_map(|set| &set.offered.options) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let patterns = names.into_iter().map(|name| {
        let item = settings.patterns.get(name.as_str());
        let (description, when) = item.map_or(("", ""), |item| (&item.description, &item.when_to_use));
        json!({ "name": name, "description": description, "when_to_use": when })
    });
    let variables = [
        ("question", json!(session.question())),
        ("context", session.context()),
        ("task_types", task_types.collect()),
        ("patterns", patterns.collect()),
    ];
    let way = |PatternSet { task_type, offered, .. }: &PatternSet| {
        let names = [
            ("task_type", json!({ "type": "string", "enum": [task_type] })),
            ("pattern", json!({ "type": "string", "enum": offered.options })),
        ];
        object(map(names))
    };
    let properties = [
        ("rationale", json!({ "type": "string" })),
        ("signals", signals()),
        (CHOICE, json!({ "anyOf": sets.iter().map(way).collect::<Vec<_>>() })),
    ];
    PromptOrder { reader, ..order(ROUTE, map(variables), object(map(properties)), offered) }
}

/// What the choice of a pattern rests on, in words that can be counted.
fn signals() -> Value {
    let signals = [
        ("complexity", json!({ "type": "string", "enum": ["low", "medium", "high"] })),
        ("independent_dimensions", json!({ "type": "integer" })),
        ("urgency", json!({ "type": "string", "enum": ["low", "normal", "high"] })),
    ];
    object(map(signals))
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
