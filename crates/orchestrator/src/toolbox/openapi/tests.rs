use super::*;

/// A document with one operation on a path, and what it may refer to.
fn document(version: &str, operation: &Value, more: &Value) -> Value {
    let mut document = json!({
        "openapi": version, "info": { "title": "Cities", "version": "2" },
        "servers": [{ "url": "https://{place}.example/v1/", "variables": { "place": { "default": "api" } } }],
        "paths": { "/cities/{city.id}": { "parameters": [{ "name": "city.id", "in": "path", "required": true,
            "schema": { "type": "integer" } }], "post": operation } },
    });
    document.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    document
}

fn made(document: &Value, secrets: &[&str]) -> Result<Expanded, OpenApiError> {
    let secrets: Vec<_> = secrets.iter().map(|name| name.parse().unwrap()).collect();
    expand(document, Wanted { operation: "POST /cities/{city.id}", secrets: &secrets, ..Wanted::default() })
}

fn refused(operation: &Value, more: &Value) -> String {
    made(&document("3.1.0", operation, more), &[]).unwrap_err().to_string()
}

#[test]
fn an_operation_becomes_a_request_with_places() {
    let operation = json!({
        "operationId": "addNote", "summary": "Add a note", "description": "It is shown to everybody.",
        "parameters": [
            { "name": "tag", "in": "query", "schema": { "type": "array", "items": { "type": "string" } } },
            { "name": "text", "in": "query", "required": true, "schema": { "type": "string", "maxLength": 9 } },
            { "name": "X-Trace", "in": "header", "schema": { "type": "string" } },
            { "name": "session", "in": "cookie", "schema": { "type": "string" } },
            { "name": "where", "in": "query", "style": "deepObject", "schema": { "type": "object" } },
        ],
        "requestBody": { "required": true, "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Note" } } } },
        "security": [{ "queryKey": [] }, { "token": [] }],
    });
    let note = json!({ "type": "object", "required": ["text", "id"], "properties": {
        "text": { "type": "string", "description": "What it says", "example": "x" },
        "mood": { "$ref": "#/components/schemas/Mood" }, "id": { "type": "string", "readOnly": true },
        "stars": { "type": "integer", "minimum": 0, "exclusiveMinimum": true, "nullable": true },
    } });
    let schemes = json!({ "token": { "type": "http", "scheme": "bearer" },
        "queryKey": { "type": "apiKey", "in": "query", "name": "key" } });
    let components = json!({ "schemas": { "Note": note, "Mood": { "enum": ["good", "bad"], "type": "string" } }, "securitySchemes": schemes });
    let document = document("3.0.3", &operation, &json!({ "components": components }));
    let expanded = made(&document, &["NOTES"]).unwrap();
    let item = &expanded.item;
    let expected = json!({
        "type": "http", "description": "Add a note. It is shown to everybody.", "method": "POST",
        "url": "https://api.example/v1/cities/{city_id}", "effect": "unsafe",
        "query": { "tag": ["{tag}"], "text": "{text}" },
        "headers": { "X-Trace": "{X-Trace}", "authorization": "Bearer {secret:NOTES}" },
        "body": { "text": "{text_body}", "mood": "{mood}", "stars": "{stars}" },
        "openapi": { "title": "Cities", "version": "2", "operation": "POST /cities/{city.id}" },
    });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&item[member], value, "{member}");
    }
    let argument = |name: &str| {
        item["arguments"].as_array().unwrap().iter().find(|argument| argument["name"] == name).cloned().unwrap()
    };
    assert_eq!(item["arguments"].as_array().unwrap().len(), 7, "{item:#}");
    assert_eq!((&argument("city_id")["type"], &argument("city_id")["required"]), (&json!("integer"), &json!(true)));
    assert_eq!((&argument("text_body")["required"], &argument("mood")["required"]), (&json!(true), &json!(false)));
    assert_eq!(argument("mood")["schema"]["enum"], json!(["good", "bad"]));
    assert_eq!(argument("stars")["schema"], json!({ "type": ["integer", "null"], "exclusiveMinimum": 0 }));
    assert_eq!(argument("text_body")["description"], "What it says");
    assert_eq!(expanded.notes.len(), 2, "{:?}", expanded.notes);
    trellis_domain::config::validate("tool", "note", &expanded.item.to_string()).unwrap();
    let needs = made(&document, &[]).unwrap_err().to_string();
    assert!(needs.contains("needs a key (`token`, a bearer token)"), "{needs}");
}

