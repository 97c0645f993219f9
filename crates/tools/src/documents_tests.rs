use super::*;
use crate::Tools;
use crate::tests::call;
use serde_json::json;
use std::sync::Arc;
use trellis_domain::config::{ConfigItem, Settings, validate};
use trellis_domain::{Hash, Workspace};
use trellis_orchestrator::memory::MemorySearch;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::ports::{DocumentInfo, Passage, Place, RealWorld, Search, SearchDocument, ToolRunner};

fn tool(value: &str) -> Arc<ToolItem> {
    match validate("tool", "handbook", value) {
        Ok(ConfigItem::Tool(tool)) => tool,
        other => panic!("not a tool: {other:?}"),
    }
}

fn document(id: &str, texts: &[&str]) -> SearchDocument {
    let passage = |(text, line): (&&str, u64)| Passage {
        text: (*text).to_owned(),
        place: Place {
            headings: vec!["Handbook".into(), format!("Part {line}")],
            bytes: 0..1,
            lines: (line, line + 1),
        },
    };
    let info = DocumentInfo { id: id.into(), title: "Handbook".into(), text: format!("urn:{id}"), hash: Hash::of(id) };
    SearchDocument { info, passages: texts.iter().zip(1..).map(passage).collect(), vectors: None }
}

async fn tools(collection: &str, documents: Vec<SearchDocument>) -> Tools {
    let search = Arc::new(MemorySearch::default());
    let collection = Collection::new(collection).unwrap();
    search.put(&Workspace::default(), &collection, documents).await.unwrap();
    let prompter = Arc::new(ScriptedPrompter::replies(&[]));
    Tools::new(prompter).with_documents(search, Arc::new(RealWorld))
}

async fn ask(tools: &Tools, item: &str, question: &str) -> Result<String, String> {
    let called = tools.call(call(tool(item), &json!({ "question": question }))).await;
    called.map(|output| output.text).map_err(|error| error.to_string())
}

const PLAIN: &str = r#"{"type": "document-rag"}"#;

#[tokio::test]
async fn passages_come_marked_with_their_places() {
    let tools = tools("default", vec![document("d", &["Refunds take a week.", "Closed on Sunday."])]).await;
    let expected = "One passage from the collection `default`. Beside the number of this result, name the passage that you \
                    rest on, such as (p1). Only words were compared, not meaning: no embedding model is configured.\n\n\
                    (p1) Handbook › Part 1 (lines 1–2 of urn:d)\nRefunds take a week.";
    assert_eq!(ask(&tools, PLAIN, "refund").await.unwrap(), expected);
    let nothing = ask(&tools, PLAIN, "zebra").await.unwrap();
    assert!(nothing.starts_with("Nothing in the collection `default` matches"), "{nothing}");
}

#[tokio::test]
async fn the_tool_says_which_collection_and_how_many() {
    let many: Vec<String> = (0..20).map(|n| format!("refund number {n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let tools = tools("books", vec![document("d", &many)]).await;
    let books = ask(&tools, r#"{"type": "document-rag", "collection": "books", "limit": 3}"#, "refund").await.unwrap();
    assert!(books.starts_with("3 passages from the collection `books`"), "{books}");
    assert_eq!(ask(&tools, PLAIN, "refund").await.unwrap(), "The collection `default` has no documents.");
}

#[tokio::test]
async fn long_answers_end_and_say_so() {
    let long = "refund ".repeat(2000);
    let tools = tools("default", vec![document("d", &[long.as_str(); 8])]).await;
    let text = ask(&tools, PLAIN, "refund").await.unwrap();
    assert!(text.len() < 60 << 10 && text.ends_with("Ask more precisely."), "{} bytes", text.len());
    assert!(text.contains("5 more passages were left out"));
}

#[tokio::test]
async fn what_cannot_be_done_is_said() {
    let without = Tools::new(Arc::new(ScriptedPrompter::replies(&[])));
    assert_eq!(ask(&without, PLAIN, "x").await.unwrap_err(), "no documents can be searched here");
    assert!(without.obstacle(&Workspace::default(), &tool(PLAIN), &Settings::default()).is_some(), "it is not offered");
    let tools = tools("default", vec![]).await;
    assert_eq!(tools.obstacle(&Workspace::default(), &tool(PLAIN), &Settings::default()), None);
    let error = tools.call(call(tool(PLAIN), &json!({ "query": "x" }))).await.unwrap_err();
    assert!(error.to_string().contains("`question` is missing"), "{error}");
    let wrong = ask(&tools, r#"{"type": "document-rag", "collection": "a/b"}"#, "x").await.unwrap_err();
    assert!(wrong.contains("a/b"), "{wrong}");
    assert!(validate("tool", "t", r#"{"type": "document-rag", "limit": "many"}"#).is_err());
}
