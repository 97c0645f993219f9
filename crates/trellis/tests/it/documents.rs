//! Documents that are loaded into the real server, and found by tools, by an agent and over the API.

use crate::served::Served;
use crate::{json, ok, trellis};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const HANDBOOK: &str =
    "# Handbook\n\n## Refunds\n\nRefunds are paid within a week.\n\n## Hours\n\nThe office is closed on Sundays.";
const TOOL: &str = r#"{"type": "document-rag", "name": "handbook", "description": "Search the handbook"}"#;

/// A model server: vectors for texts about money and others, and a model that looks into the handbook once.
fn answer(stream: TcpStream) -> Option<()> {
    serve_path(stream, |path, request| if path.contains("/embeddings") { vectors(request) } else { model(request) })
}

/// Answers one request with a text.
pub(crate) fn serve(stream: TcpStream, reply: impl FnOnce(&Value) -> String) -> Option<()> {
    serve_path(stream, |_, request| reply(request))
}

fn serve_path(stream: TcpStream, reply: impl FnOnce(&str, &Value) -> String) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    stream.read_line(&mut first).ok()?;
    while stream.read_line(&mut line).ok()? > 2 {
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let request: Value = serde_json::from_slice(&body).ok()?;
    let body = reply(&first, &request);
    let reply = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.get_mut().write_all(reply.as_bytes()).ok()
}

fn vectors(request: &Value) -> String {
    let vector = |text: &Value| {
        let is_about_money = ["money", "cash", "paid"].iter().any(|word| text.as_str().unwrap().contains(word));
        json!({ "embedding": if is_about_money { [1, 0] } else { [0, 1] } })
    };
    let data: Vec<_> = request["input"].as_array().unwrap().iter().map(vector).collect();
    json!({ "data": data }).to_string()
}

fn model(request: &Value) -> String {
    let said = request["messages"].to_string();
    let text = if said.contains("passages of documents") && said.contains("within a week") {
        "Within a week [1]."
    } else if said.contains("name the passage") {
        "Thought: I know it.\nFinal Answer: Within a week [1]."
    } else {
        "Thought: I look.\nAction: handbook\nArgs: {\"question\": \"When are refunds paid?\"}"
    };
    let chunk = json!({ "choices": [{ "delta": { "content": text }, "finish_reason": "stop" }] });
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

fn with_model<'c>(command: &'c mut Command, address: &str) -> &'c mut Command {
    command.env("TRELLIS_MODEL", "openai/m").env("OPENAI_BASE_URL", format!("http://{address}/v1"));
    command.env("TRELLIS_MODELS_NATIVE_TOOLS", "false").env("TRELLIS_MODELS_PROBE", "false")
}

fn load(server: &Served, service: &str, document: &Value) -> Value {
    server.json("POST", &format!("/api/v1/flow/default/service/{service}"), &document.to_string())
}

/// What the tool brings for a question, from the command line.
fn found(data: &Path, question: &str) -> String {
    ok(data, &["tools", "test", "handbook", &format!("question={question}")])
}

#[test]
fn loaded_documents_survive_a_kill_and_are_found() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["tools", "add", "handbook", TOOL]);
    let server = Served::start(data.path());
    let loaded = load(&server, "text-load", &json!({ "id": "handbook.md", "text": HANDBOOK }));
    assert_eq!(loaded["passages"], 1, "{loaded}");
    let again = load(&server, "text-load", &json!({ "id": "handbook.md", "text": HANDBOOK }));
    assert_eq!(again, loaded, "the same again changes nothing");
    // "<h1>Snow</h1><p>Snow is shovelled by noon.<script>no()</script>" in base64.
    let page = "PGgxPlNub3c8L2gxPjxwPlNub3cgaXMgc2hvdmVsbGVkIGJ5IG5vb24uPHNjcmlwdD5ubygpPC9zY3JpcHQ+";
    let loaded_page = load(&server, "document-load", &json!({ "id": "snow.html", "data": page }));
    assert!(loaded_page["document"].as_str().unwrap().ends_with("/text"), "{loaded_page}");
    let refused = load(&server, "document-load", &json!({ "id": "broken.pdf", "data": "JVBERi0xLjQKbm8=" }));
    assert!(refused.to_string().contains("PDF cannot be read"), "{refused}");
    server.kill();
    let text = found(data.path(), "When are refunds paid?");
    assert!(text.contains("(p1) Handbook (lines 1–9 of urn:trellis:document:"), "{text}");
    assert!(text.contains("no embedding model is configured"), "{text}");
    let text = found(data.path(), "Who shovels snow by noon?");
    assert!(text.contains("(p1) Snow (lines 1–3 of urn:trellis:document:") && !text.contains("no()"), "{text}");
}

