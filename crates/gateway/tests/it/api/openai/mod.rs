//! `/v1`: what OpenAI's packages meet. Every reply is held against the API's own document.

mod chat;
mod doors;
mod refusals;
mod responses;
mod streams;

use super::server::{Api, Reply};
use crate::house::Setup;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use trellis_domain::config::StoredItem;
use trellis_domain::{Caller, Workspace};
use trellis_orchestrator::contract::play;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

fn waiting() -> Setup {
    Setup { at_work: false, ..Setup::default() }
}

fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

/// A chat whose question is played.
fn chat(scene: &Value) -> Value {
    json!({"model": "trellis/react", "messages": [message("user", &scene.to_string())]})
}

/// The same as a response.
fn response(scene: &Value) -> Value {
    json!({"model": "trellis/react", "input": scene.to_string()})
}

fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

/// What is said before each question, as the model is told it.
type Contexts = Arc<Mutex<Vec<String>>>;

/// A server whose model notes the context of each prompt.
async fn listening() -> (Api, Contexts) {
    let contexts = Contexts::default();
    let heard = Arc::clone(&contexts);
    let model = ScriptedPrompter::new(move |call| {
        heard.lock().unwrap().push(call.variables["context"].as_str().unwrap_or_default().to_owned());
        play::reply(call)
    });
    (Api::with(Setup { model: Arc::new(model), ..Setup::default() }).await, contexts)
}

/// A server whose tool is called only with somebody's approval.
async fn careful() -> Api {
    let api = Api::open().await;
    let tool = json!({"type": "text-completion", "name": "search", "description": "finds", "requires-approval": true});
    let item = StoredItem { kind: "tool".to_owned(), key: "search".to_owned(), value: tool.to_string() };
    let config = &api.house.bench.orchestrator.ports.config;
    config.put(&Workspace::default(), vec![item], Caller::program()).await.unwrap();
    api
}

/// The events of a stream that has ended: name and data; text that is no JSON is kept as it is.
fn events(reply: &Reply) -> Vec<(String, Value)> {
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")), "{}", reply.body);
    let (mut all, mut name) = (Vec::new(), String::new());
    for line in reply.body.lines() {
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        }
        if let Some(data) = line.strip_prefix("data: ") {
            let data = serde_json::from_str(data).unwrap_or_else(|_| json!(data));
            all.push((std::mem::take(&mut name), data));
        }
    }
    all
}
