use super::*;
use crate::ChoiceError;
use crate::{Connections, ModelSettings, ProviderSettings};
use parking_lot::Mutex;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use trellis_domain::{Hash, Timestamp};
use trellis_orchestrator::contract::embedder as contract;
use trellis_orchestrator::ports::RealWorld;

/// A server that gives these answers, one after the other, and remembers what it was asked.
async fn server(answers: Vec<(u16, Value)>) -> (String, Arc<Mutex<Vec<(String, Value)>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&asked);
    tokio::spawn(async move {
        for (status, answer) in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let seen = request(&mut stream).await;
            noted.lock().push(seen);
            respond(&mut stream, status, &answer).await;
        }
    });
    (address, asked)
}

async fn request(stream: &mut TcpStream) -> (String, Value) {
    let mut request = Vec::new();
    loop {
        let mut buffer = vec![0; 65_536];
        let read = stream.read(&mut buffer).await.unwrap();
        request.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str::<Value>(body)
        {
            return (head.to_owned(), body);
        }
    }
}

async fn respond(stream: &mut TcpStream, status: u16, answer: &Value) {
    let answer = answer.to_string();
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
    stream.write_all(format!("{head}{answer}").as_bytes()).await.unwrap();
}

/// A server with a model, which speaks both dialects and does with empty texts what the real ones do.
async fn model_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (head, body) = request(&mut stream).await;
            let texts = body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
            let texts: Vec<_> = texts.collect();
            let (status, answer) = if head.starts_with("POST /api/embed ") {
                (200, json!({ "embeddings": texts.iter().map(|text| vector_of(text)).collect::<Vec<_>>() }))
            } else if texts.iter().any(|text| text.trim().is_empty()) {
                (400, json!({ "error": { "message": "'$.input' is invalid", "type": "invalid_request_error" } }))
            } else {
                let entry = |(index, text): (usize, &&str)| json!({ "index": index, "embedding": vector_of(text) });
                let entries: Vec<_> = texts.iter().enumerate().rev().map(entry).collect();
                (200, json!({ "object": "list", "data": entries }))
            };
            respond(&mut stream, status, &answer).await;
        }
    });
    address
}

/// Another one for each text; none for a text without words.
fn vector_of(text: &str) -> Vec<f64> {
    let hash = Hash::of(text).to_string();
    let digits = hash.chars().filter_map(|digit| digit.to_digit(16)).take(8);
    if text.trim().is_empty() { Vec::new() } else { digits.map(|digit| f64::from(digit) + 0.25).collect() }
}

#[tokio::test]
async fn each_dialect_keeps_the_contract() {
    let server = model_server().await;
    for (name, kind, base) in [
        ("box/m", "openai", format!("{server}/v1")),
        ("near/m", "ollama", server.clone()),
        ("near/nomic-embed-text", "ollama", server.clone()),
    ] {
        contract::suite(&*embedder(name, kind, &base).unwrap()).await;
    }
    for (name, kind) in [("box/m", "openai"), ("near/m", "ollama")] {
        let (address, _) = server_that_refuses().await;
        contract::refused(&*embedder(name, kind, &address).unwrap(), "no such model").await;
    }
}

async fn server_that_refuses() -> (String, Arc<Mutex<Vec<(String, Value)>>>) {
    server(vec![(404, json!({ "error": "no such model,\nask for another" }))]).await
}

/// Nobody waits between attempts.
#[derive(Debug)]
struct Hurried;

