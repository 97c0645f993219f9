//! What requests and replies look like, and in which order people need the operations.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// From the first question to what only stock clients and service managers ask for.
const EXAMPLES: &str = include_str!("examples.json");

/// What one operation takes and gives.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    operation: String,
    #[serde(default)]
    request: Option<Value>,
    /// By status; in the first kind of content that the status has.
    #[serde(default)]
    replies: Map<String, Value>,
}

/// Shows in the document what each operation takes and gives, and puts what people do first at the beginning.
pub(super) fn add(document: &mut Value) {
    let examples: Vec<Example> = serde_json::from_str(EXAMPLES).expect("the examples are part of the program");
    let places: HashMap<&str, usize> = examples.iter().enumerate().map(|(n, of)| (of.operation.as_str(), n)).collect();
    let place = |operation: &Value| {
        let name = operation["operationId"].as_str().unwrap_or_default();
        places.get(name).copied().unwrap_or(usize::MAX)
    };
    let (mut tags, mut firsts) = (HashMap::<String, usize>::new(), HashMap::<String, usize>::new());
    for (path, item) in members(&mut document["paths"]) {
        for (_, operation) in members(item) {
            let place = place(operation);
            if let Some(example) = examples.get(place) {
                show(operation.pointer_mut("/requestBody/content"), example.request.as_ref());
                for (status, reply) in &example.replies {
                    show(operation.pointer_mut(&format!("/responses/{status}/content")), Some(reply));
                }
            }
            let first = firsts.entry(path.clone()).or_insert(place);
            *first = place.min(*first);
            for tag in operation["tags"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let first = tags.entry(tag.to_owned()).or_insert(place);
                *first = place.min(*first);
            }
        }
        sort(item, |(_, operation)| place(operation));
    }
    sort(&mut document["paths"], |(path, _)| firsts[path]);
    if let Some(list) = document["tags"].as_array_mut() {
        list.sort_by_key(|tag| tag["name"].as_str().and_then(|name| tags.get(name)).copied());
    }
}

/// Puts an example beside the schema of the first kind of content.
fn show(content: Option<&mut Value>, example: Option<&Value>) {
    let first = content.and_then(Value::as_object_mut).and_then(|content| content.values_mut().next());
    if let (Some(content), Some(example)) = (first, example) {
        content["example"] = example.clone();
    }
}

fn members(value: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    value.as_object_mut().into_iter().flatten()
}

fn sort(value: &mut Value, key: impl Fn(&(String, Value)) -> usize) {
    let mut all: Vec<_> =
        std::mem::take(value.as_object_mut().expect("paths and their items are objects")).into_iter().collect();
    all.sort_by_key(key);
    *value = Value::Object(all.into_iter().collect());
}
