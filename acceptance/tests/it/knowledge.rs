//! Knowledge that stock clients load, and see again.

use acceptance::Stage;
use std::path::PathBuf;

const PEOPLE: &str = "@prefix : <http://example.com/> .\n\
    :ada :knows :grace ; :name \"Ada\"@en ; :born 1815 .\n\
    :grace :name \"Grace\" .\n";

fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn a_turtle_file_is_loaded_and_asked_about() {
    let stage = Stage::open().await;
    let (_folder, people) = file("people.ttl", PEOPLE);
    let people = people.to_str().unwrap();
    stage.tg("tg-load-turtle", &["-i", "people", people]).await.ok().says(&["Triples loaded.", "File loaded."]);
    let about = ["-s", "http://example.com/ada", "--format", "json"];
    let found = stage.tg("tg-query-graph", &about).await.ok().json();
    assert_eq!(found.as_array().map(Vec::len), Some(3), "{found}");
    let name = "SELECT ?name { <http://example.com/ada> <http://example.com/knows>/<http://example.com/name> ?name }";
    stage.tg("tg-invoke-sparql-query", &["-q", name]).await.ok().says(&["Grace"]);
    let labelled = ["-o", "Ada", "--object-language", "en"];
    stage.tg("tg-query-graph", &labelled).await.ok().says(&["http://example.com/ada"]);
    stage.trellis(&["knowledge", "list"]).await.ok().says(&["default", "4"]);
    stage.tg("tg-show-graph", &[]).await.ok().says(&["http://example.com/knows"]);
}

#[tokio::test]
#[ignore = "needs the stock clients: run `cargo xtask test`"]
async fn knowledge_is_in_its_collection_and_goes_with_it() {
    let stage = Stage::open().await;
    let (_folder, people) = file("people.ttl", PEOPLE);
    let load = ["-i", "people", "-C", "history", "-g", "urn:graph:people", people.to_str().unwrap()];
    stage.tg("tg-load-knowledge", &load).await.ok().says(&["Total: 4", "Triples and entity contexts loaded."]);
    let about = |collection: &'static str| ["-s", "http://example.com/ada", "-C", collection, "--format", "json"];
    let found = stage.tg("tg-query-graph", &about("history")).await.ok().json();
    assert_eq!(found.as_array().map(Vec::len), Some(3), "{found}");
    let elsewhere = stage.tg("tg-query-graph", &about("default")).await.ok().json();
    assert_eq!(elsewhere, serde_json::json!([]));
    stage.tg("tg-list-collections", &[]).await.ok().says(&["history"]);
    stage.tg("tg-delete-collection", &["history", "-y"]).await.ok().says(&["deleted successfully"]);
    let gone = stage.tg("tg-query-graph", &about("history")).await.ok().json();
    assert_eq!(gone, serde_json::json!([]));
    stage.tg("tg-list-collections", &[]).await.ok().never_says("history");
}
