//! What a model provider is asked, and what it answers.

use crate::prompt_text::PromptText;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Hash;
use trellis_domain::config::{PromptReply, ToolItem};
use trellis_domain::parts::{ChatTurn, Piece, ReplyPart, StopReason};
use trellis_domain::record::ProbeUse;
use trellis_domain::usage::TokenDetails;
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::{BoxFuture, CallLabels};

/// One request to a model, fully rendered.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Empty if there are no standing instructions.
    pub system: PromptText,
    pub user: PromptText,
    /// The id of the prompt that was rendered.
    pub prompt: String,
    /// What it was rendered with. Only a scripted provider looks at it.
    pub variables: Map<String, Value>,
    /// A provider that can enforce a JSON schema while decoding should; the reply is validated in any case.
    pub expected: PromptReply,
    /// What was said after that, if this goes on with a conversation.
    pub turns: Vec<ChatTurn>,
    /// What the model may call, if it is to call something; only providers that take tools are given any.
    pub tools: Option<Arc<[Arc<ToolItem>]>>,
    /// For the headers that attribute a call to its place in a run; none outside of any.
    pub labels: Option<CallLabels>,
    /// What stands in the texts and was drawn for this run, or is the day: it changes nothing in the question.
    pub drawn: Vec<String>,
    /// Where the provider tells what leaves this process, before it does: a call may end without a reply.
    pub sent: LastSent,
}

impl ModelRequest {
    /// The size of everything that is said.
    pub(crate) fn bytes(&self) -> usize {
        let turns = self.turns.iter().map(|turn| match turn {
            ChatTurn::User { text } | ChatTurn::ToolResult { text, .. } => text.text().len(),
            ChatTurn::Assistant { parts } => parts.iter().map(said).sum(),
        });
        self.system.len() + self.user.len() + turns.sum::<usize>()
    }
}

fn said(part: &ReplyPart) -> usize {
    match part {
        ReplyPart::Thought { text, .. } | ReplyPart::Text { text } | ReplyPart::Refusal { text } => text.text().len(),
        ReplyPart::Call { function, arguments, .. } => function.len() + arguments.text().len(),
    }
}

/// What went to the provider last, and before that in forms that it refused.
#[derive(Debug, Clone, Default)]
pub struct LastSent(Arc<Mutex<SentForms>>);

#[derive(Debug, Default)]
struct SentForms {
    last: Option<Box<Sent>>,
    refused: Vec<RefusedForm>,
}

/// A request that the provider did not take as it was, and was sent again in another form.
#[derive(Debug)]
pub struct RefusedForm {
    pub reason: String,
    pub ms: u64,
    pub sent: Option<Box<Sent>>,
}

impl LastSent {
    pub fn tell(&self, sent: Sent) {
        self.0.lock().last = Some(Box::new(sent));
    }

    /// What was told last was refused, and goes out again in another form.
    pub fn refused(&self, reason: String, ms: u64) {
        let mut forms = self.0.lock();
        let sent = forms.last.take();
        forms.refused.push(RefusedForm { reason, ms, sent });
    }

    /// None if nothing has left this process since it was taken the last time.
    pub fn take(&self) -> Option<Sent> {
        self.0.lock().last.take().map(|sent| *sent)
    }

