//! `/api/v1/tools`.

use super::server::Api;
use super::{agent, ask};
use crate::house::Setup;
use serde_json::{Value, json};
use trellis_domain::Workspace;
use trellis_gateway::{Access, Identity, Token};

fn weather(method: &str) -> Value {
    let argument = json!({ "name": "city", "type": "string", "description": "where" });
    json!({ "type": "http", "description": "The weather", "method": method, "url": "https://a.example/{city}",
            "arguments": [argument] })
}

async fn put(api: &Api, name: &str, body: &Value) -> (u16, Value) {
    let reply = api.call("PUT", &format!("/api/v1/tools/{name}"), "", &body.to_string()).await;
    (reply.status, reply.json())
}

#[tokio::test]
async fn a_tool_is_added_read_called_and_removed() {
    let api = Api::open().await;
    let (status, added) = put(&api, "weather", &weather("GET")).await;
    assert_eq!(
        (status, &added["tool"]["effect"], &added["tool"]["can_be_called"]),
        (200, &json!("read"), &json!(true))
    );
    let listed = api.get("/api/v1/tools").await.json();
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["search", "weather"]);
    let one = api.get("/api/v1/tools/weather").await.json();
    assert_eq!((&one["key"], &one["item"]["url"]), (&json!("weather"), &json!("https://a.example/{city}")));
    let call = json!({ "arguments": { "question": "Oslo" } });
    let tried = api.post("/api/v1/tools/weather/test", "", &call).await.json();
    assert_eq!((&tried["observation"], &tried["failed"]), (&json!("fact \"Oslo\""), &json!(false)));
    let failing = json!({ "arguments": { "fail": true } });
    let failed = api.post("/api/v1/tools/weather/test", "", &failing).await.json();
    assert_eq!((&failed["observation"], &failed["failed"]), (&json!("Error: the tool is broken"), &json!(true)));
    assert_eq!(api.call("DELETE", "/api/v1/tools/weather", "", "").await.status, 200);
    for (method, path) in [("GET", ""), ("DELETE", ""), ("POST", "/test")] {
        let body = if method == "POST" { "{}" } else { "" };
        let gone = api.call(method, &format!("/api/v1/tools/weather{path}"), "", body).await.refusal();
        assert_eq!(gone, (404, "there is no tool `weather`; GET /api/v1/tools lists them".to_owned()));
    }
}