#[test]
fn a_removed_document_is_gone_on_the_folder_and_at_a_server() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["tools", "add", "handbook", TOOL]);
    let file = data.path().join("handbook.md");
    std::fs::write(&file, HANDBOOK).unwrap();
    let file = file.to_str().unwrap();
    let asked = "When are refunds paid?";
    let remove_twice = || {
        let removed = ok(data.path(), &["documents", "remove", file]);
        assert!(removed.contains("with 1 version"), "{removed}");
        let (code, again) = crate::fails(data.path(), &["documents", "remove", file]);
        assert!(code == 5 && again.contains("nothing is loaded as"), "{again}");
    };
    ok(data.path(), &["load", file]);
    assert!(found(data.path(), asked).contains("within a week"));
    remove_twice();
    assert!(!found(data.path(), asked).contains("within a week"));
    let server = Served::start(data.path());
    ok(data.path(), &["load", file]);
    remove_twice();
    server.kill();
    assert!(!found(data.path(), asked).contains("within a week"));
}

/// Whoever removes a document from the library does not want it to be found.
#[test]
fn what_leaves_the_library_is_not_found_any_more() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["tools", "add", "handbook", TOOL]);
    let server = Served::start(data.path());
    let loaded = load(&server, "text-load", &json!({ "id": "handbook.md", "text": HANDBOOK }));
    let librarian = |operation: &str| {
        let body = json!({"operation": operation, "document-id": loaded["document"]});
        server.json("POST", "/api/v1/librarian", &body.to_string())
    };
    let kept = librarian("get-document-metadata")["document-metadata"].clone();
    assert!(kept["tags"].to_string().contains("loaded-over:trustgraph-rest"), "{kept}");
    librarian("remove-document");
    server.kill();
    let left = found(data.path(), "When are refunds paid?");
    assert!(!left.contains("within a week"), "{left}");
}

#[test]
fn an_agent_looks_into_documents_and_the_run_shows_what_it_read() {
    let data = TempDir::new().unwrap();
    ok(data.path(), &["tools", "add", "handbook", TOOL]);
    let address = crate::listen(answer);
    let server = Served::start_at(data.path(), "127.0.0.1:0", |command| with_model(command, &address));
    load(&server, "text-load", &json!({ "id": "handbook.md", "text": HANDBOOK }));
    let asked = json!({ "query": "When are refunds paid?" });
    let answered = load(&server, "document-rag", &asked);
    assert_eq!(answered["response"], "Within a week [1].", "{answered}");
    assert_eq!(answered["sources"][0]["title"], "Handbook");
    let elsewhere = load(&server, "document-rag", &json!({ "query": "When?", "collection": "other" }));
    assert_eq!(elsewhere["sources"], json!([]));
    let missing = load(&server, "embeddings", &json!({ "texts": ["a"] }));
    assert!(missing.to_string().contains("TRELLIS_EMBEDDING_MODEL"), "{missing}");
    server.kill();
    let mut ask = trellis(data.path(), &["ask", "When are refunds paid?", "--pattern", "react"]);
    let output = with_model(&mut ask, &address).output().unwrap();
    assert!(output.status.success(), "{}", crate::stderr(&output));
    let shown = json(data.path(), &["run", "show", "last"]).to_string();
    assert!(shown.contains("Refunds are paid within a week") && shown.contains("urn:trellis:document:"), "{shown}");
    assert!(ok(data.path(), &["verify", "last"]).starts_with("ok"));
}

#[test]
fn with_an_embedding_model_meaning_counts() {
    let data = TempDir::new().unwrap();
    let address = crate::listen(answer);
    let with = |command: &mut Command| {
        with_model(command, &address).env("TRELLIS_EMBEDDING_MODEL", "openai/vectors");
    };
    let server = Served::start_at(data.path(), "127.0.0.1:0", |command| {
        with(command);
        command
    });
    let long = |text: &str| format!("{text} {}", "More words follow. ".repeat(60));
    load(&server, "text-load", &json!({ "id": "a.txt", "text": long("The office is closed on Sundays.") }));
    load(&server, "text-load", &json!({ "id": "b.txt", "text": long("Customers are paid back within a week.") }));
    let vectors = load(&server, "embeddings", &json!({ "texts": ["cash", "sun"] }));
    assert_eq!(vectors, json!({ "vectors": [[1.0, 0.0], [0.0, 1.0]] }));
    server.kill();
    ok(data.path(), &["tools", "add", "handbook", TOOL]);
    let mut test = trellis(data.path(), &["tools", "test", "handbook", "question=money"]);
    with(&mut test);
    let output = test.output().unwrap();
    let shown = crate::stdout(&output);
    assert!(shown.contains("(p1) b.txt") && !shown.contains("Only words"), "{shown} {}", crate::stderr(&output));
}

