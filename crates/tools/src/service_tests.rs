//! Calls of a service on this machine.

use super::*;
use crate::http::tests::{answer, http, serve};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::config::StoredItem;

/// A service at an address, with one tool of it.
fn settings(service: &Value) -> Arc<Settings> {
    let item = |kind: &str, key: &str, value: &Value| StoredItem {
        kind: kind.to_owned(),
        key: key.to_owned(),
        value: value.to_string(),
    };
    let argument = json!([{ "name": "topic", "type": "string", "description": "what about" }]);
    let tool = json!({ "type": "tool-service", "service": "joke", "style": "dry", "other": 1, "arguments": argument });
    Arc::new(Settings::take(1, [item("tool-service", "joke", service), item("tool", "joke", &tool)]).0)
}

fn at(address: &str) -> Value {
    let headers = json!({ "authorization": "Bearer {secret:WEATHER}" });
    let parameters = json!([{ "name": "style", "required": true }, "mood"]);
    json!({ "url": format!("http://{address}/joke"), "headers": headers, "config-params": parameters })
}

async fn ask(service: &Value, arguments: Value) -> Result<String, String> {
    let settings = settings(service);
    let wanted = ToolCall {
        scope: trellis_domain::Scope::default(),
        collection: trellis_domain::Collection::default(),
        tool: Arc::clone(settings.tools.get("joke").expect("the service is there")),
        settings,
        arguments: arguments.as_object().unwrap().clone(),
        idempotency_key: "key-1".to_owned(),
        step: None,
        document: None,
        timeout: Duration::from_secs(9),
        max_reply_bytes: 1 << 20,
        labels: None,
        permit: trellis_orchestrator::permits::Permit::default(),
        input: trellis_orchestrator::ports::CallInput::Nobody,
    };
    call(&http(&["127.0.0.1"], true), &wanted).await.map(|output| output.text).map_err(|error| error.reason)
}

#[tokio::test]
async fn a_service_gets_its_parameters_and_the_arguments_as_texts() {
    let (address, served) =
        serve(vec![answer("200 OK", "", r#"{"error": null, "response": "Moss!", "end_of_stream": true}"#)]).await;
    let said = ask(&at(&address), json!({ "topic": "moss" })).await;
    assert_eq!(said.as_deref(), Ok("Moss!"));
    let asked = &served.await.unwrap()[0];
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body, json!({ "config": r#"{"style":"dry"}"#, "arguments": r#"{"topic":"moss"}"# }));
    assert!(head.starts_with("POST /joke ") && head.contains("idempotency-key: key-1"), "{head}");
    assert!(head.contains("authorization: Bearer sk-weather-1"), "{head}");
}

#[tokio::test]
async fn a_service_that_says_the_last_word_is_not_waited_for() {
    // The length promises more than ever comes.
    let lines = "{\"response\":\"Mo\"}\n{\"response\":\"\"}\n{\"response\":\"ss\",\"end_of_stream\":true}\n";
    let endless = |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n{body}");
    let events = "event: reply\ndata: {\"response\":\"Mo\"}\n\ndata: {\"response\":\"ss\",\"end_of_stream\":true}\n\n";
    let (address, served) = serve(vec![endless(lines), endless(events)]).await;
    assert_eq!(ask(&at(&address), json!({})).await.as_deref(), Ok("Moss"));
    assert_eq!(ask(&at(&address), json!({})).await.as_deref(), Ok("Moss"));
    served.await.unwrap();
}

#[tokio::test]
async fn what_a_service_does_wrong_is_told() {
    let refusal = r#"{"error": {"type": "tool-error", "message": "no jokes about that"}, "response": ""}"#;
    for (body, words) in [
        (refusal, "no jokes about that"),
        ("{\"response\":\"Mo\"}\n{\"response\":\"ss\"}\n", "stopped before the end"),
        ("Moss!", "cannot be read"),
        ("[1]", "a reply is no object"),
        ("", "there is none"),
        (&"x".repeat((1 << 20) + 1), "more than 1 MB"),
    ] {
        let (address, _served) = serve(vec![answer("200 OK", "", body)]).await;
        let told = ask(&at(&address), json!({})).await.unwrap_err();
        assert!(told.contains(words), "{told}");
    }
    let (address, _served) = serve(vec![answer("429 Too Many Requests", "", "later")]).await;
    let told = ask(&at(&address), json!({})).await.unwrap_err();
    assert!(told.ends_with("answered 429 Too Many Requests: later"), "{told}");
}

#[test]
fn a_service_is_held_against_what_the_operator_allows() {
    let here = http(&["127.0.0.1"], true);
    let obstacle = |service: &Value| {
        let settings = settings(service);
        obstacle(&here, settings.tools.get("joke").unwrap(), &settings)
    };
    assert_eq!(obstacle(&at("127.0.0.1:1")), None);
    let elsewhere = obstacle(&json!({ "url": "https://jokes.example/" })).unwrap();
    assert!(elsewhere.contains("does not allow calls to jokes.example"), "{elsewhere}");
    let unknown = json!({ "url": "http://127.0.0.1/", "headers": { "x": "{secret:OTHER}" } });
    assert!(obstacle(&unknown).unwrap().contains("there is no secret `OTHER`"));
    let place = obstacle(&json!({ "url": "http://127.0.0.1/{topic}" })).unwrap();
    assert!(place.contains("no places for arguments"), "{place}");
    let queues =
        obstacle(&json!({ "request-queue": "request:tg:joke", "response-queue": "response:tg:joke" })).unwrap();
    assert!(queues.contains("queues of a message broker") && queues.contains("`url`"), "{queues}");
}

#[test]
fn replies_are_joined_as_they_come() {
    for (received, text) in [
        (r#"{"response": "one"}"#, "one"),
        (r#"{"response": {"a": 1}}"#, r#"{"a":1}"#),
        (r#"{"response": null, "end_of_stream": true}"#, ""),
        (r#"{"response": "a", "end_of_stream": true}{"response": "b"}"#, "a"),
    ] {
        assert_eq!(joined(received).as_deref(), Ok(text), "{received}");
    }
}
