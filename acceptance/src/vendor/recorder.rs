//! The server: keeps every request with what came of it.

use super::{Asked, Form, Refused, Rule, messages, ollama};
use crate::model::{Reply, Scene, chunks, reply, usage};
use crate::recording;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// An id of a call as Mistral writes it.
const NINE_LETTERS: &str = "D681PevKs";

/// A request and what came of it.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Which of our prompts it was.
    pub prompt: String,
    pub body: Value,
    /// What it was refused with, if it was: the status and the whole answer.
    pub refused: Option<String>,
}

/// A running server; it stops when this is dropped.
#[derive(Debug)]
pub struct Vendor {
    address: String,
    form: Form,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    serving: JoinHandle<()>,
}

#[derive(Clone)]
struct Shared {
    form: Form,
    rules: Arc<[Rule]>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

impl Vendor {
    /// Listens on a free port.
    pub async fn start(form: Form, rules: impl IntoIterator<Item = Rule>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("this machine has a free port");
        let address = format!("http://{}", listener.local_addr().expect("a bound socket has an address"));
        let exchanges = Arc::default();
        let shared = Shared { form, rules: rules.into_iter().collect(), exchanges: Arc::clone(&exchanges) };
        let routes = Router::new().route("/{*path}", post(answer)).with_state(shared);
        let serving = tokio::spawn(async move {
            axum::serve(listener, routes).await.expect("a bound socket can be served");
        });
        Self { address, form, exchanges, serving }
    }

    /// The variables that lead the program to this server and to this model of it.
    pub fn environment(&self, model: &str) -> Vec<(&'static str, String)> {
        let Self { address, form, .. } = self;
        let key = "sk-acceptance-0123456789".to_owned();
        match form {
            Form::Chat | Form::MistralChat => {
                let place = if *form == Form::Chat { "" } else { "/mistral" };
                let base = ("OPENAI_BASE_URL", format!("{address}{place}/v1"));
                vec![base, ("OPENAI_API_KEY", key), ("TRELLIS_MODEL", format!("openai/{model}"))]
            }
            Form::Messages => {
                let base = ("ANTHROPIC_BASE_URL", address.clone());
                vec![base, ("ANTHROPIC_API_KEY", key), ("TRELLIS_MODEL", format!("anthropic/{model}"))]
            }
            Form::Ollama => vec![("OLLAMA_HOST", address.clone()), ("TRELLIS_MODEL", format!("ollama/{model}"))],
        }
    }

    /// Every request so far, in order.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().clone()
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(shared): State<Shared>, uri: Uri, headers: HeaderMap, bytes: Bytes) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(&bytes) else {
        return (StatusCode::BAD_REQUEST, "this is no JSON").into_response();
    };
    let prompt = headers.get("x-trellis-prompt").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let refused = {
        let mut exchanges = shared.exchanges.lock();
        let asked = Asked { body: &body, earlier: exchanges.len() };
        let refused = shared.rules.iter().find_map(|rule| rule(&asked));
        let words = refused.as_ref().map(|Refused { status, body, .. }| format!("{} {body}", status.as_u16()));
        exchanges.push(Exchange { prompt: prompt.clone(), body: body.clone(), refused: words });
        refused
    };
    let Some(Refused { status, retry_after, body }) = refused else {
        // What a vendor has refused need not be of its types.
        recording::keep(uri.path(), &bytes);
        return said(shared.form, &prompt, &body);
    };
    let pause = retry_after.map(|pause| (header::RETRY_AFTER, HeaderValue::from_static(pause)));
    (status, HeaderMap::from_iter(pause), body.to_string()).into_response()
}

/// The script's reply in the form of the vendor.
fn said(form: Form, prompt: &str, body: &Value) -> Response {
    let translated = match form {
        Form::Chat | Form::MistralChat => body.clone(),
        Form::Messages => messages::as_chat(body),
        Form::Ollama => ollama::as_chat(body),
    };
    let scene = Scene::new(prompt, &translated);
    let Some(reply) = reply(&scene) else { return StatusCode::BAD_REQUEST.into_response() };
    let text = match form {
        Form::Chat | Form::MistralChat => chat(&reply, body, usage(scene.text, &reply), form),
        Form::Messages => messages::events(&reply, body),
        Form::Ollama => ollama::lines(&reply, body),
    };
    let kind = if form == Form::Ollama { "application/x-ndjson" } else { "text/event-stream" };
    ([(header::CONTENT_TYPE, kind)], Body::from(text)).into_response()
}

fn chat(reply: &Reply, body: &Value, usage: Value, form: Form) -> String {
    let counted = form == Form::MistralChat || body["stream_options"]["include_usage"] == true;
    let frames = chunks(reply, counted.then_some(usage));
    let text = frames.iter().flat_map(|frame| ["data: ", frame, "\n\n"]).collect::<String>();
    let own_ids = form == Form::MistralChat;
    if own_ids { text.replace(&json!("call_1").to_string(), &json!(NINE_LETTERS).to_string()) } else { text }
}
