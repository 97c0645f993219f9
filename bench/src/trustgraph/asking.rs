//! Whoever asks, over the broker as the gateway does, and measures.

use super::broker::{declare, publish, subscribe};
use super::neighbours::ANSWER;
use anyhow::{Context, Result, ensure};
use futures_util::StreamExt as _;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use trellis_orchestrator::ports::{RealWorld, World as _};

pub(super) const REQUESTS: &str = "tg.request.agent:default:default";
const RESPONSES: &str = "tg.response.agent:default:default";
/// No session may take longer: one that never ends is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Client {
    channel: Channel,
    waiting: Arc<Mutex<HashMap<String, Waiting>>>,
    _connection: Connection,
}

struct Waiting {
    answer: String,
    end: oneshot::Sender<Result<String, String>>,
}

/// What matters of a response here; the rest is skipped.
#[derive(Deserialize)]
struct Response {
    message_type: Option<String>,
    content: Option<String>,
    end_of_dialog: Option<bool>,
}

/// How long everything took, and each session.
pub(super) struct Times {
    pub(super) wall: Duration,
    /// From the shortest to the longest.
    each: Vec<Duration>,
}

impl Times {
    pub(super) fn per_second(&self) -> f64 {
        self.each.len() as f64 / self.wall.as_secs_f64()
    }

    /// So many of a hundred took no longer.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let place = (self.each.len() * percent / 100).min(self.each.len().saturating_sub(1));
        self.each.get(place).copied().unwrap_or_default()
    }
}

impl Client {
    pub(super) async fn start(address: &str) -> Result<Self> {
        let connection = Connection::connect(address, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        declare(&channel, REQUESTS).await?;
        let mut responses = subscribe(&channel, RESPONSES, None).await?;
        let waiting = Arc::default();
        let client = Self { channel, waiting: Arc::clone(&waiting), _connection: connection };
        tokio::spawn(async move {
            while let Some(Ok(delivery)) = responses.next().await {
                hear(&waiting, &delivery);
            }
        });
        Ok(client)
    }

    /// Asks until there is an answer: the original takes requests before it knows its tools.
    pub(super) async fn until_answered(&self, pattern: &str) -> Result<()> {
        const ATTEMPTS: usize = 100;
        const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);
        for attempt in 1.. {
            match self.ask(pattern, 0).await {
                Ok(_) => break,
                Err(error) if attempt == ATTEMPTS => return Err(error),
                Err(_) => tokio::time::sleep(BETWEEN_ATTEMPTS).await,
            }
        }
        Ok(())
    }

    /// So many sessions, by clients each of which has one at a time.
    pub(super) async fn ask_all(
        self: &Arc<Self>,
        pattern: &'static str,
        clients: usize,
        sessions: usize,
    ) -> Result<Times> {
        let (next, begun) = (Arc::new(AtomicUsize::new(0)), Instant::now());
        let clients: Vec<_> = (0..clients)
            .map(|_| {
                let (client, next) = (Arc::clone(self), Arc::clone(&next));
                tokio::spawn(async move {
                    let mut times = Vec::new();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= sessions {
                            return anyhow::Ok(times);
                        }
                        times.push(client.ask(pattern, number).await?);
                    }
                })
            })
            .collect();
        let mut each = Vec::new();
        for client in clients {
            each.extend(client.await??);
        }
        let wall = begun.elapsed();
        each.sort();
        Ok(Times { wall, each })
    }

    /// How long it takes until the dialog is over.
    async fn ask(&self, pattern: &str, number: usize) -> Result<Duration> {
        let question = format!("Where does it rain today? ({number})");
        let request = json!({
            "question": question, "state": "", "group": null, "history": [], "collection": "default", "streaming": true,
            "session_id": "", "conversation_id": "", "pattern": pattern, "task_type": "", "framing": "",
            "correlation_id": "", "parent_session_id": "", "subagent_goal": "", "expected_siblings": 0,
        });
        let (id, body) = (RealWorld.fresh_id(), request.to_string());
        let mut headers = FieldTable::default();
        headers.insert("id".into(), AMQPValue::LongString(id.as_str().into()));
        let properties = BasicProperties::default().with_content_type("application/json".into()).with_headers(headers);
        let (end, ended) = oneshot::channel();
        self.waiting.lock().insert(id, Waiting { answer: String::new(), end });
        let begun = Instant::now();
        publish(&self.channel, REQUESTS, properties, body.as_bytes()).await?;
        let ended = tokio::time::timeout(PATIENCE, ended).await;
        let ended = ended.with_context(|| format!("session {number} ({pattern}) does not end"))?;
        let answer = ended.context("responses are not heard any more")?.map_err(anyhow::Error::msg)?;
        let took = begun.elapsed();
        ensure!(answer.contains(ANSWER), "session {number} ({pattern}) answers {answer:?}");
        Ok(took)
    }
}

/// Adds to what was answered, and tells whoever waits that the dialog is over.
fn hear(waiting: &Mutex<HashMap<String, Waiting>>, delivery: &Delivery) {
    let headers = delivery.properties.headers().as_ref();
    let Some(AMQPValue::LongString(id)) = headers.and_then(|headers| headers.inner().get("id")) else { return };
    let id = id.to_string();
    let Ok(response) = serde_json::from_slice::<Response>(&delivery.data) else {
        return end(waiting, &id, |_| Err("a response is no JSON".to_owned()));
    };
    let content = response.content.unwrap_or_default();
    match response.message_type.as_deref() {
        Some("error") => return end(waiting, &id, |_| Err(content)),
        Some("answer") => {
            if let Some(waiting) = waiting.lock().get_mut(&id) {
                waiting.answer.push_str(&content);
            }
        }
        _ => {}
    }
    if response.end_of_dialog == Some(true) {
        end(waiting, &id, Ok);
    }
}

fn end(waiting: &Mutex<HashMap<String, Waiting>>, id: &str, result: impl FnOnce(String) -> Result<String, String>) {
    let ended = waiting.lock().remove(id);
    if let Some(Waiting { answer, end }) = ended {
        // Whoever has given up does not wait any more.
        drop(end.send(result(answer)));
    }
}
