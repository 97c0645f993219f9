//! Files of rows, loaded into the real program and asked: by queries, by tools, by an agent, on a folder and at a server.

use crate::served::Served;
use crate::{json, ok, stderr, stdout, trellis};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const CITIES: &str =
    "ID;City;People;Founded\n1;Oslo;709000;1048-01-01\n2;Rome;2748000;\n3;\"Reggio; nell'Emilia\";171000;\n";
const TOOL: &str = r#"{"type": "structured-query", "name": "statistics", "description": "Ask about cities"}"#;

fn write(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn failed(data: &Path, arguments: &[&str]) -> String {
    let output = trellis(data, arguments).output().unwrap();
    assert!(!output.status.success(), "{}", stdout(&output));
    stderr(&output)
}

#[test]
fn a_file_gets_a_schema_and_its_rows_are_asked() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = write(files.path(), "Cities.csv", CITIES);
    let loaded = json(data.path(), &["load", &file]);
    assert_eq!(
        (&loaded["rows"], &loaded["new_rows"], &loaded["changed"]),
        (&json!(3), &json!(3), &json!(0)),
        "{loaded}"
    );
    let again = json(data.path(), &["load", &file]);
    assert_eq!((&again["rows"], &again["new_rows"], &again["changed"]), (&json!(3), &json!(0), &json!(0)), "{again}");
    let schema = ok(data.path(), &["config", "get", "schema", "cities"]);
    assert!(schema.contains("\"primary_key\"") && schema.contains("\"founded\""), "{schema}");
    let query = "{ cities(where: {people: {gt: 200000}}, order_by: \"people\", direction: DESC) { id city founded } }";
    let found = json(data.path(), &["tables", "query", query]);
    let rows = json!([{"id": 2, "city": "Rome", "founded": null}, {"id": 1, "city": "Oslo", "founded": "1048-01-01"}]);
    assert_eq!(found["cities"], rows);
    write(files.path(), "Cities.csv", CITIES.replace("709000", "717710"));
    assert_eq!(json(data.path(), &["load", &file])["changed"], 1);
    let listed = json(data.path(), &["tables", "list"]);
    assert_eq!((&listed["tables"][0]["table"], &listed["tables"][0]["rows"]), (&json!("cities"), &json!(3)));
    assert_eq!(listed["tables"][0]["loaded_by"][0]["surface"], "command-line");
    assert!(ok(data.path(), &["doctor"]).contains("3 rows in 1 table"));
    assert!(failed(data.path(), &["tables", "query", "{ cities { size } }"]).contains("has no field `size`"));
    assert_eq!(json(data.path(), &["tables", "remove", "cities"])["rows"], 3);
    assert!(failed(data.path(), &["tables", "remove", "cities"]).contains("there is no table"));
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_line_and_the_rest_stays() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    ok(data.path(), &["load", &write(files.path(), "cities.csv", CITIES)]);
    let wrong = write(files.path(), "more.csv", "id,city,people\n4,Graz,many\n");
    let told = failed(data.path(), &["load", &wrong, "--schema", "cities"]);
    assert!(told.contains("more.csv:2: field `people`: `many` is no integer"), "{told}");
    let told = failed(data.path(), &["load", &wrong, "--schema", "towns"]);
    assert!(told.contains("there is no schema `towns`"), "{told}");
    let old = write(files.path(), "old.csv", b"id,city\n5,M\xfcnchen\n");
    assert!(failed(data.path(), &["load", &old, "--schema", "cities"]).contains("--encoding windows-1252"));
    ok(data.path(), &["load", &old, "--schema", "cities", "--encoding", "windows-1252"]);
    let lines = write(files.path(), "new.jsonl", "{\"id\": 6, \"city\": \"Bern\"}\n{\"id\": 7, \"other\": []}\n");
    ok(data.path(), &["load", &lines, "--schema", "cities"]);
    let found = json(data.path(), &["tables", "query", "{ cities(where: {id: {gte: 4}}) { id city } }"]);
    let rows = json!([{"id": 5, "city": "München"}, {"id": 6, "city": "Bern"}, {"id": 7, "city": null}]);
    assert_eq!(found["cities"], rows, "nothing of the file whose first row was wrong");
    let huge = write(files.path(), "huge.csv", format!("id,city\n9,\"{}", "x".repeat(100 << 20)));
    let told = failed(data.path(), &["load", &huge, "--schema", "cities"]);
    assert!(told.contains("huge.csv:2: a record is longer than 4 MiB; is a quote missing"), "{told}");
}

