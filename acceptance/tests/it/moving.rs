//! A workspace that stock commands carry into another one.

use acceptance::Stage;
use serde_json::{Value, json};

const PEOPLE: &str = "@prefix ex: <http://ex.org/> .\n\
    ex:ada ex:name \"Ada\"@en ; ex:born 1815 ; ex:wrote ex:notes .\nex:notes ex:title \"The \\\"Notes\\\"\\nof 1843\" .\n";

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn configuration_documents_and_knowledge_arrive_as_they_were() {
    let stage = Stage::open().await;
    let folder = tempfile::TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (people, note, bundle) = (path("people.ttl"), path("note.txt"), path("default.tgx"));
    std::fs::write(&people, PEOPLE).unwrap();
    std::fs::write(&note, "Ada wrote it. ☀\n").unwrap();
    stage.tg("tg-load-turtle", &["-i", "people", "-C", "history", &people]).await.ok();
    stage.tg("tg-set-collection", &["history", "-n", "History", "-d", "Old things"]).await.ok();
    let document = ["--id", "urn:doc:ada", "--name", "On Ada", "-k", "text/plain", "--tags", "a,b", &note];
    stage.tg("tg-add-library-document", &document).await.ok();
    let greeting = ["--id", "greet", "--prompt", "Say hello to {{ name }}.", "--response", "text"];
    stage.tg("tg-set-prompt", &greeting).await.ok();
    // What a run says of itself stays where it was asked.
    stage.tg("tg-invoke-agent", &["-q", "Who was Ada?"]).await.ok();

    stage.tg("tg-create-workspace", &["--workspace-id", "copy"]).await.ok();
    let exported = stage.tg("tg-export-workspace", &["-o", &bundle]).await.ok();
    exported.says(&["4 triple(s)", "1 document(s)"]).never_says("skipped");
    for _ in 0..2 {
        let import = ["-i", &bundle, "-w", "copy", "--overwrite"];
        stage.tg("tg-import-workspace", &import).await.ok().says(&["4 triple(s), 1 document(s)"]);
    }

    let (before, after) = (config(&stage, "default").await, config(&stage, "copy").await);
    assert_eq!(before, after, "the same configuration");
    assert!(after["prompt"]["template.greet"].to_string().contains("Say hello"), "{after}");
    assert_eq!(triples(&stage, "default").await, triples(&stage, "copy").await, "the same knowledge");
    let shown = stage.tg("tg-show-library-documents", &["-w", "copy"]).await.ok();
    shown.says(&["urn:doc:ada", "On Ada", "text/plain", "a, b"]);
    let read = stage.tg("tg-get-document-content", &["-w", "copy", "urn:doc:ada"]).await.ok();
    assert_eq!(read.stdout, "Ada wrote it. ☀\n\n");
    let collections = stage.tg("tg-list-collections", &["-w", "copy"]).await.ok();
    collections.says(&["history", "History", "Old things"]);
    stage.tg("tg-list-explain-traces", &["-w", "copy"]).await.ok().says(&["No explainability sessions found."]);
    // Nothing was asked there, so that nothing is known but what was carried.
    let all = ["-w", "copy", "-q", "SELECT ?s { ?s ?p ?o }", "--format", "json"];
    assert_eq!(stage.tg("tg-invoke-sparql-query", &all).await.ok().json().as_array().map(Vec::len), Some(4));
}

/// Items by type and key, with values as they are meant.
async fn config(stage: &Stage, workspace: &str) -> Value {
    let shown = stage.tg("tg-show-config", &["-w", workspace]).await.ok().stdout;
    let items: Value = serde_json::from_str(&shown[shown.find('{').unwrap()..]).unwrap();
    let meant = |value: &Value| {
        value.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_else(|| value.clone())
    };
    let of_type = |items: &Value| {
        let items = items.as_object().unwrap().iter().map(|(key, value)| (key.clone(), meant(value)));
        Value::Object(items.collect())
    };
    let types = items.as_object().unwrap().iter().map(|(kind, items)| (kind.clone(), of_type(items)));
    Value::Object(types.collect())
}

/// What was loaded, whatever its order.
async fn triples(stage: &Stage, workspace: &str) -> Vec<String> {
    let about = ["-w", workspace, "-C", "history", "--format", "json"];
    let mut found = Vec::new();
    for subject in ["http://ex.org/ada", "http://ex.org/notes"] {
        let quads = stage.tg("tg-query-graph", &[&about[..], &["-s", subject]].concat()).await.ok().json();
        found.extend(quads.as_array().unwrap().iter().map(|quad| json!([quad["s"], quad["p"], quad["o"]]).to_string()));
    }
    found.sort();
    assert_eq!(found.len(), 4, "{found:?}");
    found
}
