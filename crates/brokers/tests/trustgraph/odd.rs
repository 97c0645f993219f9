//! Nulls and values of other types than they should have, in everything that comes from others.

use crate::Ours;
use crate::neighbours::{Neighbours, configure, ends, text};
use crate::services::with_services;
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;
use trellis_domain::config::AGENT_TYPES;
use trellis_servers::{RabbitMq, RabbitMqOptions};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_cannot_be_read_is_refused_and_nulls_are_as_if_nothing_was_said() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    configure(&neighbours).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
    let with = |member: &str, value: Value| json!({"question": "rain?", member: value});
    let refused = [
        (Value::Null, "no request to an agent"),
        (json!([]), "no request to an agent"),
        (json!("rain?"), "no request to an agent"),
        (json!({}), "missing field `question`"),
        (json!({"question": null}), "the question is empty"),
        (json!({"question": {"text": "rain?"}}), "expected a string"),
        (with("streaming", json!("yes")), "expected a boolean"),
        (with("group", json!(7)), "no request to an agent"),
        (with("expected_siblings", json!(-1)), "no request to an agent"),
        (with("history", json!("none")), "expected a sequence"),
        (with("history", json!([null])), "AgentStep"),
        (with("history", json!([{"arguments": []}])), "expected a map"),
        (with("history", json!([{"plan": [{"status": "lost"}]}])), "unknown variant `lost`"),
    ];
    for (request, why) in refused {
        let responses = neighbours.ask(&request).await;
        let error = responses[0]["error"]["message"].as_str().unwrap_or_default();
        assert!(error.contains(why) && responses.len() == 1, "{request}: {responses:?}");
    }

    let members = [
        "state",
        "group",
        "history",
        "collection",
        "streaming",
        "session_id",
        "conversation_id",
        "pattern",
        "task_type",
        "framing",
        "correlation_id",
        "parent_session_id",
        "subagent_goal",
        "expected_siblings",
    ];
    let mut asked: Value = members.iter().map(|name| ((*name).to_owned(), Value::Null)).collect();
    asked["question"] = json!("rain?");
    let responses = neighbours.ask(&asked).await;
    assert_eq!((text(&responses, "answer").as_str(), ends(&responses)), ("It says: Rain.", 1));
    let step = json!({
        "thought": null, "action": null, "arguments": null, "observation": "Snow.", "step_type": null, "plan": null,
        "subagent_results": null,
    });
    asked["history"] = json!([step]);
    assert_eq!(text(&neighbours.ask(&asked).await, "answer"), "It says: Snow.");
    ours.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn items_and_notices_that_say_nothing_usable_take_nothing_away() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    let odd = [json!(null), json!(7), json!("text"), json!([]), json!({"name": 7, "type": null, "topics": null})];
    for (kind, (n, value)) in AGENT_TYPES.iter().flat_map(|kind| odd.iter().enumerate().map(move |odd| (kind, odd))) {
        let key = if *kind == "prompt" { format!("template.odd-{n}") } else { format!("odd-{n}") };
        neighbours.note_item("default", kind, &key, Some(value));
    }
    let topics = [json!({"topics": {"request": null}}), json!({"topics": {"request": 7, "response": []}})];
    for (n, value) in odd.iter().chain(&topics).enumerate() {
        neighbours.note_item("default", "processor:agent-manager", &format!("odd-{n}"), Some(value));
    }
    configure(&neighbours).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
    let question = json!({"question": "rain?"});
    assert_eq!(text(&neighbours.ask(&question).await, "answer"), "It says: Rain.");

    let asked = neighbours.heard("config").len();
    let notices = [
        json!(null),
        json!([]),
        json!("all"),
        json!({"version": null, "changes": null, "workspace_changes": null}),
        json!({"version": "8", "changes": {"tool": null}}),
        json!({"version": 8, "changes": {"tool": [null]}}),
        json!({"version": 8, "changes": [], "workspace_changes": {"created": null, "deleted": null}}),
    ];
    for notice in &notices {
        neighbours.notify(notice).await;
    }
    neighbours.until_more("config", asked).await;
    assert_eq!(text(&neighbours.ask(&question).await, "answer"), "It says: Rain.");
    ours.stop().await;
}

/// What a collection of that name is answered with.
fn replies(asked: &Value) -> Vec<Value> {
    let odd = match asked["collection"].as_str().unwrap() {
        "null" => Value::Null,
        "list" => json!(["Rain."]),
        "empty" => json!({}),
        "nothing" => json!({"error": null, "data": null, "errors": null, "response": null, "end_of_session": true}),
        "number" => json!({"error": null, "data": 7, "errors": "none", "response": 7, "end_of_session": true}),
        "object" => json!({"error": null, "data": {"mm": 3}, "response": {"mm": 3}, "end_of_session": true}),
        "partly" => json!({"data": null, "errors": ["no", 7, null], "response": null, "end_of_session": true}),
        "told" => json!({"error": "no tables", "data": null}),
        "unsaid" => json!({"error": {"type": null, "message": null}}),
        other => panic!("nobody here has the collection {other}"),
    };
    vec![odd]
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_service_says_is_told_to_the_model_or_is_an_error_for_it() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    configure(&neighbours).await;
    let no_object = "answered with something that is no JSON object";
    // The collection, and what is observed of it in tables and in documents.
    let cases = [
        ("null", no_object, Some(no_object)),
        ("list", no_object, Some(no_object)),
        // A stream without its end is waited for.
        ("empty", "No data returned", None),
        ("nothing", "No data returned", Some("")),
        ("number", "7", Some("7")),
        ("object", r#"{"mm":3}"#, Some(r#"{"mm":3}"#)),
        ("partly", "Error: no; 7", Some("")),
        ("told", "Error: no tables", Some("Error: no tables")),
        (
            "unsaid",
            "Error: the service failed without saying why",
            Some("Error: the service failed without saying why"),
        ),
    ];
    for (collection, ..) in cases {
        for (kind, name) in [("structured-query", "table"), ("document-rag", "text")] {
            let name = format!("{name}-{collection}");
            let item = json!({"name": name, "description": "d", "type": kind, "collection": collection});
            neighbours.put("tool", &name, &item).await;
        }
    }
    for name in ["structured-query", "document-rag"] {
        neighbours.answer(name, &format!("{name}:default:main"), replies).await;
    }
    let flow = with_services(&["structured-query", "document-rag"]);
    neighbours.put("processor:agent-manager", "main", &flow).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;
    for (collection, in_tables, in_documents) in cases {
        let expected = [("table", Some(in_tables)), ("text", in_documents)];
        for (name, expected) in expected.into_iter().filter_map(|(name, expected)| Some((name, expected?))) {
            let responses = neighbours.ask(&json!({"question": format!("ask {name}-{collection}")})).await;
            let observed = text(&responses, "observation");
            let is_so = if expected == no_object { observed.contains(expected) } else { observed == expected };
            assert!(is_so && ends(&responses) == 1, "{name}-{collection}: {observed:?}, {responses:?}");
        }
    }
    ours.stop().await;
}
