//! The services around an orchestrator, in this process: they answer at once, or prompts after the time that a model takes.

use super::broker::{publish, subscribe};
use anyhow::{Context, Result};
use futures_util::StreamExt as _;
use lapin::message::Delivery;
use lapin::{Channel, Connection, ConnectionProperties};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What every session comes to.
pub(super) const ANSWER: &str = "It rains there all day.";

pub(super) struct Neighbours {
    connection: Connection,
    model_ms: Arc<AtomicU64>,
}

/// A service, what is said to its requests, and where to.
struct Service {
    request: &'static str,
    response: &'static str,
    script: fn(&Value) -> Vec<Value>,
    is_model: bool,
}

/// All that is asked when an orchestrator starts and when a question is answered.
static SERVICES: [Service; 5] = [
    Service { request: "tg.request.config", response: "tg.response.config", script: configuration, is_model: false },
    Service {
        request: "tg.request.prompt:default:default",
        response: "tg.response.prompt:default:default",
        script: prompt,
        is_model: true,
    },
    Service {
        request: "tg.request.mcp-tool:default:default",
        response: "tg.response.mcp-tool:default:default",
        script: |_| vec![json!({"error": null, "text": "Rain.", "object": null})],
        is_model: false,
    },
    Service {
        request: "tg.request.librarian:default",
        response: "tg.response.librarian:default",
        script: |_| vec![json!({"error": null})],
        is_model: false,
    },
    Service { request: "tg.flow.triples-store:default:default", response: "", script: |_| Vec::new(), is_model: false },
];

impl Neighbours {
    pub(super) async fn start(address: &str) -> Result<Self> {
        let connection = Connection::connect(address, ConnectionProperties::default()).await?;
        let neighbours = Self { connection, model_ms: Arc::default() };
        for service in &SERVICES {
            neighbours.serve(service).await?;
        }
        Ok(neighbours)
    }

