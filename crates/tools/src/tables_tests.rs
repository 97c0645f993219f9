use super::*;
use crate::Tools;
use serde_json::json;
use trellis_domain::Workspace;
use trellis_domain::config::{ConfigItem, StoredItem, validate};
use trellis_orchestrator::contract::tables::{cities, place, put};
use trellis_orchestrator::memory::MemoryTables;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::{BoxFuture, EmbedError, RealWorld, Tables, TextRole, ToolRunner, ValueVector};

const ASKING: &str = r#"{"type": "structured-query", "description": "cities"}"#;
const FINDING: &str = r#"{"type": "row-embeddings-query", "schema-name": "cities"}"#;

fn tool(value: &str) -> Arc<ToolItem> {
    match validate("tool", "statistics", value) {
        Ok(ConfigItem::Tool(tool)) => tool,
        other => panic!("not a tool: {other:?}"),
    }
}

fn settings() -> Settings {
    let schema = cities().to_json();
    let prompt = json!({"prompt": "x", "response-type": "json"});
    let item = |kind: &str, key: &str, value: &Value| StoredItem {
        kind: kind.to_owned(),
        key: key.to_owned(),
        value: value.to_string(),
    };
    let items = [item("schema", "cities", &schema), item("prompt", "template.graphql-generation", &prompt)];
    Settings::take(1, items).0
}

fn call(item: &str, arguments: &Value) -> ToolCall {
    ToolCall { settings: Arc::new(settings()), ..crate::tests::call(tool(item), arguments) }
}

async fn tools(reply: &str) -> Tools {
    let tables = Arc::new(MemoryTables::default());
    put(&*tables, &cities(), &json!([{"id": 1, "name": "Oslo"}, {"id": 2, "name": "Rome"}])).await;
    Tools::new(Arc::new(ScriptedPrompter::replies(&[reply]))).with_tables(tables, Arc::new(RealWorld))
}

#[tokio::test]
async fn rows_are_the_result_and_what_the_model_said_is_told() {
    let tools = tools(r#"{"query": "{ cities(where: {name: {eq: \"Rome\"}}) { id } }"}"#).await;
    let output = tools.call(call(ASKING, &json!({"question": "Where?"}))).await.unwrap();
    assert_eq!(output.text, "{\n  \"cities\": [\n    {\n      \"id\": 2\n    }\n  ]\n}");
    assert_eq!(output.calls.len(), 1);
    let none = tools.call(call(ASKING, &json!({}))).await.unwrap_err();
    assert!(none.reason.contains("the argument `question` is missing"), "{none}");
    let bound = r#"{"type": "structured-query", "collection": "elsewhere"}"#;
    let elsewhere = tools.call(call(bound, &json!({"question": "Where?"}))).await.unwrap_err();
    assert_eq!(elsewhere.reason, "the collection `elsewhere` has no tables");
}

#[tokio::test]
async fn nothing_found_and_nothing_usable_are_told_with_the_query() {
    let nothing = tools(r#"{"query": "{ cities(where: {id: {eq: 9}}) { id } }"}"#).await;
    let output = nothing.call(call(ASKING, &json!({"question": "Where?"}))).await.unwrap();
    assert!(output.text.starts_with("No rows fit. The query was: { cities("), "{}", output.text);
    let wrong = tools(r#"{"query": "mutation { drop }"}"#).await;
    let error = wrong.call(call(ASKING, &json!({"question": "Where?"}))).await.unwrap_err();
    assert!(error.reason.contains("only queries are answered"), "{error}");
    assert_eq!(error.calls.len(), 2, "both attempts are told");
}

/// Says the same of every text.
#[derive(Debug)]
struct Flat;

impl Embedder for Flat {
    fn model(&self) -> &'static str {
        "test/flat"
    }

    fn embed(&self, texts: Vec<String>, _role: TextRole) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(std::future::ready(Ok(texts.iter().map(|_| vec![1.0, 0.0]).collect())))
    }
}

#[tokio::test]
async fn kinds_that_cannot_run_are_not_offered() {
    let bare = Tools::new(Arc::new(ScriptedPrompter::replies(&[])));
    let obstacle =
        |tools: &Tools, item: &str, settings: &Settings| tools.obstacle(&Workspace::default(), &tool(item), settings);
    assert_eq!(obstacle(&bare, ASKING, &settings()).as_deref(), Some(NO_TABLES));
    assert_eq!(obstacle(&bare, FINDING, &settings()).as_deref(), Some(NO_TABLES));
    let kept = tools("").await;
    assert_eq!(obstacle(&kept, ASKING, &settings()), None);
    assert!(obstacle(&kept, FINDING, &settings()).unwrap().contains("TRELLIS_EMBEDDING_MODEL"));
    let outside = crate::Outside { embedder: Some(Arc::new(Flat)), ..crate::Outside::default() };
    let whole = Tools::new(Arc::new(ScriptedPrompter::replies(&[])));
    let whole = whole.with(outside).with_tables(Arc::new(MemoryTables::default()), Arc::new(RealWorld));
    assert_eq!(obstacle(&whole, FINDING, &settings()), None);
    assert!(obstacle(&whole, FINDING, &Settings::default()).unwrap().contains("there is no schema `cities`"));
}

#[tokio::test]
async fn near_values_are_listed_with_their_scores() {
    let tables = Arc::new(MemoryTables::default());
    put(&*tables, &cities(), &json!([{"id": 1, "name": "Oslo"}])).await;
    let vector = ValueVector { field: "name".to_owned(), text: "Oslo".to_owned(), vector: vec![1.0, 0.0] };
    tables.put_vectors(&place("cities"), "test/flat", vec![vector]).await.unwrap();
    let outside = crate::Outside { embedder: Some(Arc::new(Flat)), ..crate::Outside::default() };
    let tools =
        Tools::new(Arc::new(ScriptedPrompter::replies(&[]))).with(outside).with_tables(tables, Arc::new(RealWorld));
    let output = tools.call(call(FINDING, &json!({"query": "north"}))).await.unwrap();
    assert_eq!(output.text, "Matching records:\n- name: Oslo (score: 1.000)");
    let other = r#"{"type": "row-embeddings-query", "schema-name": "cities", "index-name": "country"}"#;
    let output = tools.call(call(other, &json!({"query": "north"}))).await.unwrap();
    assert_eq!(output.text, "No matching records found");
}