    /// What was refused since they were taken the last time.
    pub fn take_refused(&self) -> Vec<RefusedForm> {
        std::mem::take(&mut self.0.lock().refused)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelReply {
    /// What was said in words.
    pub text: String,
    /// All that was said; empty if that is nothing but words.
    pub parts: Vec<ReplyPart>,
    /// Why the model stopped, if the provider tells.
    pub stop: Option<StopReason>,
    /// What came back, if it came from elsewhere.
    pub response: Option<Response>,
    /// The model that answered, as the provider names it.
    pub model: String,
    pub in_token: Option<u64>,
    pub out_token: Option<u64>,
    pub details: TokenDetails,
    /// The provider could write nothing but what the schema allows; false wherever that is not certain.
    pub enforced: bool,
    /// What was seen of the model before, if that decided whether the schema was enforced.
    pub probe: Option<ProbeUse>,
    /// Why the model was not held to a schema or to functions as strictly as it could be: what it refused before.
    pub refused_before: Option<String>,
    /// The model stopped at its limit of tokens and not where it wanted to end.
    pub cut_short: bool,
    /// What had to be put right before the reply could be read.
    pub repairs: Vec<String>,
}

/// What came back from the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Of all bytes of the answer.
    pub hash: Hash,
    /// The answer without keys, if it is to be kept.
    pub body: Option<String>,
    /// What the provider calls the request.
    pub request_id: Option<String>,
}

/// What went to the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Of the request's body, byte by byte.
    pub hash: Hash,
    /// What was sent besides the texts.
    pub parameters: Map<String, Value>,
    /// The body without keys, if it is to be kept.
    pub body: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// Asking again may help: a failure inside of the provider, a lost connection.
    #[error("{reason}")]
    Transient {
        reason: String,
        /// How long the provider asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// The provider has too much to do, or has been asked too much: in a while it will answer again.
    #[error("{reason}")]
    Busy {
        reason: String,
        /// How long the provider asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// Asking again would fail the same way: a wrong key, an unknown model.
    #[error("{reason}")]
    Permanent { reason: String },
    /// The request is longer than the model can read: a shorter one may be answered.
    #[error("{reason}")]
    TooLong { reason: String },
    /// The model cannot be offered tools. It will not be again; in text it may answer.
    #[error("{reason}")]
    ToolsRefused { reason: String },
}

/// How many tokens a model can read and write together, by whoever said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextSize {
    /// The operator.
    Set(u64),
    /// Its server, when it was asked.
    Told(u64),
}

impl ContextSize {
    pub fn tokens(self) -> u64 {
        match self {
            Self::Set(tokens) | Self::Told(tokens) => tokens,
        }
    }
}

/// A turn that was waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turn(pub u64);

/// Takes a reply while it is written. Break stops the call: what came so far is the reply.
pub type OnPiece<'a> = dyn FnMut(Piece<'_>) -> ControlFlow<()> + Send + 'a;

/// A model behind some interface. It makes one attempt: repeating is the caller's business.
pub trait Provider: Send + Sync + std::fmt::Debug {
    /// What is asked, as `provider/model`.
    fn name(&self) -> String;

    /// Whether it looks at a prompt's variables besides its text.
    fn reads_variables(&self) -> bool {
        false
    }

    /// Whether tools are to be offered with this prompt, as far as is known by now.
    fn takes_tools(&self, _prompt: &str) -> bool {
        false
    }

    /// What the model refused in earlier calls, so that less is asked of it in this one.
    fn refused_before(&self, _request: &ModelRequest, _with_tools: bool) -> Option<String> {
        None
    }

    /// Whether task type and pattern are asked for in one call.
    fn routes_in_one_call(&self) -> bool {
        true
    }

    /// How much the model can read and write together, as far as that is known. Its server is asked if nobody set it.
    fn context_size(&self) -> BoxFuture<'_, Option<ContextSize>> {
        Box::pin(std::future::ready(None))
    }

    /// Where calls wait for their turn; none if any number of them can be made.
    fn capacity(&self) -> Option<&Arc<CallCapacity>> {
        None
    }

    /// Waits until the provider takes one more request.
    fn turn<'a>(&'a self, _request: &'a ModelRequest) -> BoxFuture<'a, Turn> {
        Box::pin(std::future::ready(Turn::default()))
    }

    /// Tells how many tokens a call took for which a turn was waited.
    fn settle(&self, _turn: Turn, _tokens: u64) {}

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        on_piece: &'a mut OnPiece<'_>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>>;
}