    /// From now on each prompt takes so long, however many there are.
    pub(super) fn model_takes(&self, time: Duration) {
        self.model_ms.store(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    async fn serve(&self, service: &'static Service) -> Result<()> {
        let channel = self.connection.create_channel().await?;
        let queue = format!("{}.neighbours", service.request);
        let mut requests = subscribe(&channel, service.request, Some(&queue)).await?;
        let model_ms = Arc::clone(&self.model_ms);
        tokio::spawn(async move {
            while let Some(Ok(request)) = requests.next().await {
                let delay = if service.is_model { model_ms.load(Ordering::Relaxed) } else { 0 };
                let channel = channel.clone();
                tokio::spawn(async move {
                    if let Err(error) = answer(service, &channel, request, Duration::from_millis(delay)).await {
                        println!("{} is not answered: {error:#}", service.request);
                    }
                });
            }
        });
        Ok(())
    }
}

async fn answer(service: &Service, channel: &Channel, request: Delivery, delay: Duration) -> Result<()> {
    if service.response.is_empty() {
        return Ok(());
    }
    if delay > Duration::ZERO {
        tokio::time::sleep(delay).await;
    }
    let asked: Value = serde_json::from_slice(&request.data).context("a request is JSON")?;
    for reply in (service.script)(&asked) {
        publish(channel, service.response, request.properties.clone(), &serde_json::to_vec(&reply)?).await?;
    }
    Ok(())
}

/// Values by workspace, type and key.
fn items() -> Vec<(&'static str, String, String, Value)> {
    let channel = |kind: &str, name: &str| json!(format!("{kind}:tg:{name}:default:default"));
    let mut topics = json!({
        "request": channel("request", "agent"),
        "next": channel("request", "agent"),
        "response": channel("response", "agent"),
        "explainability": channel("flow", "triples-store"),
        "librarian-request": "request:tg:librarian:default",
        "librarian-response": "response:tg:librarian:default",
    });
    // The original starts no flow that lacks one of these.
    for name in
        ["text-completion", "prompt", "mcp-tool", "graph-rag", "structured-query", "embeddings", "row-embeddings-query"]
    {
        for way in ["request", "response"] {
            topics[format!("{name}-{way}")] = channel(way, name);
        }
    }
    let arguments = json!([{"name": "city", "type": "string", "description": "Where"}]);
    let weather = json!({
        "name": "weather", "description": "The weather of a city", "type": "mcp-tool", "mcp-tool": "get_weather",
        "effect": "read", "arguments": arguments,
    });
    let item = |kind: &str, key: &str, value: Value| ("default", kind.to_owned(), key.to_owned(), value);
    let template = |name: &str, reply: &str| {
        item("prompt", &format!("template.{name}"), json!({"prompt": "p", "response-type": reply}))
    };
    vec![
        ("__workspaces__", "workspace".to_owned(), "default".to_owned(), json!({"enabled": true})),
        item("processor:agent-manager", "default", json!({"topics": topics, "parameters": {}})),
        item("tool", "weather", weather),
        template("agent-react", "text"),
        template("supervisor-decompose", "json"),
        template("supervisor-synthesise", "text"),
    ]
}

fn configuration(asked: &Value) -> Vec<Value> {
    let names_only = asked["operation"] == "getkeys-all-ws";
    let is_asked_for = |workspace: &str, kind: &str| {
        asked["type"].as_str() == Some(kind) && (names_only || asked["workspace"].as_str() == Some(workspace))
    };
    let found = items().into_iter().filter(|(workspace, kind, ..)| is_asked_for(workspace, kind));
    let values: Vec<_> = found
        .map(|(workspace, kind, key, value)| {
            let value = if names_only { String::new() } else { value.to_string() };
            let workspace = if names_only { workspace } else { "" };
            json!({"type": kind, "key": key, "value": value, "workspace": workspace})
        })
        .collect();
    vec![json!({"version": 1, "values": values, "directory": [], "config": {}, "error": null})]
}

fn prompt(asked: &Value) -> Vec<Value> {
    let text = match asked["id"].as_str() {
        Some("agent-react") => react(asked),
        Some("supervisor-synthesise") => ANSWER.to_owned(),
        Some("supervisor-decompose") => {
            let goals = ["Oslo", "Paris", "Rome", "Vienna", "Bern"].map(|city| format!("Does it rain in {city}?"));
            return vec![last(Value::Null, json!(json!(goals).to_string()))];
        }
        other => {
            let error = json!({"type": "prompt-error", "message": format!("there is no prompt {other:?}")});
            return vec![json!({"error": error, "text": null, "object": null, "end_of_stream": true})];
        }
    };
    if asked["streaming"] != true {
        return vec![last(json!(text), Value::Null)];
    }
    let pieces = text.as_bytes().chunks(20).map(|bytes| {
        let piece = String::from_utf8_lossy(bytes);
        json!({
            "error": null, "text": piece, "object": null, "end_of_stream": false, "in_token": null, "out_token": null,
            "model": null,
        })
    });
    pieces.chain([last(json!(""), Value::Null)]).collect()
}

/// The last response, which tells what it has cost.
fn last(text: Value, object: Value) -> Value {
    json!({
        "error": null, "text": text, "object": object, "end_of_stream": true, "in_token": 10, "out_token": 5, "model": "m",
    })
}

/// Asks the tool once, then answers.
fn react(asked: &Value) -> String {
    let history = asked["terms"]["history"].as_str().map(serde_json::from_str::<Value>);
    let has_asked = history.and_then(Result::ok).is_some_and(|steps| steps.as_array().is_some_and(|s| !s.is_empty()));
    if has_asked {
        format!("Thought: I know enough\nFinal Answer: {ANSWER}")
    } else {
        "Thought: I look what the weather is like\nAction: weather\nArgs: {\"city\": \"Paris\"}".to_owned()
    }
}
