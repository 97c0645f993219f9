//! Tools that services of the deployment are: what each is asked, and what becomes of what it says.

use crate::Ours;
use crate::neighbours::{Neighbours, configure, definition, ends, text};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;
use trellis_servers::{RabbitMq, RabbitMqOptions};

/// What a service answers.
type Answers = fn(&Value) -> Vec<Value>;

/// A flow that names these services besides those that every test has.
pub(super) fn with_services(names: &[&str]) -> Value {
    let topic = |name: &str, class: &str| (format!("{name}-{class}"), format!("{class}:tg:{name}:default:main"));
    let topics: Vec<_> =
        names.iter().flat_map(|name| ["request", "response"].map(|class| topic(name, class))).collect();
    let topics: Vec<_> = topics.iter().map(|(name, topic)| (name.as_str(), topic.as_str())).collect();
    definition(&topics)
}

/// A tool with these members of its kind.
fn item(name: &str, mut members: Value) -> Value {
    members["name"] = json!(name);
    members["description"] = json!("d");
    members
}

/// A tool whose arguments its item names, and which changes nothing.
fn with_arguments(name: &str, members: Value) -> Value {
    let mut item = item(name, members);
    item["effect"] = json!("read");
    item["arguments"] = json!([{"name": "city", "type": "string", "description": "Where"}]);
    item
}

/// Whatever is asked for something broken is answered with an error.
fn or_broken(asked: &Value, replies: &[Value]) -> Vec<Value> {
    if asked.to_string().contains("broken") {
        return vec![json!({"error": {"type": "some-error", "message": "it is broken"}})];
    }
    replies.to_vec()
}

fn rag(asked: &Value) -> Vec<Value> {
    let explained = json!({
        "error": null, "response": "", "end_of_stream": false, "explain_id": "urn:rag:1",
        "explain_graph": "urn:graph:retrieval", "explain_triples": [], "message_type": "explain",
        "end_of_session": false,
    });
    let piece = |text: &str, last: bool| {
        json!({
            "error": null, "response": text, "end_of_stream": last, "explain_id": null, "explain_graph": null,
            "explain_triples": [], "message_type": "chunk", "end_of_session": last, "in_token": null,
        })
    };
    or_broken(asked, &[explained, piece("Rain in ", false), piece("Paris.", true)])
}

fn table(asked: &Value) -> Vec<Value> {
    or_broken(asked, &[json!({"error": null, "data": "[{\"city\": \"Paris\"}]", "errors": []})])
}

fn vectors(_: &Value) -> Vec<Value> {
    vec![json!({"error": null, "vectors": [[0.5, 0.25]]})]
}

fn rows(asked: &Value) -> Vec<Value> {
    let found = json!({
        "index_name": "name", "index_value": ["Paris", "FR"], "text": "Paris", "score": 0.875, "attributes": {},
    });
    or_broken(asked, &[json!({"error": null, "matches": [found]})])
}

fn joke(asked: &Value) -> Vec<Value> {
    let piece = |text: &str, last: bool| json!({"error": null, "response": text, "end_of_stream": last});
    or_broken(asked, &[piece("Why? ", false), piece("Rain.", true)])
}

/// The tool's item, which service it asks with which body, and what is observed then.
type Case = (Value, &'static str, &'static str, &'static str);

fn cases() -> Vec<Case> {
    let near = "Matching records:\n- name: Paris, FR (score: 0.875)";
    vec![
        (
            item("graph-ok", json!({"type": "knowledge-query", "collection": "papers", "edge-limit": 7})),
            "graph-rag",
            r#"{"query":"Paris","collection":"papers","entity_limit":0,"triple_limit":0,"max_subgraph_size":0,"max_path_length":0,"edge_score_limit":0,"edge_limit":7,"max_reranker_input":0,"streaming":false,"parent_uri":"urn:trustgraph:agent:S/i1","user_context":null,"grounding_seeds":[],"graph_seeds":[],"languages":[],"traversal_instructions":[],"graph":null}"#,
            "Rain in Paris.",
        ),
        (
            item("passages-ok", json!({"type": "document-rag", "limit": 4})),
            "document-rag",
            r#"{"query":"Paris","collection":"default","doc_limit":4,"fetch_limit":0,"streaming":false}"#,
            "Rain in Paris.",
        ),
        (
            item("orders-ok", json!({"type": "structured-query", "collection": "orders"})),
            "structured-query",
            r#"{"question":"Paris","collection":"orders"}"#,
            r#"[{"city": "Paris"}]"#,
        ),
        (
            item("near-ok", json!({"type": "row-embeddings-query", "schema-name": "cities", "collection": "orders"})),
            "row-embeddings-query",
            r#"{"vector":[0.5,0.25],"limit":10,"collection":"orders","schema_name":"cities","index_name":null,"attributes":{}}"#,
            near,
        ),
        (
            item(
                "index-ok",
                json!({"type": "row-embeddings-query", "schema-name": "cities", "index-name": "name", "limit": 3}),
            ),
            "embeddings",
            r#"{"texts":["Paris"]}"#,
            near,
        ),
        (
            with_arguments("server-ok", json!({"type": "mcp-tool", "mcp-tool": "get_table"})),
            "mcp-tool",
            r#"{"name":"get_table","parameters":"{\"city\":\"Paris\"}"}"#,
            r#"{"mm": 3}"#,
        ),
        (
            with_arguments("joke-ok", json!({"type": "tool-service", "service": "joke", "style": "dry", "other": 1})),
            "joke",
            r#"{"config":"{\"style\":\"dry\"}","arguments":"{\"city\":\"Paris\"}"}"#,
            "Why? Rain.",
        ),
    ]
}

/// The same kinds of tools, asked for what their services have not.
fn broken() -> Vec<Value> {
    vec![
        item("graph-bad", json!({"type": "knowledge-query", "collection": "broken"})),
        item("passages-bad", json!({"type": "document-rag", "collection": "broken"})),
        item("orders-bad", json!({"type": "structured-query", "collection": "broken"})),
        item("near-bad", json!({"type": "row-embeddings-query", "schema-name": "broken"})),
        with_arguments("server-bad", json!({"type": "mcp-tool", "mcp-tool": "get_broken"})),
        with_arguments("joke-bad", json!({"type": "tool-service", "service": "joke", "style": "broken"})),
    ]
}

async fn put_tools<'i>(neighbours: &Neighbours, items: impl IntoIterator<Item = &'i Value>) {
    let service = json!({
        "id": "joke", "request-queue": "request:tg:joke", "response-queue": "response:tg:joke",
        "config-params": [{"name": "style", "required": false}],
    });
    neighbours.put("tool-service", "joke", &service).await;
    for item in items {
        neighbours.put("tool", item["name"].as_str().unwrap(), item).await;
    }
}

