//! Requests to the deployment's services, with the responses that carry their id.

use super::broker::{Broker, Heard, Letter, Received, Sent, Taking, Unsent};
use super::topic::Topic;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use trellis_domain::Timestamp;

/// One service: where requests go and where its responses come from.
#[derive(Debug)]
pub(crate) struct Service {
    broker: Arc<Broker>,
    request: Topic,
    response: Topic,
    waiting: Arc<Waiting>,
    /// Whether responses are heard now.
    is_heard: watch::Receiver<bool>,
    hearing: JoinHandle<()>,
}

/// Where the responses to each request go.
#[derive(Debug, Default)]
struct Waiting(Mutex<HashMap<String, mpsc::UnboundedSender<Value>>>);

/// Why a service brought nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CallError {
    #[error("the service {service} did not answer within {seconds} s")]
    TimedOut { service: String, seconds: f32 },
    #[error("nobody serves {service}")]
    Unserved { service: String },
    #[error("the broker takes no requests to {service}")]
    Forbidden { service: String },
    /// Whether the service has done anything is not known.
    #[error("the connection was lost while the service {service} was at work")]
    Lost { service: String },
    /// The service says so itself.
    #[error("{0}")]
    Refused(String),
}

impl CallError {
    /// Whether nothing was heard of the service, so that it need not be asked for anything else now.
    pub(crate) fn is_silence(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.hearing.abort();
    }
}

/// How often a request that nobody has a queue for is sent again.
const AGAIN: Duration = Duration::from_millis(500);
/// A service that nobody has a queue for may be starting.
const STARTING: Duration = Duration::from_secs(30);

impl Service {
    pub(crate) fn new(broker: &Arc<Broker>, request: Topic, response: Topic) -> Self {
        let waiting = Arc::new(Waiting::default());
        let (listens, is_heard) = watch::channel(false);
        let responses = broker.listen(&response, &Taking::Everything);
        let hearing = tokio::spawn(hear(responses, Arc::clone(&waiting), listens));
        Self { broker: Arc::clone(broker), request, response, waiting, is_heard, hearing }
    }

    /// The one response to a request. What the service calls an error is one.
    pub(crate) async fn ask(&self, body: &Value, timeout: Duration) -> Result<Value, CallError> {
        let mut answer = Value::Null;
        let first = &mut |response: Value| {
            answer = response;
            ControlFlow::Break(())
        };
        self.stream(body, timeout, first).await?;
        Ok(answer)
    }

    /// The responses to a request as they come, each within this time, until no more are wanted. What the service calls an
    /// error ends it.
    pub(crate) async fn stream(
        &self,
        body: &Value,
        timeout: Duration,
        on: &mut (dyn FnMut(Value) -> ControlFlow<()> + Send),
    ) -> Result<(), CallError> {
        self.stream_written(&body.to_string(), timeout, on).await
    }

    /// The same for a request that is written already.
    pub(crate) async fn stream_written(
        &self,
        body: &str,
        timeout: Duration,
        on: &mut (dyn FnMut(Value) -> ControlFlow<()> + Send),
    ) -> Result<(), CallError> {
        let id = self.broker.world().fresh_id();
        let (sender, mut responses) = mpsc::unbounded_channel();
        let mut until = self.until(timeout);
        self.heard_by(until, timeout).await?;
        self.waiting.0.lock().insert(id.clone(), sender);
        let _waits = WaitsFor { waiting: &self.waiting, id: &id };
        self.send(&id, body, until, timeout).await?;
        loop {
            let next = tokio::select! {
                biased;
                next = responses.recv() => next,
                () = self.sleep_until(until) => return Err(self.timed_out(timeout)),
            };
            let Some(response) = next else { return Err(CallError::Lost { service: self.request.to_string() }) };
            if !response.is_object() {
                let what = format!("the service {} answered with something that is no JSON object", self.request);
                return Err(CallError::Refused(what));
            }
            if let Some(problem) = problem_of(&response) {
                return Err(CallError::Refused(problem));
            }
            if on(response).is_break() {
                return Ok(());
            }
            until = self.until(timeout);
        }
    }

