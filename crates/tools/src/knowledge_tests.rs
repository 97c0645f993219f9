use super::*;
use crate::Tools;
use serde_json::json;
use std::time::Duration;
use trellis_domain::config::{ConfigItem, validate};
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{Scope, Workspace};
use trellis_orchestrator::graph_rag::{EntityNames, IndexedKnowledge};
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::memory::{MemoryGraph, MemoryJournal, MemoryKnowledge, MemorySearch};
use trellis_orchestrator::permits::Permit;
use trellis_orchestrator::ports::{Knowledge, Prompter, RealWorld, ToolRunner};

pub(crate) fn tool(value: &str) -> Arc<ToolItem> {
    match validate("tool", "graph", value) {
        Ok(ConfigItem::Tool(tool)) => tool,
        other => panic!("not a tool: {other:?}"),
    }
}

pub(crate) fn call(tool: Arc<ToolItem>, arguments: &Value) -> ToolCall {
    ToolCall {
        scope: Scope::default(),
        collection: Collection::default(),
        settings: Arc::new(Settings::default()),
        tool,
        arguments: arguments.as_object().cloned().unwrap(),
        idempotency_key: "S/i1/observation:1".to_owned(),
        step: Some("urn:trustgraph:agent:S/i1".to_owned()),
        document: Some("urn:trustgraph:agent:S/i1/observation".to_owned()),
        timeout: Duration::from_mins(1),
        max_reply_bytes: 1 << 20,
        labels: None,
        permit: Permit::default(),
        input: trellis_orchestrator::ports::CallInput::Nobody,
    }
}

fn model() -> ScriptedPrompter {
    ScriptedPrompter::new(|call| match call.id.as_str() {
        "extract-concepts" => Ok("Ada".to_owned()),
        "kg-edge-scoring" => Ok(r#"{"edges": [{"id": "e1", "score": 10, "reason": "says it"}]}"#.to_owned()),
        _ => Ok(format!("From {}", call.variables["knowledge"])),
    })
}

pub(crate) async fn tools(collection: &str, prompter: Arc<dyn Prompter>) -> Tools {
    let names = EntityNames { search: Arc::new(MemorySearch::default()), embedder: None };
    let knowledge = IndexedKnowledge::new(Arc::new(MemoryKnowledge::default()), names.clone());
    let collection = Collection::new(collection).unwrap();
    let place = KnowledgePlace { workspace: Workspace::default(), collection };
    let (s, p) = (Term::iri("http://ex.org/Ada"), Term::iri("http://ex.org/wrote"));
    let quad = Quad { s, p, o: Term::literal("the first program"), g: None };
    knowledge.add(&place, "file", vec![quad]).await.unwrap();
    knowledge.finish(&place, "file").await.unwrap();
    let world = Arc::new(RealWorld);
    let rag = GraphRag { knowledge: Arc::new(knowledge), names, prompter: Arc::clone(&prompter), world };
    let graph = Arc::new(MemoryGraph::new(Arc::new(MemoryJournal::default())));
    Tools::new(prompter).with_knowledge(rag).with_sparql(graph)
}

const PLAIN: &str = r#"{"type": "knowledge-query", "name": "graph"}"#;

#[tokio::test]
async fn a_question_is_answered_with_a_trace_below_the_step() {
    let tools = tools("default", Arc::new(model())).await;
    let output = tools.call(call(tool(PLAIN), &json!({"question": "What did Ada write?"}))).await.unwrap();
    assert!(output.text.contains("the first program"), "{}", output.text);
    assert_eq!(output.calls.len(), 3, "every call of the model is told");
    assert_eq!(output.trace.len(), 5);
    let parent = Term::iri("urn:trustgraph:agent:S/i1");
    assert!(output.trace[0].quads.iter().any(|quad| quad.o == parent), "{:?}", output.trace[0]);
    let again = tools.call(call(tool(PLAIN), &json!({"question": "What did Ada write?"}))).await.unwrap();
    assert_eq!(again.trace[0].id, output.trace[0].id, "the same call has the same trace");
}

#[tokio::test]
async fn the_tool_says_which_collection_and_how_much() {
    let tools = tools("people", Arc::new(model())).await;
    let asked = json!({"question": "What did Ada write?"});
    let elsewhere = tools.call(call(tool(PLAIN), &asked)).await.unwrap();
    assert_eq!(elsewhere.text, "The collection `default` has no knowledge.");
    let bound = r#"{"type": "knowledge-query", "collection": "people", "max-path-length": 1, "edge-limit": 3}"#;
    assert!(tools.call(call(tool(bound), &asked)).await.unwrap().text.starts_with("From"));
    assert!(validate("tool", "graph", r#"{"type": "knowledge-query", "edge-limit": "many"}"#).is_err());
}

#[tokio::test]
async fn what_cannot_be_asked_is_told_to_the_model() {
    let tools = tools("default", Arc::new(model())).await;
    let missing = tools.call(call(tool(PLAIN), &json!({"question": " "}))).await.unwrap_err();
    assert!(missing.reason.contains("`question` is missing"), "{missing}");
    let long = "x".repeat(LONGEST_QUESTION + 1);
    assert!(tools.call(call(tool(PLAIN), &json!({ "question": long }))).await.is_err());
    let bare = Tools::new(Arc::new(model()));
    let settings = Settings::default();
    assert_eq!(bare.obstacle(&Workspace::default(), &tool(PLAIN), &settings).as_deref(), Some(NOTHING));
    assert_eq!(tools.obstacle(&Workspace::default(), &tool(PLAIN), &settings), None);
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_cut_and_says_so() {
    let tools = tools("default", Arc::new(model())).await;
    let mut asked = call(tool(PLAIN), &json!({"question": "What did Ada write?"}));
    asked.max_reply_bytes = 4;
    assert!(tools.call(asked).await.unwrap().text.ends_with(crate::prompt::CUT));
}