#[test]
fn a_body_that_is_no_plain_object_is_one_argument() {
    let schema = json!({ "type": "array", "items": { "type": "integer" } });
    let body = json!({ "content": { "application/json": { "schema": schema } } });
    let expanded = made(&document("3.1.0", &json!({ "requestBody": body }), &json!({})), &[]).unwrap();
    assert_eq!(expanded.item["body"], "{body}");
    assert_eq!(expanded.item["arguments"][1]["type"], "array");
}

#[test]
fn a_document_that_goes_round_in_circles_or_elsewhere_is_refused() {
    let body = |reference: &str| json!({ "requestBody": { "content": { "application/json": { "schema": { "$ref": reference } } } } });
    let tree = json!({ "components": { "schemas": { "Tree": { "type": "object", "properties": {
        "leaves": { "type": "array", "items": { "$ref": "#/components/schemas/Tree" } } } } } } });
    let endless = refused(&body("#/components/schemas/Tree"), &tree);
    assert!(endless.contains("`#/components/schemas/Tree`, which contains itself"), "{endless}");
    let circle = json!({ "components": { "parameters": { "A": { "$ref": "#/components/parameters/A" } } } });
    let circle = refused(&json!({ "parameters": [{ "$ref": "#/components/parameters/A" }] }), &circle);
    assert!(circle.contains("leads from one reference to the next"), "{circle}");
    assert!(refused(&body("other.json#/Note"), &json!({})).contains("lies outside of the document"));
    assert!(refused(&body("#/components/schemas/None"), &json!({})).contains("is not in the document"));
    let doubled = |n: usize| {
        json!({ "type": "object", "properties": {
        "a": { "$ref": format!("#/components/schemas/S{}", n + 1) }, "b": { "$ref": format!("#/components/schemas/S{}", n + 1) } } })
    };
    let schemas: Map<_, _> = (0..15).map(|n| (format!("S{n}"), doubled(n))).collect();
    let mut bomb = json!({ "components": { "schemas": schemas } });
    bomb["components"]["schemas"]["S15"] = json!({});
    assert!(refused(&body("#/components/schemas/S0"), &bomb).contains("more than 2000 parts"));
}

#[test]
fn what_cannot_be_called_says_why() {
    for (operation, more, words) in [
        (
            json!({ "requestBody": { "required": true, "content": { "text/csv": {} } } }),
            json!({}),
            "no form in application/json",
        ),
        (
            json!({ "parameters": [{ "name": "c", "in": "cookie", "required": true }] }),
            json!({}),
            "cookies are not sent",
        ),
        (json!({}), json!({ "servers": [{ "url": "/v1" }] }), "`/v1` is no whole address"),
        (json!({}), json!({ "servers": [] }), "no server is named"),
        (json!({}), json!({ "servers": [{ "url": "https://{host}/" }] }), "needs `host`"),
        (json!({}), json!({ "openapi": "2.0" }), "it says `openapi` 2.0"),
        (json!({ "security": [{ "x": [] }] }), json!({}), "`x` is not described"),
    ] {
        let told = refused(&operation, &more);
        assert!(told.contains(words), "{told}");
    }
    let swagger = expand(&json!({ "swagger": "2.0" }), Wanted::default()).unwrap_err().to_string();
    assert!(swagger.contains("Swagger"), "{swagger}");
    let document = document("3.1.0", &json!({ "operationId": "add" }), &json!({}));
    let unknown = expand(&document, Wanted { operation: "ad", ..Wanted::default() }).unwrap_err().to_string();
    assert_eq!(unknown, "there is no operation `ad` in it; there are add");
    let needless = made(&document, &["KEY"]).unwrap_err().to_string();
    assert!(needless.contains("needs no key"), "{needless}");
}

#[test]
fn servers_are_relative_to_where_the_document_was_found() {
    for (url, found_at, whole) in [
        ("/", "https://a.example:8443/docs/openapi.json?x=1", "https://a.example:8443/cities/{city_id}"),
        ("/v1/", "https://a.example/openapi.json", "https://a.example/v1/cities/{city_id}"),
        ("api", "https://a.example/docs/openapi.json", "https://a.example/docs/api/cities/{city_id}"),
        ("//b.example/x", "https://a.example/openapi.json", "https://b.example/x/cities/{city_id}"),
    ] {
        let document = document("3.1.0", &json!({ "operationId": "add" }), &json!({ "servers": [{ "url": url }] }));
        let wanted = Wanted { operation: "add", found_at: Some(found_at), ..Wanted::default() };
        assert_eq!(expand(&document, wanted).unwrap().item["url"], whole);
    }
}