#[test]
fn an_agent_asks_tables_and_the_run_shows_how() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    ok(data.path(), &["load", &write(files.path(), "cities.csv", CITIES)]);
    ok(data.path(), &["tools", "add", "statistics", TOOL]);
    let tested = ok(data.path(), &["tools", "test", "statistics", "question=Which cities have the most people?"]);
    assert!(tested.find("Rome").unwrap() < tested.find("Oslo").unwrap(), "{tested}");
    let address = crate::listen(answer);
    let mut ask = trellis(data.path(), &["ask", "How many people live in Rome?", "--pattern", "react"]);
    let output = with_model(&mut ask, &address).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("2,748,000"), "{}", stdout(&output));
    let shown = ok(data.path(), &["run", "show", "last", "--full"]);
    assert!(shown.contains("statistics") && shown.contains("2748000"), "{shown}");
    assert!(ok(data.path(), &["verify", "last"]).starts_with("ok"));
}

fn with_model<'c>(command: &'c mut Command, address: &str) -> &'c mut Command {
    command.env("TRELLIS_MODEL", "openai/m").env("OPENAI_BASE_URL", format!("http://{address}/v1"));
    command.env("TRELLIS_MODELS_NATIVE_TOOLS", "false").env("TRELLIS_MODELS_PROBE", "false")
}

/// A model server: it writes a wrong query first, mends it when it is told, and answers from the rows.
fn answer(stream: std::net::TcpStream) -> Option<()> {
    crate::documents::serve(stream, |request| {
        let said = request["messages"].to_string();
        let text = if said.contains("Your last query was refused") {
            assert!(said.contains("has no field `inhabitants`"), "{said}");
            r#"{"query": "{ cities(where: {city: {eq: \"Rome\"}}) { people } }", "confidence": 1}"#
        } else if said.contains("You write one GraphQL query") {
            r#"{"query": "{ cities { inhabitants } }", "confidence": 1}"#
        } else if said.contains("2748000") {
            "Thought: I know it.\nFinal Answer: 2,748,000 people [1]."
        } else {
            "Thought: I look.\nAction: statistics\nArgs: {\"question\": \"How many people live in Rome?\"}"
        };
        let chunk = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
        format!("data: {chunk}\n\ndata: [DONE]\n\n")
    })
}

#[test]
fn rows_go_to_a_server_and_stay_there() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = write(files.path(), "cities.csv", CITIES);
    let server = Served::start(data.path());
    let loaded = json(data.path(), &["load", &file, "--collection", "world"]);
    assert_eq!((&loaded["rows"], &loaded["new_rows"]), (&json!(3), &json!(3)), "{loaded}");
    let wrong = write(files.path(), "wrong.csv", "id,city\n1\n");
    let told = failed(data.path(), &["load", &wrong, "--schema", "cities"]);
    assert!(told.contains("wrong.csv:2: 1 columns"), "{told}");
    let ask = |service: &str, request: Value| {
        server.json("POST", &format!("/api/v1/flow/default/service/{service}"), &request.to_string())
    };
    let query = "query Q($least: Int) { cities(where: {people: {gt: $least}}) { city } }";
    let request = json!({"query": query, "variables": {"least": "1000000"}, "collection": "world"});
    assert_eq!(ask("rows", request), json!({"data": {"cities": [{"city": "Rome"}]}}));
    let wrong = ask("rows", json!({"query": "{ towns { id } }", "collection": "world"}));
    assert_eq!(wrong["data"], Value::Null);
    assert!(wrong["errors"][0]["message"].as_str().unwrap().contains("no table `towns`"), "{wrong}");
    let asked = json!({"question": "Which cities have the most people?", "collection": "world"});
    let found = ask("structured-query", asked);
    assert_eq!((&found["data"]["cities"][0]["city"], &found["errors"]), (&json!("Rome"), &json!([])), "{found}");
    let query = ask("nlp-query", json!({"question": "Which cities are called \"Oslo\"?"}));
    assert_eq!(query["detected_schemas"], json!(["cities"]), "{query}");
    assert!(query["graphql_query"].as_str().unwrap().contains("contains: \"Oslo\""), "{query}");
    let missing = ask("structured-query", json!({"question": "Which?"}));
    assert!(missing.to_string().contains("the collection `default` has no tables"), "{missing}");
    let near = ask("row-embeddings", json!({"vector": [1.0], "schema_name": "cities", "collection": "world"}));
    assert!(near.to_string().contains("TRELLIS_EMBEDDING_MODEL"), "{near}");
    assert_eq!(json(data.path(), &["tables", "list"])["tables"][0]["collection"], "world");
    server.kill();
    let found = json(data.path(), &["tables", "query", "{ cities(limit: 1) { city } }", "--collection", "world"]);
    assert_eq!(found["cities"][0]["city"], "Oslo", "what was finished is on disk");
}

