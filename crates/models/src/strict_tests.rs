use super::*;

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

#[test]
fn a_strict_schema_stays_as_it_is() {
    let steps =
        object(&json!({ "goal": { "type": "string" }, "hint": { "type": ["string", "null"] } }), &["goal", "hint"]);
    let schema = object(
        &json!({
            "choice": { "type": "string", "enum": ["a", "b"], "description": "one of them" },
            "steps": { "type": "array", "items": steps, "minItems": 1, "maxItems": 9 },
            "count": { "type": "integer", "minimum": 0 },
        }),
        &["choice", "steps", "count"],
    );
    assert_eq!(strict(&schema), Some(schema));
}

#[test]
fn optional_members_may_be_null_and_others_are_shut_out() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": ["goal"],
        "properties": {
            "goal": { "type": "string" },
            "pattern": { "enum": ["react", "plan"] },
            "group": { "type": ["array", "null"], "items": { "enum": ["x"] } },
            "context": { "type": "string", "default": "" },
            "inner": { "type": "object", "properties": {} },
            "fixed": { "const": 1 },
        },
    });
    let expected = object(
        &json!({
            "goal": { "type": "string" },
            "pattern": { "enum": ["react", "plan", null], "type": ["string", "null"] },
            "group": { "type": ["array", "null"], "items": { "enum": ["x"], "type": "string" } },
            "context": { "type": ["string", "null"] },
            "inner": { "anyOf": [object(&json!({}), &[]), { "type": "null" }] },
            "fixed": { "anyOf": [{ "const": 1, "type": "integer" }, { "type": "null" }] },
        }),
        &["goal", "pattern", "group", "context", "inner", "fixed"],
    );
    assert_eq!(strict(&schema), Some(expected));
}

#[test]
fn choices_from_an_empty_set_are_no_choices() {
    let group = |group: Value| strict(&object(&json!({ "group": group }), &["group"]));
    let nothing = object(&json!({ "group": { "type": "null" } }), &["group"]);
    assert_eq!(group(json!({ "type": ["array", "null"], "items": { "enum": [] } })), Some(nothing));
    assert_eq!(group(json!({ "type": "array", "items": { "enum": [] } })), None);
    assert_eq!(group(json!({ "type": "string", "enum": [] })), None);
    assert_eq!(group(json!({ "enum": [] })), None);
}

#[test]
fn definitions_are_made_strict_too() {
    let schema = json!({
        "type": "object",
        "properties": { "tree": { "$ref": "#/$defs/tree" } },
        "required": ["tree"],
        "$defs": { "tree": { "type": "object", "properties": { "left": { "$ref": "#/$defs/tree" } } } },
    });
    let left = json!({ "anyOf": [{ "$ref": "#/$defs/tree" }, { "type": "null" }] });
    let mut expected = object(&json!({ "tree": { "$ref": "#/$defs/tree" } }), &["tree"]);
    expected["$defs"] = json!({ "tree": object(&json!({ "left": left }), &["left"]) });
    assert_eq!(strict(&schema), Some(expected));
}

#[test]
fn what_would_mean_something_else_is_not_made_strict() {
    let member = |member: Value| object(&json!({ "m": member }), &["m"]);
    for schema in [
        json!(true),
        json!({}),
        json!({ "type": "array", "items": { "type": "string" } }),
        json!({ "type": ["object", "null"], "properties": {} }),
        json!({ "anyOf": [{ "type": "object", "properties": {} }] }),
        // Free maps: nothing could be written into them.
        json!({ "type": "object" }),
        json!({ "type": "object", "additionalProperties": true, "properties": { "a": { "type": "string" } } }),
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        member(json!({ "type": "object" })),
        json!({ "type": "object", "properties": {}, "required": ["a"] }),
        // Rules that no provider keeps.
        member(json!({ "type": "string", "minLength": 3 })),
        member(json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true })),
        member(json!({ "oneOf": [{ "type": "string" }] })),
        member(json!({ "not": { "type": "string" } })),
        member(json!({ "$ref": "https://elsewhere.org/schema" })),
        // Anything goes.
        member(json!({})),
        member(json!(true)),
        member(json!({ "type": "array" })),
        member(json!({ "enum": [{ "a": 1 }] })),
        member(json!({ "properties": { "a": { "type": "string" } } })),
    ] {
        assert_eq!(strict(&schema), None, "{schema}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |levels: usize| {
        (0..levels).fold(json!({ "type": "string" }), |inner, _| object(&json!({ "inner": inner }), &["inner"]))
    };
    assert!(strict(&nested(DEEPEST)).is_some());
    assert!(strict(&nested(DEEPEST + 1)).is_none());
    assert!(strict(&nested(100)).is_none());
}

/// Whatever the strict form allows, the schema allows, once nulls are read as absences.
#[test]
fn strict_replies_are_replies() {
    let schema = json!({
        "type": "object", "required": ["goals"],
        "properties": { "goals": { "type": "array", "maxItems": 2, "items": {
            "type": "object", "required": ["goal"],
            "properties": {
                "goal": { "type": "string" },
                "pattern": { "enum": ["react"] },
                "group": { "type": ["array", "null"], "items": { "enum": ["x"] } },
            },
        } } },
    });
    let strict = jsonschema::validator_for(&strict(&schema).unwrap()).unwrap();
    let id = "goals";
    let expected = trellis_domain::config::PromptReply::Json { schema: Some(schema) };
    let reader = crate::reply::ReplyReader::new(id, &expected).unwrap();
    let goal = |pattern: Value, group: Value| json!({ "goal": "g", "pattern": pattern, "group": group });
    let patterns = [json!("react"), json!("other"), json!(null), json!(1)];
    let groups = [json!(["x"]), json!([]), json!(["y"]), json!(null), json!("x")];
    let mut allowed = 0;
    for (pattern, group) in patterns.iter().flat_map(|pattern| groups.iter().map(move |group| (pattern, group))) {
        let reply = json!({ "goals": [goal(pattern.clone(), group.clone())] });
        if strict.is_valid(&reply) {
            allowed += 1;
            let read = reader.read(&reply.to_string());
            assert!(matches!(read, trellis_orchestrator::ports::ReplyContent::Object(_)), "{reply}: {read:?}");
        }
    }
    assert_eq!(allowed, 6);
}