    async fn heard_by(&self, until: Timestamp, timeout: Duration) -> Result<(), CallError> {
        let mut is_heard = self.is_heard.clone();
        tokio::select! {
            biased;
            heard = is_heard.wait_for(|heard| *heard) => {
                heard.map(|_| ()).map_err(|_| CallError::Lost { service: self.response.to_string() })
            }
            () = self.sleep_until(until) => Err(self.timed_out(timeout)),
        }
    }

    async fn send(&self, id: &str, body: &str, until: Timestamp, timeout: Duration) -> Result<(), CallError> {
        let world = self.broker.world();
        let patience = world.now().plus_ms(u64::try_from(STARTING.as_millis()).unwrap_or(u64::MAX));
        loop {
            match self.broker.publish(&self.request, Letter { id, body, handed_on: 0 }).await {
                Ok(Sent::Queued) => return Ok(()),
                Ok(Sent::Unwanted) if world.now() >= patience => {
                    return Err(CallError::Unserved { service: self.request.to_string() });
                }
                Ok(Sent::Unwanted) => {}
                Ok(Sent::Refused) => return Err(CallError::Forbidden { service: self.request.to_string() }),
                Err(Unsent(reason)) => tracing::debug!(service = %self.request, reason, "a request is sent again"),
            }
            if world.now() >= until {
                return Err(self.timed_out(timeout));
            }
            world.sleep(AGAIN).await;
        }
    }

    fn until(&self, timeout: Duration) -> Timestamp {
        self.broker.world().now().plus_ms(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX / 2))
    }

    async fn sleep_until(&self, until: Timestamp) {
        let world = self.broker.world();
        world.sleep(Duration::from_millis(until.ms_since(world.now()))).await;
    }

    fn timed_out(&self, timeout: Duration) -> CallError {
        CallError::TimedOut { service: self.request.to_string(), seconds: timeout.as_secs_f32() }
    }
}

/// Forgets a request that nobody waits for any more.
struct WaitsFor<'a> {
    waiting: &'a Waiting,
    id: &'a str,
}

impl Drop for WaitsFor<'_> {
    fn drop(&mut self) {
        self.waiting.0.lock().remove(self.id);
    }
}

async fn hear(mut responses: mpsc::Receiver<Heard>, waiting: Arc<Waiting>, listens: watch::Sender<bool>) {
    while let Some(next) = responses.recv().await {
        match next {
            Heard::Listening => {
                listens.send_replace(true);
            }
            // Whatever is answered now is not heard: those who wait learn it.
            Heard::Lost => {
                listens.send_replace(false);
                waiting.0.lock().clear();
            }
            Heard::Message(message) => waiting.take(&message),
        }
    }
}

impl Waiting {
    /// All that ask the same service hear all responses: most are for others.
    fn take(&self, message: &Received) {
        let waiting = self.0.lock();
        let Some(sender) = message.id.as_ref().and_then(|id| waiting.get(id)) else { return };
        // Whoever waits for one that cannot be read learns it now, and not after the longest time that it may take.
        drop(sender.send(serde_json::from_slice(&message.body).unwrap_or_default()));
    }
}

/// What a response says went wrong, if it does.
fn problem_of(response: &Value) -> Option<String> {
    let error = response.get("error").filter(|error| !error.is_null())?;
    let message = error.as_str().or(error.get("message").and_then(Value::as_str)).unwrap_or_default();
    let kind = error.get("type").and_then(Value::as_str).unwrap_or_default();
    Some(match (message, kind) {
        ("", "") => "the service failed without saying why".to_owned(),
        ("", kind) => kind.to_owned(),
        (message, _) => message.to_owned(),
    })
}
