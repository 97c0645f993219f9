//! Documents as the stock SDK and commands add, list, read and remove them.

use crate::house::{House, Setup};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_gateway::{Access, Identity, Token};

async fn ask(house: &House, request: Value) -> Value {
    let (status, reply) = house.post("/api/v1/librarian", &request).await;
    assert_eq!(status, 200, "{reply}");
    reply
}

async fn refused(house: &House, request: Value) -> (String, String) {
    let error = ask(house, request).await["error"].clone();
    (error["type"].as_str().unwrap().to_owned(), error["message"].as_str().unwrap().to_owned())
}

/// Nothing but the two lists that are always there.
fn done() -> Value {
    json!({"document-metadatas": [], "processing-metadatas": []})
}

fn metadata(id: &str) -> Value {
    let triple = json!({"s": {"t": "i", "i": id}, "p": {"t": "i", "i": "urn:p"}, "o": {"t": "l", "v": "o"}});
    json!({"id": id, "time": 1_700_000_000, "kind": "text/plain", "title": "A title", "comments": "a comment",
        "metadata": [triple], "tags": ["x", "y"]})
}

async fn add(house: &House, id: &str, content: &[u8]) {
    let request = json!({"operation": "add-document", "workspace": "default", "document-metadata": metadata(id),
        "content": STANDARD.encode(content)});
    assert_eq!(ask(house, request).await, done());
}

#[tokio::test]
async fn a_document_is_added_described_read_changed_and_removed() {
    let house = House::open().await;
    add(&house, "urn:d/1", b"some text").await;
    let got = ask(&house, json!({"operation": "get-document", "document-id": "urn:d/1"})).await;
    let mut expected = metadata("urn:d/1");
    expected["document-type"] = json!("source");
    expected["size"] = json!(9);
    expected["sha256"] = json!(trellis_domain::Hash::of("some text").to_string());
    assert_eq!(got["document-metadata"], expected);
    assert_eq!(ask(&house, json!({"operation": "get-document-metadata", "document-id": "urn:d/1"})).await, got);
    let listed = ask(&house, json!({"operation": "list-documents", "include-children": false})).await;
    assert_eq!(listed, json!({"document-metadatas": [expected], "processing-metadatas": []}));
    let read = ask(&house, json!({"operation": "get-document-content", "document-id": "urn:d/1"})).await;
    assert_eq!(STANDARD.decode(read["content"].as_str().unwrap()).unwrap(), b"some text");

    // As `update_document` sends it: no kind, the id twice, a time that may be null.
    let changes = json!({"document-id": "urn:d/1", "id": "urn:d/1", "time": null, "title": "New", "comments": "",
        "metadata": [], "tags": []});
    let updated = ask(&house, json!({"operation": "update-document", "document-metadata": changes})).await;
    let shown = &updated["document-metadata"];
    assert_eq!(
        (&shown["title"], &shown["kind"], &shown["time"]),
        (&json!("New"), &expected["kind"], &expected["time"])
    );
    assert_eq!((&shown["tags"], shown.get("comments")), (&json!([]), None), "what says nothing is left out");
    assert_eq!(ask(&house, json!({"operation": "remove-document", "document-id": "urn:d/1"})).await, done());
    let gone = refused(&house, json!({"operation": "get-document-content", "document-id": "urn:d/1"})).await;
    assert_eq!(gone, ("request-error".to_owned(), "Document not found: urn:d/1".to_owned()));
}

