//! Answers from loaded knowledge, step by step on a socket and whole over REST.

use crate::house::{House, Setup};
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::graph_rag::{EntityNames, GraphRag, IndexedKnowledge};
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::memory::{MemoryKnowledge, MemorySearch};
use trellis_orchestrator::ports::{Knowledge, KnowledgePlace, RealWorld};

async fn house(model: ScriptedPrompter) -> House {
    let names = EntityNames { search: Arc::new(MemorySearch::default()), embedder: None };
    let knowledge = Arc::new(IndexedKnowledge::new(Arc::new(MemoryKnowledge::default()), names.clone()));
    let place = KnowledgePlace { workspace: Workspace::default(), collection: Collection::default() };
    let (s, p) = (Term::iri("http://ex.org/Ada"), Term::iri("http://ex.org/wrote"));
    let quad = Quad { s, p, o: Term::literal("the notes"), g: None };
    knowledge.add(&place, "file", vec![quad]).await.unwrap();
    knowledge.finish(&place, "file").await.unwrap();
    let rag = GraphRag { knowledge, names, prompter: Arc::new(model), world: Arc::new(RealWorld) };
    House::with(Setup { graph_rag: Some(rag), ..Setup::default() }).await
}

fn model() -> ScriptedPrompter {
    let mut model = ScriptedPrompter::new(|call| match call.id.as_str() {
        "extract-concepts" => Ok("Ada".to_owned()),
        "kg-edge-scoring" => Ok(r#"{"edges": [{"id": "e1", "score": 10, "reason": "says it"}]}"#.to_owned()),
        _ => Ok("Ada wrote the notes.".to_owned()),
    });
    model.piece = 4;
    model
}

async fn streamed(house: &House, request: Value) -> Vec<Value> {
    let mut socket = house.socket().await;
    socket.send(json!({"id": "1", "service": "graph-rag", "flow": "default", "request": request})).await;
    socket.replies().await
}

#[tokio::test]
async fn a_stream_tells_each_step_then_the_text_then_the_end() {
    let house = house(model()).await;
    let replies = streamed(&house, json!({"query": "What did Ada write?", "streaming": true})).await;
    let said: Vec<&Value> = replies.iter().map(|reply| &reply["response"]).collect();
    let kinds: Vec<&str> = said.iter().map(|reply| reply["message_type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..4], ["explain"; 4], "{kinds:?}");
    assert_eq!(kinds[kinds.len() - 2..], ["explain", "chunk"], "{kinds:?}");
    let text: String = said.iter().filter_map(|reply| reply["response"].as_str()).collect();
    assert_eq!(text, "Ada wrote the notes.");
    let explained: Vec<_> = said.iter().filter(|reply| reply["message_type"] == "explain").collect();
    assert!(explained.iter().all(|step| step["explain_graph"] == "urn:graph:retrieval" && step["response"] == ""));
    assert!(explained[0]["explain_id"].as_str().unwrap().starts_with("urn:trustgraph:question:"));
    assert!(explained[3]["explain_triples"].to_string().contains(r#""t":"t""#), "the edge is quoted");
    let ended: Vec<_> = said.iter().filter(|reply| reply["end_of_stream"] == true).collect();
    assert_eq!(ended.len(), 1);
    let last = said.last().unwrap();
    assert_eq!(
        (&last["end_of_session"], &last["in_token"], &last["model"]),
        (&json!(true), &json!(21), &json!("scripted"))
    );
    assert_eq!(said.iter().filter(|reply| reply["end_of_session"] == true).count(), 1);
}

#[tokio::test]
async fn one_reply_is_enough_for_whoever_does_not_stream() {
    let house = house(model()).await;
    let asked = json!({"query": "What did Ada write?"});
    let (status, reply) = house.post("/api/v1/flow/default/service/graph-rag", &asked).await;
    assert_eq!((status, &reply["response"]), (200, &json!("Ada wrote the notes.")), "{reply}");
    let replies = streamed(&house, asked).await;
    assert_eq!(replies.len(), 1);
    let nothing = streamed(&house, json!({"query": "Who?", "collection": "empty", "streaming": true})).await;
    assert_eq!(nothing[0]["response"]["response"], "The collection `empty` has no knowledge.");
}

#[tokio::test]
async fn what_cannot_be_asked_or_answered_is_an_error() {
    let house = house(ScriptedPrompter::new(|_| Err("it is down".to_owned()))).await;
    let ask = async |request: Value| house.post("/api/v1/flow/default/service/graph-rag", &request).await.1;
    let down = ask(json!({"query": "x", "grounding-seeds": ["Ada wrote"]})).await;
    assert!(down["error"]["message"].as_str().unwrap().contains("it is down"), "{down}");
    for wrong in [
        json!({}),
        json!({"query": "x", "graph-seeds": "urn:a"}),
        json!({"query": "x", "graph-seeds": ["urn:a"], "grounding-seeds": ["a"]}),
        json!({"query": "x", "edge-limit": "many"}),
        json!({"query": "x", "traversal-instructions": [{"types": 7}]}),
        json!({"query": "x".repeat(70_000)}),
    ] {
        assert!(ask(wrong.clone()).await["error"].is_object(), "{wrong:.100}");
    }
    let bare = House::open().await.post("/api/v1/flow/default/service/graph-rag", &json!({"query": "x"})).await.1;
    assert!(bare["error"].to_string().contains("no knowledge is loaded on this server"), "{bare}");
}