#[test]
fn files_are_loaded_into_the_folder_and_through_a_server_and_found() {
    let data = TempDir::new().unwrap();
    let files = TempDir::new().unwrap();
    let write = |name: &str, text: &str| std::fs::write(files.path().join(name), text).unwrap();
    write("refunds.md", "# Refunds\n\nCustomers are paid back within a week.\n");
    write("facts.ttl", "<urn:a> <urn:b> <urn:c> .\n");
    write("photo.jpg", "not a text");
    let folder = files.path().to_str().unwrap();
    let told = ok(data.path(), &["load", folder, "--collection", "books"]);
    assert!(told.starts_with("loaded 2 files into books: 1 triple read, 1 new, 1 passage,"), "{told}");
    let again = crate::json(data.path(), &["load", folder, "--collection", "books"]);
    assert_eq!((&again["new"], &again["passages"]), (&json!(0), &json!(1)), "{again}");
    assert_eq!(again["files"][1]["unchanged"], json!(true), "{again}");
    let tool = r#"{"type": "document-rag", "name": "books", "description": "Books", "collection": "books"}"#;
    ok(data.path(), &["tools", "add", "books", tool]);
    let found = ok(data.path(), &["tools", "test", "books", "question=How soon are customers paid back?"]);
    assert!(found.contains("(p1) Refunds (lines 1–3 of urn:trellis:document:"), "{found}");

    write("opening.txt", "The shop opens at seven on Sundays.\n");
    let server = Served::start(data.path());
    let opening = files.path().join("opening.txt");
    let told = ok(data.path(), &["load", opening.to_str().unwrap(), "--collection", "books"]);
    assert!(told.starts_with("loaded 1 file into books: 1 passage,"), "{told}");
    write("broken.pdf", "%PDF-1.7 nothing");
    let broken = files.path().join("broken.pdf");
    let (code, why) = crate::fails(data.path(), &["load", broken.to_str().unwrap(), "--collection", "books"]);
    assert!(code == 2 && why.contains("broken.pdf") && why.contains("PDF cannot be read"), "{code} {why}");
    server.kill();
    let found = ok(data.path(), &["tools", "test", "books", "question=When does the shop open on Sundays?"]);
    assert!(found.contains("opens at seven"), "{found}");
}

#[test]
fn many_documents_are_loaded_together_and_each_is_told() {
    let (data, files) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = |number: usize| files.path().join(format!("{number:03}.md"));
    for number in 0..150 {
        std::fs::write(file(number), format!("# Page {number}\n\nThe page about number{number}.")).unwrap();
    }
    std::fs::write(file(70), b"\xff\xfe\xfd").unwrap();
    let folder = files.path().to_str().unwrap();
    let output = trellis(data.path(), &["load", folder, "--keep-going", "--output", "json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(11));
    let loaded: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&loaded["documents"], &loaded["passages"]), (&json!(149), &json!(149)));
    let told = loaded["files"].as_array().unwrap();
    assert_eq!(told.len(), 150);
    for (number, told) in told.iter().enumerate() {
        assert!(told["source"].as_str().unwrap().ends_with(&format!("{number:03}.md")), "{told}");
        assert_eq!(told["error"].is_string(), number == 70, "{told}");
    }
    ok(data.path(), &["tools", "add", "handbook", TOOL]);
    for number in [0, 63, 64, 69, 71, 149] {
        let text = found(data.path(), &format!("number{number}"));
        assert!(text.contains(&format!("(p1) Page {number} ")), "{text}");
    }
    let (_, told) = crate::fails(data.path(), &["load", folder]);
    assert!(told.contains("070.md: ") && !told.contains("149.md"), "the first that fails ends the command: {told}");
    std::fs::remove_file(file(70)).unwrap();
    let again = json(data.path(), &["load", folder]);
    let unchanged = again["files"].as_array().unwrap().iter().filter(|file| file["unchanged"] == true).count();
    assert_eq!(unchanged, 149, "{again}");
}
