use super::*;
use serde_json::json;

fn read(raw: &str) -> Result<ReplyContent, String> {
    content(&ReplyReader::new("p", &Expected::Json { schema: None }).unwrap(), raw)
}

fn content(reader: &ReplyReader, raw: &str) -> Result<ReplyContent, String> {
    match reader.read(raw) {
        ReplyContent::Wrong { reason } => Err(reason),
        content @ (ReplyContent::Text | ReplyContent::Object(_) | ReplyContent::List(_)) => Ok(content),
    }
}

fn object(value: Value) -> ReplyContent {
    ReplyContent::Object(value)
}

#[test]
fn json_is_found_alone_and_in_the_first_block() {
    let expected = || Ok(object(json!({ "a": 1 })));
    assert_eq!(read(" {\"a\": 1}\n"), expected());
    assert_eq!(read("Here:\n```json\n{\"a\": 1}\n```\nor\n```\n{}\n```"), expected());
    assert_eq!(read("```{\"a\": 1}```"), expected());
    assert_eq!(read("```json {\"a\": 1}"), expected(), "a block that was never closed");
    assert_eq!(read("```\ntrue\n```"), Ok(object(json!(true))));
    assert_eq!(read("```true```"), Ok(object(json!(true))));
    assert_eq!(read(r#"{"code": "```sh\nls\n```"}"#), Ok(object(json!({ "code": "```sh\nls\n```" }))));
    assert_eq!(read("[1, 2]"), Ok(ReplyContent::List(vec![json!(1), json!(2)])));
    assert_eq!(read("\"text\""), Ok(object(json!("text"))));
}

#[test]
fn what_is_not_json_is_refused_with_the_reason() {
    let start = "it is not JSON: expected";
    for raw in ["Sorry, no.", "```json\nSorry\n```"] {
        let error = read(raw).unwrap_err();
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn the_place_of_a_problem_is_named() {
    let schema = json!({ "properties": { "steps": { "items": { "enum": ["a", "b"] } } } });
    let reader = ReplyReader::new("p", &Expected::Json { schema: Some(schema) }).unwrap();
    let error = content(&reader, r#"{"steps": ["a", "c"]}"#).unwrap_err();
    assert!(error.ends_with("\"c\" is not one of \"a\" or \"b\" (at \"/steps/1\")"), "{error}");
}

#[test]
fn a_schema_does_not_turn_text_into_json() {
    assert_eq!(expected(&Expected::Text, Some(json!({}))), Expected::Text);
}

#[test]
fn a_null_where_a_member_may_be_missing_is_none() {
    let schema = json!({
        "type": "object", "required": ["a"],
        "properties": { "a": { "type": ["string", "null"] }, "b": { "type": "string" } },
    });
    let reader = ReplyReader::new("p", &Expected::Json { schema: Some(schema) }).unwrap();
    assert_eq!(content(&reader, r#"{"a": "x", "b": null}"#), Ok(object(json!({ "a": "x" }))));
    assert_eq!(content(&reader, r#"{"a": null}"#), Ok(object(json!({ "a": null }))), "where null is a value, it stays");
    let reason = content(&reader, r#"{"a": "x", "b": 1}"#).unwrap_err();
    assert!(reason.contains("is not of type \"string\""), "{reason}");
}
