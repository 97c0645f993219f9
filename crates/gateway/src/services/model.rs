//! Models without an agent around them: `prompt` renders a template, `text-completion` takes a text as it stands,
//! `document-rag` shows the model what documents say about a question.
//!
//! Nothing of this belongs to a run, so nothing is recorded; a caller that goes away ends its call.

use super::documents;
use crate::bounds;
use crate::call::Call;
use crate::calls::InFlight;
use crate::error::{Code, ServiceError, StreamError};
use crate::inside::{Gateway, Inside};
use crate::outbox::Outbox;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use trellis_orchestrator::ports::{
    Completion, PromptCall, PromptError, PromptReply, Prompter, ReplyContent, ReplySink,
};

/// Which of the services is asked; they differ in what they take and in how they name what they give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Prompt,
    Completion,
    Documents,
}

/// What the model is sent.
enum Order {
    Prompt(PromptCall),
    Completion(Completion),
}

/// The same, and what an answer to it rests on.
struct Reading {
    order: Order,
    /// Documents, if any were looked at.
    sources: Option<Value>,
}

impl Order {
    async fn perform(self, prompter: &dyn Prompter, sink: &mut dyn ReplySink) -> Result<PromptReply, PromptError> {
        match self {
            Self::Prompt(call) => prompter.ask(call, sink).await,
            Self::Completion(call) => prompter.complete(call, sink).await,
        }
    }
}

impl Asked {
    /// The whole reply.
    pub(crate) async fn answer(self, gateway: &Gateway, call: Call) -> Result<Value, ServiceError> {
        if self.asks_for_models(&call)? {
            return Ok(models(&call));
        }
        let _in_flight = begin(gateway)?;
        let Reading { order, sources } = self.read(&call).await?;
        let inside = &call.inside;
        let reply = within_limit(inside, order, &mut Live::new(inside)).await?;
        let mut whole = self.whole(&reply)?;
        put_sources(&mut whole, sources);
        Ok(whole)
    }

    /// The reply while it is written, if that is wished.
    pub(crate) async fn stream(self, gateway: &Gateway, call: Call, outbox: &Outbox) -> Result<(), StreamError> {
        if self.asks_for_models(&call)? || !call.members().flag("streaming")? {
            return Ok(outbox.last(&self.answer(gateway, call).await?).await?);
        }
        let _in_flight = begin(gateway)?;
        let Reading { order, sources } = self.read(&call).await?;
        let live = Live::new(&call.inside);
        let (text, mut sink) = (live.clone(), live);
        let mut reply = pin!(within_limit(&call.inside, order, &mut sink));
        let reply = loop {
            tokio::select! {
                biased;
                () = text.news.notified() => self.send(&text, outbox).await?,
                reply = &mut reply => break reply?,
            }
        };
        self.send(&text, outbox).await?;
        check(&reply)?;
        let mut last = self.piece("", true);
        put_usage(&mut last, &reply);
        put_sources(&mut last, sources);
        Ok(outbox.last(&last).await?)
    }

    fn asks_for_models(self, call: &Call) -> Result<bool, ServiceError> {
        match (self, call.members().text("operation")?.unwrap_or_default()) {
            (Self::Prompt | Self::Documents, _) | (Self::Completion, "" | "completion") => Ok(false),
            (Self::Completion, "list-models") => Ok(true),
            (Self::Completion, _) => Err(ServiceError::unknown_operation()),
        }
    }

    async fn read(self, call: &Call) -> Result<Reading, ServiceError> {
        let (members, scope) = (call.members(), call.scope());
        let settings = call.inside.config().pin(call.workspace()).await?;
        let mut sources = None;
        let order = match self {
            Self::Documents => {
                let (variables, found) = documents::variables(call).await?;
                sources = Some(found);
                let id = documents::PROMPT.to_owned();
                Order::Prompt(PromptCall { scope, settings, id, variables, ..PromptCall::default() })
            }
            Self::Prompt => {
                let id = members.required("id")?.to_owned();
                let variables = variables(call)?;
                Order::Prompt(PromptCall { scope, settings, id, variables, ..PromptCall::default() })
            }
            Self::Completion => {
                let schema = members.object("schema")?.map(|schema| json!(schema));
                let json = members.text("response-format")?.is_some_and(|format| format == "json");
                let system = members.text("system")?.filter(|system| !system.is_empty()).map(str::to_owned);
                let prompt = members.required("prompt")?.to_owned();
                Order::Completion(Completion { scope, settings, system, prompt, schema, json })
            }
        };
        Ok(Reading { order, sources })
    }

    /// Sends what was written since the last time.
    async fn send(self, live: &Live, outbox: &Outbox) -> Result<(), StreamError> {
        let mut unsent = live.take()?;
        while !unsent.is_empty() {
            let rest = unsent.split_off(unsent.floor_char_boundary(bounds::PIECE));
            outbox.more(&self.piece(&unsent, false)).await?;
            unsent = rest;
        }
        Ok(())
    }

    /// Clients look for a prompt's text under either name.
    fn piece(self, text: &str, last: bool) -> Value {
        match self {
            Self::Prompt => json!({"text": text, "response": text, "end_of_stream": last}),
            Self::Completion => json!({"response": text, "end_of_stream": last}),
            Self::Documents => {
                json!({"message_type": "chunk", "response": text, "end_of_stream": last, "end_of_session": last})
            }
        }
    }