#[test]
fn without_an_embedding_model_rows_by_meaning_are_not_offered() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    ok(data.path(), &["load", &write(files.path(), "cities.csv", CITIES)]);
    let tool = r#"{"type": "row-embeddings-query", "description": "Find cities", "schema-name": "cities"}"#;
    ok(data.path(), &["tools", "add", "lookup", tool]);
    assert!(ok(data.path(), &["doctor"]).contains("lookup is not offered: no embedding model is configured"));
}

#[test]
fn with_an_embedding_model_rows_are_found_by_meaning() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let address = crate::listen(|stream| crate::documents::serve(stream, vectors));
    let with = |arguments: &[&str]| {
        let mut command = trellis(data.path(), arguments);
        with_model(&mut command, &address).env("TRELLIS_EMBEDDING_MODEL", "openai/vectors");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    with(&["load", &write(files.path(), "cities.csv", CITIES)]);
    let tool = r#"{"type": "row-embeddings-query", "description": "Find cities", "schema-name": "cities", "limit": 1}"#;
    with(&["tools", "add", "lookup", tool]);
    let found = with(&["tools", "test", "lookup", "query=capital of Italy"]);
    assert!(found.contains("Matching records:\n- city: Rome (score: 1.000)"), "{found}");
}

fn vectors(request: &Value) -> String {
    let vector = |text: &Value| {
        let is_italian = ["Rome", "Italy"].iter().any(|word| text.as_str().unwrap().contains(word));
        json!({ "embedding": if is_italian { [1, 0] } else { [0, 1] } })
    };
    let data: Vec<_> = request["input"].as_array().unwrap().iter().map(vector).collect();
    json!({ "data": data }).to_string()
}

/// Of the tests of the reader: 100 cities, packed by another program.
fn packed() -> String {
    format!("{}/../tabular/tests/files/zstd.parquet", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn parquet_files_are_loaded_on_a_folder_and_at_a_server() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = files.path().join("cities.parquet");
    std::fs::copy(packed(), &file).unwrap();
    let file = file.to_str().unwrap();
    let loaded = json(data.path(), &["load", file]);
    assert_eq!((&loaded["rows"], &loaded["new_rows"]), (&json!(100), &json!(100)), "{loaded}");
    let schema = ok(data.path(), &["config", "get", "schema", "cities"]);
    assert!(schema.contains("\"Rows of cities.parquet\"") && schema.contains("\"primary_key\""), "{schema}");
    let broken = write(files.path(), "broken.parquet", &std::fs::read(file).unwrap()[..900]);
    let told = failed(data.path(), &["load", &broken, "--schema", "cities"]);
    assert!(told.contains("broken.parquet: the Parquet file cannot be read: "), "{told}");
    let server = Served::start(data.path());
    let loaded = json(data.path(), &["load", file, "--collection", "world"]);
    assert_eq!((&loaded["rows"], &loaded["new_rows"]), (&json!(100), &json!(100)), "{loaded}");
    let told = failed(data.path(), &["load", &broken, "--schema", "cities"]);
    assert!(told.contains("broken.parquet: the Parquet file cannot be read: "), "{told}");
    let query = "{ cities(where: {id: {gte: 98}}) { name } }";
    let found = json(data.path(), &["tables", "query", query, "--collection", "world"]);
    assert_eq!(found["cities"], json!([{"name": "City 98"}, {"name": "City 99"}]));
    drop(server);
}
