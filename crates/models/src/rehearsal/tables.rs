//! The rehearsal as somebody who asks tables: by the words of the question that are names of tables and fields.

use super::given::Given;
use serde_json::{Value, json};

/// Rows that are asked for.
const FEW: u64 = 5;
const SOME: u64 = 20;
const NUMBERS: [&str; 2] = ["integer", "float"];

/// The reply to `schema-selection`: the tables that the question names, or the first.
pub(super) fn select(given: Given<'_>) -> Value {
    let question = given.question().to_lowercase();
    let names = given.names("schemas");
    let meant: Vec<&str> = names.iter().copied().filter(|name| is_named(&question, name)).collect();
    if meant.is_empty() { json!(names.into_iter().take(1).collect::<Vec<_>>()) } else { json!(meant) }
}

/// The reply to `graphql-generation`: the first table that the question names; rows with a text that it quotes, and by
/// the number that it names, the largest first.
pub(super) fn query(given: Given<'_>) -> Value {
    let question = given.question();
    let lower = question.to_lowercase();
    let mut schemas = given.all("schemas");
    let first = schemas.next();
    let named = first.into_iter().chain(schemas).find(|schema| is_named(&lower, schema.text("name")));
    let Some(schema) = named.or_else(|| given.all("schemas").next()) else { return json!({"query": "{ __typename }"}) };
    let fields = || schema.all("fields");
    let quoted = question.split(['"', '“', '”']).nth(1).filter(|text| !text.trim().is_empty());
    let text = fields().find(|field| field.text("type") == "string" && is_named(&lower, field.text("name")));
    let text = text.or_else(|| fields().find(|field| field.text("type") == "string"));
    let number = fields().find(|field| NUMBERS.contains(&field.text("type")) && is_named(&lower, field.text("name")));
    let mut arguments = Vec::new();
    if let (Some(quoted), Some(field)) = (quoted, text) {
        arguments.push(format!("where: {{{}: {{contains: {}}}}}", field.text("name"), json!(quoted)));
    }
    if let Some(field) = number {
        arguments.push(format!("order_by: {}, direction: DESC", json!(field.text("name"))));
    }
    let limit = if number.is_some() { FEW } else { SOME };
    arguments.push(format!("limit: {}", given.number("limit").map_or(limit, |most| most.min(limit))));
    let selected: Vec<_> = fields().map(|field| field.text("name")).collect();
    let query = format!("{{ {}({}) {{ {} }} }}", schema.text("name"), arguments.join(", "), selected.join(" "));
    json!({"query": query, "confidence": 0.5})
}

/// The reply to `diagnose-structured-data`: of a file with delimiters, the columns that are called like fields.
pub(super) fn descriptor(given: Given<'_>) -> Value {
    const DELIMITERS: [char; 4] = [',', ';', '\t', '|'];
    let first = given.text("sample").lines().next().unwrap_or_default();
    let delimiter = DELIMITERS.into_iter().max_by_key(|delimiter| first.matches(*delimiter).count()).unwrap_or(',');
    let columns: Vec<&str> = first.split(delimiter).map(|name| name.trim().trim_matches('"')).collect();
    let plain = |name: &str| name.to_lowercase().replace(['_', ' ', '-'], "");
    let schema = given.all("schemas").next();
    let fields = schema.into_iter().flat_map(|schema| schema.all("fields")).map(|field| field.text("name"));
    let mapping = |field: &str| {
        let column = columns.iter().find(|column| plain(column) == plain(field))?;
        Some(json!({"source_field": column, "target_field": field, "transforms": []}))
    };
    let mappings: Vec<Value> = fields.filter_map(mapping).collect();
    let name = schema.map(|schema| schema.text("name")).unwrap_or_default();
    json!({
        "format": {"type": "csv", "encoding": "utf-8", "options": {"delimiter": delimiter, "has_header": true}},
        "mappings": mappings,
        "output": {"format": "trustgraph-objects", "schema_name": name, "options": {"confidence": 0.5}},
    })
}

/// Whether a question names something, with or without its plural.
fn is_named(question: &str, name: &str) -> bool {
    let name = name.to_lowercase().replace('_', " ");
    let singular = name.strip_suffix("ies").map(|stem| format!("{stem}y"));
    let singular = singular.unwrap_or_else(|| name.strip_suffix('s').unwrap_or(&name).to_owned());
    !name.is_empty() && (question.contains(&name) || question.contains(&singular))
}
