use super::*;
use serde_json::json;

fn form(properties: &Value, required: &Value) -> Form {
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let Value::Object(schema) = schema else { panic!("it is an object") };
    Form { name: "booking".to_owned(), message: "How many?".to_owned(), schema }
}

#[test]
fn every_kind_of_field_is_held_to_its_schema() {
    for (schema, right, wrong, why) in [
        (json!({ "type": "string", "minLength": 2 }), json!("éé"), json!("é"), "must have at least 2 characters"),
        (json!({ "type": "string", "maxLength": 1 }), json!("é"), json!("éé"), "must have at most 1 characters"),
        (json!({ "type": "string" }), json!(""), json!(3), "must be a text"),
        (json!({ "type": "string", "format": "date" }), json!("2026-02-28"), json!("28.2.2026"), "the format `date`"),
        (
            json!({ "type": "string", "format": "date-time" }),
            json!("2026-02-28T10:00:00Z"),
            json!("2026-02-28"),
            "the format `date-time`",
        ),
        (json!({ "type": "string", "format": "email" }), json!("a@b"), json!("a"), "the format `email`"),
        (json!({ "type": "string", "format": "uri" }), json!("a:b"), json!("ab"), "the format `uri`"),
        (json!({ "type": "integer" }), json!(-3), json!(1.5), "must be a whole number"),
        (json!({ "type": "integer" }), json!(2.0), json!("2"), "must be a whole number"),
        (json!({ "type": "integer", "minimum": 1 }), json!(1), json!(0), "must be at least 1"),
        (json!({ "type": "number", "maximum": 1.5 }), json!(1.5), json!(1.6), "must be at most 1.5"),
        (json!({ "type": "number" }), json!(0.1), json!(true), "must be a number"),
        (json!({ "type": "boolean" }), json!(false), json!("false"), "must be true or false"),
        (json!({ "type": "string", "enum": ["a", "b"] }), json!("b"), json!("c"), r#"must be one of "a", "b""#),
        (
            json!({ "type": "string", "oneOf": [{ "const": "a", "title": "A" }] }),
            json!("a"),
            json!("A"),
            r#"must be one of "a""#,
        ),
        (
            json!({ "type": "array", "minItems": 1, "items": { "type": "string", "enum": ["a"] } }),
            json!(["a"]),
            json!([]),
            "must have at least 1 items",
        ),
        (
            json!({ "type": "array", "items": { "anyOf": [{ "const": "a", "title": "A" }] } }),
            json!(["a"]),
            json!(["b"]),
            r#"has an item that must be one of "a""#,
        ),
        (json!({ "type": "array", "maxItems": 1 }), json!(["a"]), json!(["a", "b"]), "must have at most 1 items"),
        (json!({ "type": "array" }), json!([]), json!("a"), "must be a list"),
    ] {
        let form = form(&json!({ "x": schema }), &json!([]));
        assert_eq!(form.check(&json!({ "x": right })), Ok(()), "{schema}");
        let told = form.check(&json!({ "x": wrong })).unwrap_err();
        assert!(told.starts_with("`x` ") && told.contains(why), "{schema}: {told}");
    }
}

#[test]
fn what_is_missing_or_unknown_is_named() {
    let form = form(&json!({ "a": { "type": "string" }, "b": { "type": "string" } }), &json!(["a"]));
    assert_eq!(form.check(&json!({ "b": "x" })), Err("the field `a` is missing".to_owned()));
    assert_eq!(form.check(&json!({ "a": "x", "c": 1 })), Err("the form has no field `c`; it has a, b".to_owned()));
    assert!(form.check(&json!("x")).unwrap_err().contains("must be an object"));
    assert_eq!(form.check(&json!({ "a": "x" })), Ok(()));
}

#[test]
fn one_form_need_not_be_named_and_several_have_to_be() {
    let one = form(&json!({ "a": { "type": "string" } }), &json!(["a"]));
    let other = Form { name: "payment".to_owned(), ..one.clone() };
    let written = json!({ "a": "x" });
    let Value::Object(written) = written else { panic!("it is an object") };
    let content = by_form(std::slice::from_ref(&one), &written);
    assert_eq!(check(std::slice::from_ref(&one), &content), Ok(()));
    let both = [one, other];
    assert_eq!(check(&both, &by_form(&both, &written)), Err("nothing is said to the form `booking`".to_owned()));
    let Value::Object(content) = json!({ "booking": written, "payment": {} }) else { panic!("it is an object") };
    assert_eq!(check(&both, &content), Err("the form `payment`: the field `a` is missing".to_owned()));
    let Value::Object(content) = json!({ "booking": written, "payment": written, "third": {} }) else {
        panic!("it is")
    };
    assert_eq!(check(&both, &content), Err("there is no form `third`".to_owned()));
}