#[tokio::test]
async fn an_unsafe_tool_is_only_called_if_the_request_says_so() {
    let api = Api::open().await;
    put(&api, "pay", &weather("POST")).await;
    let (status, message) = api.post("/api/v1/tools/pay/test", "", &json!({})).await.refusal();
    assert!(status == 409 && message.contains(r#"send `"unsafe": true`"#), "{status} {message}");
    let tried = api.post("/api/v1/tools/pay/test", "", &json!({ "unsafe": true })).await;
    assert_eq!((tried.status, &tried.json()["failed"]), (200, &json!(false)));
}

#[tokio::test]
async fn what_is_wrong_with_a_tool_is_said_and_nothing_is_written() {
    let api = Api::open().await;
    let queues = json!({ "items": [{ "type": "tool-service", "key": "joke",
        "value": r#"{"request-queue": "request:tg:joke", "response-queue": "response:tg:joke"}"# }] });
    let (status, message) = api.post("/api/v1/configuration", "", &queues).await.refusal();
    assert!(status == 422 && message.contains("message broker") && message.contains("add the `url`"), "{message}");
    for (body, status, words) in [
        (json!({ "type": "http" }), 422, "url"),
        (json!({ "type": "telepathy" }), 422, "unknown tool type"),
        (json!({ "openapi": { "openapi": "3.1.0" }, "operation": "x" }), 422, "there is no operation `x`"),
        (json!({ "openapi": {}, "operation": "x", "type": "http" }), 400, "no member `type`"),
        (json!({ "openapi": {}, "operation": "x", "secrets": ["a b"] }), 400, "not the name of a secret"),
    ] {
        let (refused, reply) = put(&api, "x", &body).await;
        assert!(refused == status && reply.to_string().contains(words), "{refused} {reply}");
    }
    let unread = api.post("/api/v1/tools/search/test", "", &json!({ "argument": {} })).await.refusal();
    assert_eq!(unread, (400, "a call has no member `argument`; it may have arguments, unsafe".to_owned()));
    let nobody = api.post("/api/v1/tools/discover", "", &json!({ "add": true })).await.refusal();
    assert_eq!((nobody.0, nobody.1.contains("--mcp-config")), (404, true), "{}", nobody.1);
    assert_eq!(api.get("/api/v1/tools").await.json()["tools"].as_array().unwrap().len(), 1);
}

/// The document of a server such as this one, and this one's own.
#[tokio::test]
async fn an_operation_of_this_server_becomes_a_tool_and_is_stored_expanded() {
    let api = Api::open().await;
    let document = api.document().clone();
    let wanted =
        json!({ "openapi": document, "operation": "getRun", "found_at": "https://a.example/api/openapi.json" });
    let (status, added) = put(&api, "look", &wanted).await;
    assert_eq!(status, 200, "{added}");
    assert_eq!(added["item"]["url"], "https://a.example/api/v1/runs/{id}", "{added}");
    assert_eq!((&added["tool"]["effect"], &added["item"]["method"]), (&json!("read"), &json!("GET")));
    let stored = api.get("/api/v1/tools/look").await.json();
    assert_eq!(stored["item"], added["item"], "what runs is what is on record");
}

/// `POST /api/v1/tools/discover` asks servers. All else at that path is about a tool of that name.
#[tokio::test]
async fn a_tool_may_be_called_discover() {
    let api = Api::open().await;
    let gone = api.get("/api/v1/tools/discover").await.refusal();
    assert_eq!(gone, (404, "there is no tool `discover`; GET /api/v1/tools lists them".to_owned()));
    assert_eq!(put(&api, "discover", &weather("GET")).await.0, 200);
    assert_eq!(api.get("/api/v1/tools/discover").await.json()["key"], "discover");
    let call = json!({ "arguments": { "question": "Oslo" } });
    let tried = api.post("/api/v1/tools/discover/test", "", &call).await;
    assert_eq!((tried.status, &tried.json()["failed"]), (200, &json!(false)));
    assert_eq!(api.post("/api/v1/tools/discover", "", &json!({})).await.refusal().0, 404, "there are no servers");
    assert_eq!(api.call("DELETE", "/api/v1/tools/discover", "", "").await.status, 200);
    assert_eq!(api.get("/api/v1/tools/discover").await.status, 404);
}

#[tokio::test]
async fn the_tools_of_a_workspace_are_nobody_elses() {
    let token = |name: &str, secret: &str| (Token::new(secret), Identity::user(name, [Workspace::new(name).unwrap()]));
    let access = Access::Tokens(vec![token("a", "token-of-a"), token("b", "token-of-b")]);
    let api = Api::with(Setup { access, ..Setup::default() }).await;
    let of = |secret: &str| format!("Authorization: Bearer {secret}\r\n");
    let put = api.call("PUT", "/api/v1/tools/weather", &of("token-of-a"), &weather("GET").to_string()).await;
    assert_eq!(put.status, 200, "{}", put.body);
    assert_eq!(api.call("GET", "/api/v1/tools/weather", &of("token-of-b"), "").await.status, 404);
    let path = "/api/v1/tools/weather?workspace=a";
    assert_eq!(api.call("GET", path, &of("token-of-b"), "").await.status, 403);
    assert_eq!(api.call("GET", "/api/v1/tools", "", "").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_offered_the_tools_that_its_request_names() {
    let api = Api::open().await;
    put(&api, "weather", &weather("GET")).await;
    let with = |more: Value| {
        let mut body = agent("so");
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let unknown = api.post("/api/v1/runs", "", &with(json!({ "tools": ["wether"] }))).await.refusal();
    assert_eq!(unknown, (400, "there is no tool `wether`; choose from search, weather".to_owned()));
    let model = api.post("/api/v1/runs", "", &with(json!({ "model": "openai/x" }))).await.refusal();
    assert_eq!(model, (400, "no model `openai/x` is configured; choose one of scripted".to_owned()));
    let run = api.finish(&with(json!({ "tools": ["search"], "model": "scripted" }))).await;
    let records = api.get(&format!("/api/v1/runs/{run}/records")).await.body;
    assert!(records.contains("not asked for") && records.contains("\"selection\""), "{records}");
    let mut without = ask(&json!({ "answer": "so" }), "react");
    without["tools"] = json!([]);
    let run = api.finish(&without).await;
    let records = api.get(&format!("/api/v1/runs/{run}/records")).await.body;
    assert!(records.contains(r#""selection":{"tools":[]}"#), "{records}");
}
