//! What a loader is told about a file: its format, and which of its columns becomes which field. Pure.

use super::sample::Look;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap, HashSet};
use trellis_domain::table::{TableField, TableSchema, graphql_name};

/// Fields, each with its column.
pub(super) type Pairs = BTreeMap<String, String>;

/// The columns whose names say which field they are.
pub(super) fn by_name(look: &Look, schema: &TableSchema) -> Pairs {
    let same: HashSet<&str> = look.columns.iter().map(String::as_str).collect();
    // Of those that are alike, the first.
    let alike: HashMap<String, &String> = look.columns.iter().rev().map(|column| (plain(column), column)).collect();
    let column = |field: &TableField| {
        let own = same.get(field.name.as_str()).map(|column| (*column).to_owned());
        own.or_else(|| alike.get(&plain(&field.name)).map(|column| (*column).clone()))
    };
    schema.fields.iter().filter_map(|field| Some((field.name.clone(), column(field)?))).collect()
}

/// Letters and digits, without regard to case.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether nothing is left for anybody to judge.
pub(super) fn is_whole(pairs: &Pairs, schema: &TableSchema) -> bool {
    schema.fields.iter().all(|field| pairs.contains_key(&field.name))
}

/// What a model may reply: columns of the file and fields of the schema, and no others.
pub(super) fn reply_schema(look: &Look, schema: &TableSchema) -> Value {
    let fields: Vec<&str> = schema.fields.iter().map(|field| field.name.as_str()).collect();
    let source = if look.columns.is_empty() {
        json!({"type": "string"})
    } else {
        json!({"type": "string", "enum": look.columns})
    };
    json!({
        "type": "object",
        "properties": {
            "format": {"type": "object"},
            "mappings": {"type": "array", "items": {
                "type": "object",
                "properties": {"source_field": source, "target_field": {"type": "string", "enum": fields}},
                "required": ["source_field", "target_field"],
            }},
        },
        "required": ["mappings"],
    })
}

/// The pairs that a model named, beside those that need no model. Each field and each column counts once; what is not in
/// the file or in the schema is left out.
pub(super) fn with_reply(mut pairs: Pairs, reply: &Value, look: &Look, schema: &TableSchema) -> Pairs {
    let text = |mapping: &Value, names: [&str; 2]| {
        names.iter().find_map(|name| mapping.get(name)?.as_str().map(str::to_owned))
    };
    for mapping in reply.get("mappings").and_then(Value::as_array).into_iter().flatten() {
        let (Some(column), Some(field)) =
            (text(mapping, ["source_field", "source"]), text(mapping, ["target_field", "target"]))
        else {
            continue;
        };
        // They are shown as they are written in queries.
        let named = |known: &&TableField| known.name == field || graphql_name(&known.name) == field;
        let Some(field) = schema.fields.iter().find(named) else { continue };
        let is_there = look.columns.is_empty() || look.columns.contains(&column);
        let is_free = !pairs.contains_key(&field.name) && !pairs.values().any(|known| *known == column);
        if is_there && is_free {
            pairs.insert(field.name.clone(), column);
        }
    }
    pairs
}

/// The descriptor. Values stay as they are: what a field may be is checked when a row is loaded.
pub(super) fn written(look: &Look, options: Map<String, Value>, pairs: &Pairs, schema: &TableSchema) -> Value {
    let in_order = schema.fields.iter().filter_map(|field| Some((&field.name, pairs.get(&field.name)?)));
    let mapping = |(field, column): (&String, &String)| json!({"source_field": column, "target_field": field, "transforms": [{"type": "trim"}], "validation": []});
    json!({
        "version": "1.0",
        "format": {"type": look.kind.word(), "encoding": "utf-8", "options": options},
        "mappings": in_order.map(mapping).collect::<Vec<_>>(),
        "output": {
            "format": "trustgraph-objects", "schema_name": schema.name, "options": {"confidence": 0.9, "batch_size": 100},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::Kind;
    use super::*;
    use trellis_domain::config::{ConfigItem, validate};

    fn schema() -> std::sync::Arc<TableSchema> {
        let fields = json!([{"name": "id", "type": "integer"}, {"name": "city_name", "type": "string"}]);
        let item = json!({"name": "cities", "description": "", "fields": fields}).to_string();
        match validate("schema", "cities", &item) {
            Ok(ConfigItem::Schema(schema)) => schema,
            other => panic!("{other:?}"),
        }
    }

    fn pairs(pairs: &[(&str, &str)]) -> Pairs {
        pairs.iter().map(|(field, column)| ((*field).to_owned(), (*column).to_owned())).collect()
    }

    #[test]
    fn names_that_are_alike_need_no_model() {
        let (look, schema) = (Look::at("ID,City Name,colour\n", Kind::Csv), schema());
        let found = by_name(&look, &schema);
        assert_eq!(found, pairs(&[("id", "ID"), ("city_name", "City Name")]));
        assert!(is_whole(&found, &schema));
        let descriptor = written(&look, look.options.clone(), &found, &schema);
        assert_eq!(descriptor["mappings"][1]["source_field"], "City Name");
        assert_eq!(descriptor["format"]["options"]["delimiter"], ",");
        assert_eq!(descriptor["output"]["schema_name"], "cities");
    }

    #[test]
    fn a_model_adds_only_what_is_there() {
        let (look, schema) = (Look::at("id,town\n", Kind::Csv), schema());
        let known = by_name(&look, &schema);
        assert!(!is_whole(&known, &schema));
        let mapping = |source: &str, target: &str| json!({"source_field": source, "target_field": target});
        let wrong = [("nothing", "city_name"), ("town", "colour"), ("id", "city_name"), ("town", "id")];
        let wrong: Vec<_> = wrong.iter().map(|(source, target)| mapping(source, target)).collect();
        assert_eq!(with_reply(known.clone(), &json!({"mappings": wrong}), &look, &schema), known);
        let right = json!({"mappings": [mapping("town", "city_name")]});
        assert_eq!(with_reply(known, &right, &look, &schema), pairs(&[("id", "id"), ("city_name", "town")]));
        let allowed = reply_schema(&look, &schema);
        let of = &allowed["properties"]["mappings"]["items"]["properties"];
        assert_eq!(of["source_field"]["enum"], json!(["id", "town"]));
        assert_eq!(of["target_field"]["enum"], json!(["id", "city_name"]));
    }
}