#[tokio::test]
async fn wrong_requests_say_what_is_wrong_and_change_nothing() {
    let house = House::open().await;
    add(&house, "d", b"first").await;
    let adding = |metadata: Value, content: Value| json!({"operation": "add-document", "document-metadata": metadata, "content": content});
    let without = |member: &str| {
        let mut metadata = metadata("new");
        metadata.as_object_mut().unwrap().remove(member);
        metadata
    };
    let mut odd = metadata("new");
    odd["metadata"] = json!([{"s": 1}]);
    let (mut tags, mut time) = (metadata("new"), metadata("new"));
    (tags["tags"], time["time"]) = (json!([1]), json!("yesterday"));
    for (request, kind, message) in [
        (adding(metadata("d"), json!("eA==")), "unexpected-error", "Document already exists"),
        (adding(without("kind"), json!("eA==")), "request-error", "kind (MIME type) is required"),
        (adding(without("id"), json!("eA==")), "request-error", "no `id`"),
        (adding(metadata("new"), json!("%")), "request-error", "not base64"),
        (adding(metadata("new"), Value::Null), "request-error", "`content` is missing"),
        (adding(Value::Null, json!("eA==")), "request-error", "`document-metadata` is missing"),
        (adding(odd, json!("eA==")), "request-error", "list of triples"),
        (adding(tags, json!("eA==")), "request-error", "list of texts"),
        (adding(time, json!("eA==")), "request-error", "seconds since 1970"),
        (adding(metadata("a\nb"), json!("eA==")), "request-error", "control characters"),
        (json!({"operation": "remove-document", "document-id": "new"}), "request-error", "Document not found: new"),
        (json!({"operation": "get-document"}), "request-error", "`document-id` is missing"),
        (json!({"operation": "list-documents", "criteria": [{"key": "kind"}]}), "request-error", "criteria"),
        (
            json!({"operation": "add-child-document", "document-metadata": metadata("new"), "content": ""}),
            "request-error",
            "parent-id",
        ),
    ] {
        let (found, text) = refused(&house, request.clone()).await;
        assert_eq!(found, kind, "{request}: {text}");
        assert!(text.contains(message), "{request}: {text}");
    }
    assert_eq!(house.post("/api/v1/librarian", &json!({"operation": "burn"})).await.0, 400);
    let listed = ask(&house, json!({"operation": "list-documents", "include-children": true})).await;
    assert_eq!(listed["document-metadatas"].as_array().unwrap().len(), 1);
    let (status, reply) =
        house.post("/api/v1/librarian", &json!({"operation": "list-documents", "workspace": "z"})).await;
    assert_eq!((status, reply), (404, json!({"error": "workspace not found"})));
}