impl World for Hurried {
    fn now(&self) -> Timestamp {
        RealWorld.now()
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn fresh_id(&self) -> String {
        RealWorld.fresh_id()
    }
}

fn embedder(name: &str, kind: &str, address: &str) -> Result<Arc<dyn Embedder>, ChoiceError> {
    let provider = ProviderSettings {
        kind: Some(kind.to_owned()),
        address: Some(address.to_owned()),
        ..ProviderSettings::default()
    };
    let mut settings = ModelSettings::default();
    settings.providers.insert(name.split('/').next().unwrap().to_owned(), provider);
    Connections::new(settings, |_| None, Arc::new(Hurried)).embedder(name)
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn openai_is_asked_for_vectors_and_may_answer_in_any_order() {
    let answer = json!({ "data": [{ "index": 1, "embedding": [3, 4.5] }, { "index": 0, "embedding": [1, 2] }] });
    let (address, asked) = server(vec![(200, answer)]).await;
    let embedder = embedder("box/small", "openai", &format!("{address}/v1")).unwrap();
    assert_eq!(embedder.model(), "box/small");
    let vectors = embedder.embed(texts(&["a", "b"]), TextRole::Passage).await.unwrap();
    assert_eq!(vectors, [[1.0, 2.0], [3.0, 4.5]]);
    let (head, body) = asked.lock().remove(0);
    assert!(head.starts_with("POST /v1/embeddings "), "{head}");
    assert_eq!(body, json!({ "model": "small", "input": ["a", "b"], "encoding_format": "float" }));
}

#[tokio::test]
async fn ollama_is_asked_in_its_own_way_and_models_get_their_prefixes() {
    let (address, asked) = server(vec![(200, json!({ "embeddings": [[1, 2]] }))]).await;
    let embedder = embedder("near/nomic-embed-text", "ollama", &address).unwrap();
    let vectors = embedder.embed(texts(&["why?"]), TextRole::Question).await.unwrap();
    assert_eq!(vectors, [[1.0, 2.0]]);
    let (head, body) = asked.lock().remove(0);
    assert!(head.starts_with("POST /api/embed "), "{head}");
    assert_eq!(body["input"], json!(["search_query: why?"]));
}

#[tokio::test]
async fn what_passes_is_tried_again_and_what_does_not_is_told() {
    let good = json!({ "data": [{ "embedding": [1] }] });
    let busy = json!({ "error": { "message": "slow down" } });
    let (address, asked) = server(vec![(429, busy.clone()), (503, busy.clone()), (200, good)]).await;
    let patient = embedder("box/m", "openai", &address).unwrap();
    assert_eq!(patient.embed(texts(&["a"]), TextRole::Passage).await.unwrap(), [[1.0]]);
    assert_eq!(asked.lock().len(), 3);
    for (answer, reason) in [
        ((401, json!({ "error": { "message": "wrong key" } })), "wrong key"),
        ((200, json!({ "object": "list" })), "without vectors"),
        ((200, json!({ "data": [] })), "0 vectors of 1 texts"),
        ((200, json!({ "data": [{ "embedding": [] }] })), "different lengths"),
        ((200, json!({ "data": [{ "embedding": ["x"] }] })), "without vectors"),
    ] {
        let (address, _) = server(vec![answer]).await;
        let embedder = embedder("box/m", "openai", &address).unwrap();
        let error = embedder.embed(texts(&["a"]), TextRole::Passage).await.unwrap_err();
        assert!(matches!(&error, EmbedError::Permanent { reason: words } if words.contains(reason)), "{error}");
    }
}

#[test]
fn many_texts_go_in_several_requests() {
    let small = vec!["x".to_owned(); 150];
    assert_eq!(batches(&small), [0..64, 64..128, 128..150]);
    let large = vec!["x".repeat(60 << 10); 5];
    assert_eq!(batches(&large), [0..2, 2..4, 4..5]);
    assert!(batches(&[]).is_empty());
}

#[test]
fn dialects_without_vectors_are_refused() {
    let error = embedder("claude/m", "anthropic", "http://localhost").unwrap_err();
    assert!(error.to_string().contains("no vectors"), "{error}");
    let deployment = "/openai/deployments/m/chat/completions?api-version=1";
    assert_eq!(EmbeddingDialect::OpenAi.path(deployment), "/openai/deployments/m/embeddings?api-version=1");
}
