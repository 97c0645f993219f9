use super::*;

#[test]
fn what_is_referred_to_stands_in_its_place() {
    let schema = json!({
        "type": "object",
        "required": ["from", "$ref"],
        "properties": {
            "from": { "$ref": "#/$defs/place", "description": "where it begins" },
            "$ref": { "type": "array", "items": { "$ref": "#/$defs/place" } },
            "kind": { "enum": [{ "$ref": "a value" }] },
        },
        "$defs": {
            "place": { "type": "object", "description": "a place", "properties": { "city": { "$ref": "#/$defs/name" } } },
            "name": { "type": "string", "minLength": 1 },
        },
    });
    let city = json!({ "city": { "type": "string", "minLength": 1 } });
    let place = |description: &str| json!({ "type": "object", "description": description, "properties": city });
    let expected = json!({
        "type": "object",
        "required": ["from", "$ref"],
        "properties": {
            "from": place("where it begins"),
            "$ref": { "type": "array", "items": place("a place") },
            "kind": { "enum": [{ "$ref": "a value" }] },
        },
    });
    assert_eq!(inlined(&schema), expected);
}

#[test]
fn a_schema_without_references_stays_as_it_is() {
    let schema = json!({ "type": "object", "$defs": { "unused": true }, "properties": { "a": { "minimum": 3 } } });
    assert_eq!(inlined(&schema), schema);
}

#[test]
fn rules_beside_a_reference_hold_as_well() {
    let schema = json!({ "$ref": "#/definitions/n", "minimum": 3, "definitions": { "n": { "type": "integer" } } });
    assert_eq!(inlined(&schema), json!({ "allOf": [{ "type": "integer" }, { "minimum": 3 }] }));
}

#[test]
fn what_contains_itself_is_unfolded_and_then_allows_anything() {
    let tree = json!({ "type": "object", "properties": { "left": { "$ref": "#/$defs/tree" } } });
    let schema = json!({ "$ref": "#/$defs/tree", "$defs": { "tree": tree } });
    let around = |left: Value| json!({ "type": "object", "properties": { "left": left } });
    assert_eq!(inlined(&schema), around(around(json!({}))));
    assert_eq!(inlined(&json!({ "$ref": "#" })), json!({}));
    let pair = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } });
    assert_eq!(inlined(&pair), json!({}));
}

#[test]
fn what_lies_elsewhere_or_nowhere_allows_anything() {
    for reference in ["https://elsewhere.org/schema", "other.json#/a", "#/$defs/none", "#anchor"] {
        let schema = json!({ "anyOf": [{ "$ref": reference }, { "type": "null" }] });
        assert_eq!(inlined(&schema), json!({ "anyOf": [{}, { "type": "null" }] }), "{reference}");
    }
}

#[test]
fn a_small_schema_does_not_become_a_huge_one() {
    let doubled = |n: usize| {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        json!({ "type": "object", "description": "x".repeat(500), "properties": { "a": next, "b": next } })
    };
    let mut definitions: Map<_, _> = (0..25).map(|n| (format!("d{n}"), doubled(n))).collect();
    definitions.insert("d25".to_owned(), json!({ "type": "string" }));
    let schema = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
    assert!(inlined(&schema).to_string().len() < 2 * MOST_BYTES);
}
