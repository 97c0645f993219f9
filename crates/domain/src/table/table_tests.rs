use super::*;

fn schema(text: &str) -> Result<TableSchema, SchemaError> {
    TableSchema::from_json("t", &serde_json::from_str(text).unwrap())
}

fn one(kind: &str) -> TableSchema {
    schema(&format!(r#"{{"fields": [{{"name": "f", "type": "{kind}"}}]}}"#)).unwrap()
}

fn read(schema: &TableSchema, cell: Value) -> Result<Option<Value>, String> {
    let row = schema.row(&Map::from_iter([("f".to_owned(), cell)]));
    row.map(|row| row.get("f").cloned()).map_err(|error| error.to_string())
}

#[test]
fn values_are_what_their_field_says() {
    let read_as = |kind: &str, cell: Value| read(&one(kind), cell);
    assert_eq!(read_as("integer", json!(" 42 ")), Ok(Some(json!(42))));
    assert_eq!(read_as("integer", json!(42.0)), Ok(Some(json!(42))), "other programs write integers so");
    assert_eq!(read_as("integer", json!("4.2")), Err("field `f`: `4.2` is no integer".to_owned()));
    assert!(read_as("integer", json!("99999999999999999999")).is_err());
    assert_eq!(read_as("float", json!("1e3")), Ok(Some(json!(1000.0))));
    assert!(read_as("float", json!("NaN")).is_err() && read_as("float", json!("inf")).is_err());
    assert_eq!(read_as("boolean", json!("Yes")), Ok(Some(json!(true))));
    assert_eq!(read_as("boolean", json!(false)), Ok(Some(json!(false))));
    assert_eq!(read_as("date", json!(" 2024-02-01 ")), Ok(Some(json!("2024-02-01"))));
    assert_eq!(read_as("string", json!(" as it is ")), Ok(Some(json!(" as it is "))));
    assert_eq!(read_as("string", json!({"a": [1]})), Ok(Some(json!(r#"{"a":[1]}"#))));
    assert_eq!(read_as("telepathy", json!(7)), Ok(Some(json!("7"))), "what is not known is text");
    for kind in FieldKind::WORDS {
        assert_eq!(read_as(kind, json!("")), Ok(None), "{kind}");
        assert_eq!(read_as(kind, Value::Null), Ok(None), "{kind}");
    }
    assert!(read_as("string", json!("x".repeat((1 << 20) + 1))).unwrap_err().contains("longer than 1 MiB"));
}

#[test]
fn what_is_required_and_what_is_allowed_is_checked() {
    let schema = schema(
        r#"{"fields": [{"name": "f", "type": "string", "enum": ["a", "b"]}, {"name": "k", "type": "integer",
            "primary_key": true}, {"name": "r", "type": "string", "required": true}]}"#,
    )
    .unwrap();
    let row = |cells: Value| schema.row(cells.as_object().unwrap()).map_err(|error| error.to_string());
    assert!(row(json!({"k": 1, "r": "x", "f": "b", "other": "left out"})).unwrap().get("other").is_none());
    assert_eq!(row(json!({"k": 1, "r": "x", "f": "c"})).unwrap_err(), "field `f`: `c` is none of a, b");
    assert_eq!(row(json!({"r": "x"})).unwrap_err(), "field `k`: is missing or empty");
    assert_eq!(row(json!({"k": 1, "r": ""})).unwrap_err(), "field `r`: is missing or empty");
}

#[test]
fn schemas_that_are_none_are_named() {
    let problem = |text: &str| schema(text).unwrap_err().to_string();
    assert!(problem(r"{}").starts_with("is missing"));
    assert!(problem(r#"{"fields": [{"type": "string"}]}"#).contains("entry 1 has no name"));
    assert!(problem(r#"{"fields": [{"name": "a"}, {"name": "a"}]}"#).contains("entry 2 has the name `a`"));
}

#[test]
fn a_schema_is_written_as_it_is_read() {
    let text = r#"{"name": "t", "description": "d", "fields": [{"name": "a", "type": "integer", "primary_key": true},
        {"name": "b", "type": "date", "indexed": true, "description": "when", "enum": ["x"]}]}"#;
    let read = schema(text).unwrap();
    assert_eq!(TableSchema::from_json("t", read.to_json().as_object().unwrap()).unwrap(), read);
}

#[test]
fn fields_can_be_indexed_by_lists_of_names() {
    let text = r#"{"fields": [{"name": "a", "type": "string"}, {"name": "b", "type": "string"}],
        "query-indexes": ["a"], "vector-indexes": ["b"]}"#;
    let schema = schema(text).unwrap();
    let flags: Vec<_> = schema.fields.iter().map(|field| (field.indexed, field.by_meaning)).collect();
    assert_eq!(flags, [(true, false), (false, true)]);
}

#[test]
fn bytes_sort_as_values_do() {
    let sorted = [
        None,
        Some(json!(false)),
        Some(json!(true)),
        Some(json!(i64::MIN)),
        Some(json!(-1)),
        Some(json!(0)),
        Some(json!(7)),
        Some(json!(i64::MAX)),
        Some(json!(-1.5e10)),
        Some(json!(-0.5)),
        Some(json!(0.25)),
        Some(json!(3e8)),
        Some(json!("")),
        Some(json!("a")),
        Some(json!("a\0")),
        Some(json!("a\0b")),
        Some(json!("aa")),
        Some(json!("b")),
    ];
    let bytes: Vec<_> = sorted.iter().map(|value| index_value(value.as_ref())).collect();
    assert!(bytes.is_sorted_by(|one, next| one < next), "{bytes:?}");
    for value in &bytes {
        let followed = [&value[..], &[0, 1, 2]].concat();
        assert_eq!(index_value_length(&followed), Some(value.len()), "{value:?}");
    }
    assert_eq!(index_value(Some(&json!(0.0))), index_value(Some(&json!(-0.0))));
}

#[test]
fn keys_of_several_fields_do_not_run_into_each_other() {
    let text = r#"{"fields": [{"name": "a", "primary_key": true}, {"name": "b", "primary_key": true}]}"#;
    let schema = schema(text).unwrap();
    let key = |a: &str, b: &str| {
        let row = schema.row(json!({"a": a, "b": b}).as_object().unwrap()).unwrap();
        schema.key(&row)
    };
    assert_ne!(key("x", "yz"), key("xy", "z"));
    assert_ne!(key("x\0", "y"), key("x", "\0y"));
    assert!(key(&"x".repeat(2000), "y").unwrap_err().to_string().contains("longer than 1024 bytes"));
}

#[test]
fn without_a_key_rows_are_told_apart_by_all_they_have() {
    let (one, other) = (
        schema(r#"{"fields": [{"name": "a"}, {"name": "b"}]}"#).unwrap(),
        schema(r#"{"fields": [{"name": "b"}, {"name": "a"}]}"#).unwrap(),
    );
    let row = |schema: &TableSchema, a: &str| schema.row(json!({"a": a, "b": "same"}).as_object().unwrap()).unwrap();
    let key = |schema: &TableSchema, a: &str| schema.key(&row(schema, a)).unwrap();
    assert_eq!(key(&one, "x"), key(&other, "x"), "the order of fields is nothing of the row");
    assert_ne!(key(&one, "x"), key(&one, "y"));
}