/// What a tool has brought, in a dialog that was answered.
async fn observed(neighbours: &Neighbours, tool: &Value) -> (String, String) {
    let name = tool["name"].as_str().unwrap();
    let responses = neighbours.ask(&json!({"question": format!("ask {name}")})).await;
    let observed = text(&responses, "observation");
    // An answer of several lines may be written as one.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (answer, expected) = (words(&text(&responses, "answer")), words(&format!("It says: {observed}")));
    assert_eq!((answer, ends(&responses)), (expected, 1), "{name}");
    (observed, responses[0]["session_id"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_service_is_asked_as_the_original_asks_it() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    configure(&neighbours).await;
    let (cases, broken) = (cases(), broken());
    put_tools(&neighbours, cases.iter().map(|(item, ..)| item).chain(&broken)).await;
    let services: [(&'static str, Answers); 5] = [
        ("graph-rag", rag),
        ("document-rag", rag),
        ("structured-query", table),
        ("embeddings", vectors),
        ("row-embeddings-query", rows),
    ];
    for (name, replies) in services {
        neighbours.answer(name, &format!("{name}:default:main"), replies).await;
    }
    neighbours.answer("joke", "joke", joke).await;
    neighbours.put("processor:agent-manager", "main", &with_services(&services.map(|(name, _)| name))).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;

    for (tool, service, body, brought) in &cases {
        let (observed, session) = observed(&neighbours, tool).await;
        let asked = neighbours.heard(service).last().unwrap().to_string().replace(&session, "S");
        assert_eq!((asked.as_str(), observed.as_str()), (*body, *brought), "{service}");
    }
    let index = neighbours.heard("row-embeddings-query").pop().unwrap();
    assert_eq!((&index["index_name"], &index["limit"]), (&json!("name"), &json!(3)));

    // What a service calls an error is told to the model, which can do without it.
    for tool in &broken {
        assert_eq!(observed(&neighbours, tool).await.0, "Error: it is broken", "{tool}");
    }
    ours.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_does_not_answer_is_not_waited_for_any_longer_than_a_tool_may_take() {
    let server = RabbitMq::start(RabbitMqOptions::default());
    let (neighbours, notes) = (Neighbours::start(&server).await, TempDir::new().unwrap());
    configure(&neighbours).await;
    neighbours.put("agent", "limits", &json!({"tool-timeout-ms": 1000})).await;
    // Nobody has a queue for the first and the last, and the second takes what it is asked and says nothing.
    let late = [
        item("graph", json!({"type": "knowledge-query"})),
        item("passages", json!({"type": "document-rag"})),
        with_arguments("joke", json!({"type": "tool-service", "service": "joke"})),
    ];
    let unnamed = item("near", json!({"type": "row-embeddings-query", "schema-name": "cities"}));
    put_tools(&neighbours, late.iter().chain([&unnamed])).await;
    neighbours.answer("document-rag", "document-rag:default:main", |_| Vec::new()).await;
    let flow = with_services(&["graph-rag", "document-rag"]);
    neighbours.put("processor:agent-manager", "main", &flow).await;
    let ours = Ours::start(&server, &Arc::default(), notes.path()).await;

    for tool in &late {
        let (observed, _) = observed(&neighbours, tool).await;
        assert!(observed.starts_with("Error: the ") && observed.contains("did not answer within 1 s"), "{observed}");
    }
    assert!(neighbours.heard("document-rag").len() <= 1, "nobody asks again by itself");
    assert_eq!(observed(&neighbours, &unnamed).await.0, "Error: the flow main has no service embeddings");
    ours.stop().await;
}
