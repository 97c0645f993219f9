//! A scripted model server that speaks the OpenAI dialect, so that everything around the model runs for real.

mod chat;
mod script;
mod seen;

pub(crate) use chat::{chunks, usage};
pub(crate) use script::{Reply, reply};
pub(crate) use seen::Scene;

use crate::recording;
use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The name of the only model.
pub const MODEL: &str = "scripted-1";

/// Slow enough for a reader to see the pieces arrive one by one.
const PIECE_DELAY: Duration = Duration::from_millis(10);

/// How long the model stays silent if it is asked to: longer than any test takes.
const PATIENCE: Duration = Duration::from_mins(10);

/// Which of our prompts is asked.
const PROMPT_HEADER: &str = "x-trellis-prompt";

/// A running model server; it stops when this is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    url: String,
    asked: watch::Receiver<Vec<String>>,
    serving: JoinHandle<()>,
}

/// What is said in the place of the script; where it has nothing to say, the script speaks.
pub(crate) type Play = Arc<dyn Fn(&Scene<'_>) -> Option<Reply> + Send + Sync>;

/// What the server has in common with whoever started it.
#[derive(Clone)]
struct Stand {
    /// Takes the ids of the prompts that arrive, in order; empty for a request without one.
    asked: Arc<watch::Sender<Vec<String>>>,
    play: Option<Play>,
}

impl ScriptedModel {
    /// Listens on a free port.
    pub async fn start() -> Self {
        Self::listening(None).await
    }

    /// The same with another play, whose words come at once.
    pub(crate) async fn playing(play: Play) -> Self {
        Self::listening(Some(play)).await
    }

    async fn listening(play: Option<Play>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("this machine has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (tell, asked) = watch::channel(Vec::new());
        let routes = Router::new()
            .route("/v1/models", get(models))
            .route("/v1/chat/completions", post(complete))
            .route("/v1/embeddings", post(embed))
            .with_state(Stand { asked: Arc::new(tell), play });
        let serving = tokio::spawn(async move {
            axum::serve(listener, routes).await.expect("a bound socket can be served");
        });
        Self { url: format!("http://{address}/v1"), asked, serving }
    }

    /// What `OPENAI_BASE_URL` has to be.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The ids of the prompts that arrived, in order.
    pub fn asked(&self) -> Vec<String> {
        self.asked.borrow().clone()
    }

    /// Waits until so many prompts have arrived.
    pub async fn was_asked(&self, times: usize) {
        let mut asked = self.asked.clone();
        asked.wait_for(|asked| asked.len() >= times).await.expect("the server runs as long as this");
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn models() -> Json<Value> {
    Json(json!({
        "object": "list",
        "data": [{ "id": MODEL, "object": "model", "created": 0, "owned_by": "acceptance" }],
    }))
}

/// How often a text has each of the first letters.
async fn embed(Json(request): Json<Value>) -> Json<Value> {
    let count = |text: &str, letter: char| text.chars().filter(|found| *found == letter).count();
    let vector = |text: &Value| -> Vec<usize> {
        let text = text.as_str().unwrap_or_default().to_lowercase();
        ('a'..='h').map(|letter| count(&text, letter)).collect()
    };
    let texts = request["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    let data: Vec<_> =
        (0..).zip(texts).map(|(index, text)| json!({ "index": index, "embedding": vector(text) })).collect();
    Json(json!({ "object": "list", "data": data, "model": request["model"] }))
}

async fn complete(State(Stand { asked, play }): State<Stand>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return (StatusCode::BAD_REQUEST, "this is no JSON").into_response();
    };
    let prompt = headers.get(PROMPT_HEADER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // Stock clients ask the model themselves; what counts are the requests of the program.
    if !prompt.is_empty() {
        recording::keep("/v1/chat/completions", &body);
    }
    // Whether a model obeys its schema is asked beside the prompts.
    if prompt != "probe" {
        asked.send_modify(|asked| asked.push(prompt.to_owned()));
    }
    // The first time is for the tool, the second for the answer.
    let answers = asked.borrow().iter().filter(|asked| *asked == "agent-react").count() == 2;
    let scene = seen::Scene::new(prompt, &request);
    let played = play.as_ref().and_then(|play| play(&scene));
    let delay = if play.is_some() { Duration::ZERO } else { PIECE_DELAY };
    let Some(reply) = played.or_else(|| script::reply(&scene)) else {
        let error = json!({ "message": "the script refuses this question", "type": "invalid_request_error" });
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response();
    };
    if scene.text.contains(script::SILENCE) {
        tokio::time::sleep(PATIENCE).await;
    }
    let usage = chat::usage(scene.text, &reply);
    if request["stream"] == true {
        let counted = request["stream_options"]["include_usage"] == true;
        let mut frames = chat::chunks(&reply, counted.then_some(usage));
        if answers && scene.text.contains(script::BREAK) {
            // The end, the counts, what ends the stream, and a little of the text.
            frames.truncate(frames.len().saturating_sub(5));
        }
        let events = stream::iter(frames).then(move |frame| async move {
            tokio::time::sleep(delay).await;
            Ok::<_, Infallible>(Event::default().data(frame))
        });
        Sse::new(events).into_response()
    } else {
        Json(chat::whole(&reply, usage)).into_response()
    }
}