    fn whole(self, reply: &PromptReply) -> Result<Value, ServiceError> {
        check(reply)?;
        let mut whole = match (self, &reply.content) {
            (Self::Prompt, ReplyContent::Object(object)) => object_reply(object.to_string()),
            (Self::Prompt, ReplyContent::List(list)) => object_reply(json!(list).to_string()),
            (Self::Completion | Self::Documents, _)
            | (Self::Prompt, ReplyContent::Text | ReplyContent::Wrong { .. }) => self.piece(&reply.raw, true),
        };
        put_usage(&mut whole, reply);
        Ok(whole)
    }
}

/// A reply that is not what was asked for is an error, also if it was read while it was written.
fn check(reply: &PromptReply) -> Result<(), ServiceError> {
    match &reply.content {
        ReplyContent::Text | ReplyContent::Object(_) | ReplyContent::List(_) => Ok(()),
        ReplyContent::Wrong { reason } => {
            let message = format!("the reply is not what the prompt asks for: {reason}");
            Err(ServiceError::new(Code::Model, message))
        }
    }
}

/// JSON as text, under the names that the clients look at. There must be no `text` beside it.
fn object_reply(text: String) -> Value {
    json!({"object": text, "response": text, "end_of_stream": true})
}

/// What is not known is left out.
fn put_usage(reply: &mut Value, from: &PromptReply) {
    let counts =
        [("in_token", json!(from.in_token)), ("out_token", json!(from.out_token)), ("model", json!(from.model))];
    for (name, value) in counts.into_iter().filter(|(_, value)| !value.is_null()) {
        reply[name] = value;
    }
}

/// What the reply rests on.
fn put_sources(reply: &mut Value, sources: Option<Value>) {
    if let Some(sources) = sources {
        reply["sources"] = sources;
    }
}

/// `variables` with any values, or `terms` with JSON texts.
fn variables(call: &Call) -> Result<Map<String, Value>, ServiceError> {
    let members = call.members();
    let mut variables = members.object("variables")?.cloned().unwrap_or_default();
    for (name, term) in members.object("terms")?.into_iter().flatten() {
        let text =
            term.as_str().ok_or_else(|| ServiceError::request(format!("the term `{name}` must be a JSON text")))?;
        let value = serde_json::from_str(text)
            .map_err(|error| ServiceError::request(format!("the term `{name}` is not JSON: {error}")))?;
        variables.insert(name.clone(), value);
    }
    Ok(variables)
}

fn models(call: &Call) -> Value {
    let model = |name: String| {
        let owner = name.split_once('/').map_or("", |(provider, _)| provider).to_owned();
        json!({"id": name, "name": name, "owned_by": owner})
    };
    let models: Vec<_> = call.inside.prompter().models().into_iter().map(model).collect();
    json!({"response": "", "models": models, "end_of_stream": true})
}

pub(super) fn begin(gateway: &Gateway) -> Result<InFlight<'_>, ServiceError> {
    if gateway.takes_questions() { Ok(gateway.calls().begin()) } else { Err(ServiceError::stopping()) }
}

/// A call that is nobody's turn has the operator's limit all the same.
async fn within_limit(inside: &Inside, order: Order, sink: &mut Live) -> Result<PromptReply, ServiceError> {
    let limit = Duration::from_millis(inside.limits().model_timeout_ms);
    let call = order.perform(inside.prompter(), sink);
    let reply = tokio::time::timeout(limit, call).await;
    let reply = reply.map_err(|_| {
        ServiceError::new(Code::Model, format!("the model did not answer within {} s", limit.as_secs()))
    })?;
    if sink.is_too_long() {
        return Err(ServiceError::new(Code::Model, format!("the reply was longer than {} bytes", sink.longest)));
    }
    reply.map_err(|error| ServiceError::new(Code::Model, error.to_string()))
}

/// Text on its way from the model to the socket. Whoever is slow gets larger pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct Live {
    state: Arc<Mutex<Text>>,
    pub(super) news: Arc<Notify>,
    /// How many bytes a reply may have.
    longest: u64,
}

#[derive(Debug, Default)]
struct Text {
    unsent: String,
    bytes: u64,
    sent: bool,
    /// The model began anew when something was sent already, which cannot be taken back.
    broken: bool,
}

impl Live {
    pub(super) fn new(inside: &Inside) -> Self {
        Self { longest: inside.limits().max_reply_bytes, ..Self::default() }
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.state.lock().bytes > self.longest
    }

    pub(super) fn take(&self) -> Result<String, ServiceError> {
        let mut state = self.state.lock();
        if state.broken {
            return Err(ServiceError::new(Code::Model, "the model broke off in the middle of its reply; ask again"));
        }
        let unsent = std::mem::take(&mut state.unsent);
        state.sent |= !unsent.is_empty();
        Ok(unsent)
    }
}

impl ReplySink for Live {
    fn text(&mut self, text: &str) -> ControlFlow<()> {
        let mut state = self.state.lock();
        state.bytes += text.len() as u64;
        if state.bytes > self.longest {
            return ControlFlow::Break(());
        }
        state.unsent.push_str(text);
        drop(state);
        self.news.notify_one();
        ControlFlow::Continue(())
    }

    fn restart(&mut self) {
        {
            let mut state = self.state.lock();
            state.unsent.clear();
            state.bytes = 0;
            state.broken = state.sent;
        }
        self.news.notify_one();
    }
}