#[tokio::test]
async fn children_are_listed_with_their_parent_and_go_with_it() {
    let house = House::open().await;
    add(&house, "d", b"all pages").await;
    let mut page = metadata("p");
    (page["parent-id"], page["document-type"]) = (json!("d"), json!("extracted"));
    let request = json!({"operation": "add-child-document", "document-metadata": page, "content": "cGFnZQ=="});
    assert_eq!(ask(&house, request).await["document-id"], "p");
    let ids = async |request: Value| -> Vec<String> {
        let reply = ask(&house, request).await;
        let documents = reply["document-metadatas"].as_array().unwrap();
        documents.iter().map(|document| document["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(json!({"operation": "list-documents"})).await, ["d"]);
    assert_eq!(ids(json!({"operation": "list-documents", "include-children": true})).await, ["d", "p"]);
    assert_eq!(ids(json!({"operation": "list-children", "document-id": "d"})).await, ["p"]);
    ask(&house, json!({"operation": "remove-document", "document-id": "d"})).await;
    assert!(ids(json!({"operation": "list-documents", "include-children": true})).await.is_empty());
}

#[tokio::test]
async fn a_large_document_goes_up_in_chunks_and_comes_down_in_chunks() {
    let house = House::open().await;
    let content: Vec<u8> = (0..7_500_000_u32).map(|n| u8::try_from(n % 253).unwrap()).collect();
    let mut about = metadata("big");
    about.as_object_mut().unwrap().remove("metadata");
    let begin = json!({"operation": "begin-upload", "workspace": "default", "document-metadata": about,
        "total-size": content.len(), "chunk-size": 3_145_728});
    let upload = ask(&house, begin).await;
    assert_eq!((&upload["chunk-size"], &upload["total-chunks"]), (&json!(3_145_728), &json!(3)));
    let upload = upload["upload-id"].as_str().unwrap();
    for (index, chunk) in content.chunks(3_145_728).enumerate().skip(1) {
        let request = json!({"operation": "upload-chunk", "upload-id": upload, "chunk-index": index,
            "content": STANDARD.encode(chunk)});
        let reply = ask(&house, request).await;
        assert_eq!((&reply["chunks-received"], &reply["total-bytes"]), (&json!(index), &json!(7_500_000)));
    }
    let status = ask(&house, json!({"operation": "get-upload-status", "upload-id": upload})).await;
    assert_eq!((&status["upload-state"], &status["missing-chunks"]), (&json!("in-progress"), &json!([0])));
    let sessions = ask(&house, json!({"operation": "list-uploads"})).await["upload-sessions"].clone();
    assert_eq!((&sessions[0]["document-id"], &sessions[0]["chunks-received"]), (&json!("big"), &json!(2)));
    let short = json!({"operation": "upload-chunk", "upload-id": upload, "chunk-index": 0, "content": "eA=="});
    assert!(refused(&house, short).await.1.contains("piece 0 has 1 bytes, 3145728 were expected"));
    let complete = json!({"operation": "complete-upload", "upload-id": upload});
    assert!(refused(&house, complete.clone()).await.1.contains("Missing chunks: [0]"));
    let first = json!({"operation": "upload-chunk", "upload-id": upload, "chunk-index": 0,
        "content": STANDARD.encode(&content[..3_145_728])});
    ask(&house, first).await;
    assert_eq!(ask(&house, complete).await["document-id"], "big");
    let over = ask(&house, json!({"operation": "get-upload-status", "upload-id": upload})).await;
    assert_eq!(over["upload-state"], "expired");

    // As `stream_document_to_file` reads it: chunk by chunk over REST.
    let (mut read, mut index) = (Vec::new(), 0);
    loop {
        let request = json!({"operation": "stream-document", "document-id": "big", "chunk-index": index,
            "chunk-size": 1_048_576});
        let reply = ask(&house, request).await;
        read.extend(STANDARD.decode(reply["content"].as_str().unwrap()).unwrap());
        assert_eq!(reply["total-bytes"], 7_500_000);
        index += 1;
        if index == reply["total-chunks"].as_u64().unwrap() {
            break;
        }
    }
    assert_eq!((index, read == content), (8, true));
    let behind = json!({"operation": "stream-document", "document-id": "big", "chunk-index": 8});
    assert_eq!(ask(&house, behind).await["content"], "", "behind the end there is nothing");
}

#[tokio::test]
async fn on_a_socket_a_document_streams_in_frames_that_stock_clients_can_take() {
    let house = House::open().await;
    let content = vec![7_u8; 2_000_000];
    add(&house, "d", &content).await;
    let mut socket = house.socket().await;
    let request = json!({"operation": "stream-document", "document-id": "d", "chunk-size": 16_000_000});
    socket.send(json!({"id": "1", "workspace": "default", "service": "librarian", "request": request})).await;
    let replies = socket.replies().await;
    assert!(replies.len() > 2 && replies.iter().all(|reply| reply.to_string().len() < 1 << 20));
    let read: Vec<u8> = replies
        .iter()
        .flat_map(|reply| STANDARD.decode(reply["response"]["content"].as_str().unwrap()).unwrap())
        .collect();
    assert!(read == content);
    let last = &replies.last().unwrap()["response"];
    assert_eq!((&last["bytes-received"], &last["chunks-received"]), (&json!(2_000_000), &last["total-chunks"]));
    let whole = json!({"operation": "get-document-content", "document-id": "d"});
    socket.send(json!({"id": "2", "service": "librarian", "request": whole})).await;
    let refusal = socket.replies().await;
    assert!(refusal[0]["error"]["message"].as_str().unwrap().contains("1 MiB"), "said, not cut off");
}

#[tokio::test]
async fn the_texts_of_a_run_are_documents_that_can_only_be_read() {
    let house = House::open().await;
    let run = house.bench.ask(1, SomeLimits::default()).await;
    house.bench.follow(&run).await;
    let id = format!("urn:trustgraph:agent:{run}/answer");
    let read = ask(&house, json!({"operation": "get-document-content", "document-id": id})).await;
    let answer = STANDARD.decode(read["content"].as_str().unwrap()).unwrap();
    assert!(!answer.is_empty());
    let (status, streamed) = house.http("GET", &format!("/api/v1/document-stream?document-id={id}"), "", b"").await;
    assert_eq!((status, streamed.as_str().map(str::as_bytes)), (200, Some(answer.as_slice())));
    let listed = ask(&house, json!({"operation": "list-documents", "include-children": true})).await;
    assert_eq!(listed, done(), "not listed");
    let of =
        |key: &str, value: &str| json!({"operation": "list-documents", "criteria": [{"key": key, "value": value}]});
    let listed = ask(&house, of("session", run.as_str())).await;
    let texts = listed["document-metadatas"].as_array().unwrap();
    let found = texts.iter().find(|text| text["id"] == id.as_str()).expect("by its session");
    assert_eq!(found["tags"], json!(["answer"]));
    let talked = AgentRequest {
        question: "question 2".to_owned(),
        conversation_id: "talk".to_owned(),
        session_id: "talked".to_owned(),
        ..AgentRequest::default()
    };
    let run = house.bench.request(2, talked, SomeLimits::default()).await;
    house.bench.follow(&run).await;
    let listed = ask(&house, of("conversation", "talk")).await;
    let of_the_run = |text: &Value| text["id"].as_str().is_some_and(|id| id.contains("agent:talked/"));
    let texts = listed["document-metadatas"].as_array().unwrap();
    assert!(!texts.is_empty() && texts.iter().all(of_the_run), "{texts:?}");
    assert_eq!(ask(&house, of("conversation", "other")).await, done());
    let (_, message) = refused(&house, json!({"operation": "remove-document", "document-id": id})).await;
    assert!(message.contains("part of the record of a run"), "{message}");
}

#[tokio::test]
async fn processings_are_kept_and_listed() {
    let house = House::open().await;
    add(&house, "d", b"text").await;
    let about = json!({"id": "p", "document-id": "d", "time": 1_700_000_000, "flow": "default", "collection": "c", "tags": ["t"]});
    let request = json!({"operation": "add-processing", "processing-metadata": about});
    assert_eq!(ask(&house, request.clone()).await, done());
    assert_eq!(refused(&house, request).await.0, "unexpected-error", "it is there already");
    let listed = ask(&house, json!({"operation": "list-processing"})).await;
    assert_eq!(listed["processing-metadatas"], json!([about]));
    assert_eq!(ask(&house, json!({"operation": "remove-processing", "processing-id": "p"})).await, done());
    assert_eq!(ask(&house, json!({"operation": "list-processing"})).await, done());
}

#[tokio::test]
async fn the_bytes_of_a_document_are_streamed_with_their_kind_to_whoever_may_read_them() {
    let alice = Identity::user("alice", []);
    let access = Access::Tokens(vec![(Token::new("s3cret"), alice)]);
    let house = House::with(Setup { access, ..Setup::default() }).await;
    let token = "Authorization: Bearer s3cret\r\n";
    let content: Vec<u8> = (0..300_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let mut about = metadata("d ä/1");
    about["kind"] = json!("text/html");
    let request =
        json!({"operation": "add-document", "document-metadata": about, "content": STANDARD.encode(&content)});
    house.http("POST", "/api/v1/librarian", token, request.to_string().as_bytes()).await;
    let path = "/api/v1/document-stream?document-id=d%20%C3%A4%2F1&workspace=default&chunk-size=7777";
    assert_eq!(house.http("GET", path, "", b"").await, (401, json!({"error": "auth failure"})));
    let reply = house.raw("GET", path, token, b"").await;
    let split = reply.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&reply[..split]).to_lowercase();
    for expected in ["200 ok", "content-type: text/html", "content-length: 300000", "content-security-policy: sandbox"]
    {
        assert!(head.contains(expected), "{expected} in {head}");
    }
    assert!(reply[split + 4..] == content, "byte for byte");
    for (query, status, message) in [
        ("document-id=zz", 404, "Document not found: zz"),
        ("document-id=d&workspace=other", 403, "access denied"),
        ("workspace=default", 400, "the parameter `document-id` is missing"),
    ] {
        let (found, reply) = house.http("GET", &format!("/api/v1/document-stream?{query}"), token, b"").await;
        assert_eq!((found, reply), (status, json!({"error": message})));
    }
    let (status, _) = house.http("GET", "/api/v1/document-stream?document-id=d&chunk-size=x", token, b"").await;
    assert_eq!(status, 400);
}
