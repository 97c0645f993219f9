//! Prompts to models: an id with variables in, and a conversation that follows it; typed parts out, as text, object or list.

use super::BoxFuture;
use crate::permits::{CallCapacity, Permit};
use serde_json::{Map, Value};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::config::{Settings, ToolItem};
use trellis_domain::parts::{CallPiece, ChatTurn, ReplyPart, StopReason};
use trellis_domain::record::{FailedAttempt, ModelCall, Name, PromptUse, ReplyFormat};
use trellis_domain::{RunId, Scope, SessionId, TaskTypeName};

/// One prompt to send.
#[derive(Debug, Clone, Default)]
pub struct PromptCall {
    pub scope: Scope,
    pub settings: Arc<Settings>,
    pub id: String,
    pub variables: Map<String, Value>,
    /// Replaces the schema of the template, if any.
    pub schema: Option<Value>,
    /// What was said after the rendered prompt, if this goes on with a conversation.
    pub turns: Vec<ChatTurn>,
    /// The tools that the reply chooses from, if it does. A model that can is offered them as functions.
    pub tools: Option<Arc<[Arc<ToolItem>]>>,
    /// How long the models may take altogether, without the time that the call waits for its turn. None for as long as
    /// they take.
    pub timeout: Option<Duration>,
    /// None for a call outside of any run.
    pub labels: Option<CallLabels>,
    /// Room that whoever calls has waited for already; see [`Prompter::capacity`].
    pub permit: Permit,
}

/// What decides which model a prompt goes to.
#[derive(Debug, Clone, Copy)]
pub struct PromptNeed<'a> {
    pub settings: &'a Settings,
    /// The prompt's id.
    pub id: &'a str,
    pub wish: ModelWish<'a>,
}

/// What a run says about the models that its prompts go to.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelWish<'a> {
    /// None before it is known.
    pub task_type: Option<&'a TaskTypeName>,
    /// The one that the caller chose.
    pub model: Option<&'a str>,
}

/// One text to complete as it stands, without a template and outside of any run.
#[derive(Debug, Clone, Default)]
pub struct Completion {
    pub scope: Scope,
    pub settings: Arc<Settings>,
    /// None if there are no standing instructions.
    pub system: Option<String>,
    pub prompt: String,
    /// The reply is JSON under this schema.
    pub schema: Option<Value>,
    /// The reply is JSON, under the schema if there is one.
    pub json: bool,
}

impl Completion {
    /// Stands where the id of a template stands otherwise.
    pub const ID: &'static str = "text-completion";
}

/// Attributes a call to its place in a run.
#[derive(Debug, Clone)]
pub struct CallLabels {
    pub run: RunId,
    pub session: SessionId,
    pub step: Name,
    pub attempt: u32,
    /// The kind of problem, which may name models of its own; none before it is known.
    pub task_type: Option<TaskTypeName>,
    /// The model that the caller of the run chose, if it did.
    pub model: Option<String>,
}

impl CallLabels {
    /// What the run says about the models that its prompts go to.
    pub fn wish(&self) -> ModelWish<'_> {
        ModelWish { task_type: self.task_type.as_ref(), model: self.model.as_deref() }
    }

    /// `session/step`.
    pub fn place(&self) -> String {
        format!("{}/{}", self.session, self.step)
    }
}

#[derive(Debug, Clone)]
pub struct PromptReply {
    /// What the model said in words, as it wrote them.
    pub raw: String,
    /// All that it said; empty if that is nothing but words.
    pub parts: Vec<ReplyPart>,
    /// Why it stopped, if the provider tells.
    pub stop: Option<StopReason>,
    pub content: ReplyContent,
    pub prompt: PromptUse,
    pub model: Option<String>,
    pub in_token: Option<u64>,
    pub out_token: Option<u64>,
    /// The provider could write nothing but what the schema allows; false wherever that is not certain.
    pub enforced: bool,
    /// The model stopped at its limit of tokens and not where it wanted to end.
    pub cut_short: bool,
    /// How long the attempt took that succeeded.
    pub ms: u64,
    pub failures: Vec<FailedAttempt>,
    /// What had to be put right before the reply could be read.
    pub repairs: Vec<String>,
}

impl PromptReply {
    /// The call for the record of whoever made it.
    pub fn on_record(&self) -> ModelCall {
        ModelCall {
            prompt: self.prompt.clone(),
            reply: Some(self.raw.as_str().into()),
            model: self.model.clone(),
            in_token: self.in_token,
            out_token: self.out_token,
            ms: self.ms,
            failures: self.failures.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum ReplyContent {
    Text,
    Object(Value),
    List(Vec<Value>),
    /// Not what the prompt asks for. What it says may still be understood from its text.
    Wrong {
        reason: String,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    #[error("there is no prompt `{id}`; add the configuration item prompt/template.{id}")]
    UnknownPrompt { id: String },
    #[error("the prompt `{id}` cannot be rendered: {reason}; correct prompt/template.{id}")]
    Template { id: String, reason: String },
    #[error("the model did not answer: {reason}")]
    Provider { reason: String, failures: Vec<FailedAttempt> },
}

impl PromptError {
    /// No model answered within this time.
    pub fn took_too_long(timeout: Duration, failures: Vec<FailedAttempt>) -> Self {
        let reason = format!("the model took longer than {} s", timeout.as_secs_f32());
        Self::Provider { reason, failures }
    }

    /// The call that nobody answered, with all attempts at it; none if nobody was asked.
    pub fn on_record(self, id: &str) -> Option<ModelCall> {
        match self {
            Self::Provider { failures, .. } => {
                let prompt = PromptUse { id: id.to_owned(), ..PromptUse::default() };
                Some(ModelCall { prompt, failures, ..ModelCall::default() })
            }
            Self::UnknownPrompt { .. } | Self::Template { .. } => None,
        }
    }
}

/// Receives a reply while it is written.
pub trait ReplySink: Send {
    /// An attempt begins, at a model that is asked to say in this form which tool it wants.
    fn begin(&mut self, _format: ReplyFormat) {}

    /// More text. Break stops the call: what came so far is the reply.
    fn text(&mut self, text: &str) -> ControlFlow<()>;

    /// More of a call of a function.
    fn call(&mut self, _piece: &CallPiece) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// The call is made again from the start: forget what came so far.
    fn restart(&mut self);

    /// An attempt failed. Whoever may stop the call before it ends learns here what it would have told.
    fn failed(&mut self, _attempt: &FailedAttempt) {}
}

pub trait Prompter: Send + Sync + std::fmt::Debug {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>>;

    /// Completes a text, with the same retries and the same other models to fall back on as a prompt.
    fn complete<'a>(
        &'a self,
        _call: Completion,
        _sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        let reason = "texts without a template are not answered here".to_owned();
        Box::pin(std::future::ready(Err(PromptError::Provider { reason, failures: Vec::new() })))
    }

    /// Where the call of a prompt has to wait for its turn, if it may have to. Who has much to hold while it waits does
    /// so there first, and calls with the permit.
    fn capacity(&self, _need: PromptNeed<'_>) -> Option<Arc<CallCapacity>> {
        None
    }

    /// Whether the model that is asked for task type and pattern is asked for both in one call.
    fn routes_in_one_call(&self, _need: PromptNeed<'_>) -> bool {
        true
    }

    /// How many bytes of material the models that are asked can read beside their instructions, if that is known. Their
    /// servers may be asked for it.
    fn room<'a>(&'a self, _need: PromptNeed<'a>) -> BoxFuture<'a, Option<u64>> {
        Box::pin(std::future::ready(None))
    }

    /// The models that are asked where configuration names no others, as `provider/model`, in their order.
    fn models(&self) -> Vec<String> {
        Vec::new()
    }

    /// The models that a caller may choose from, as `provider/model`: those that are asked here, whoever names them.
    fn choosable(&self, settings: &Settings) -> Vec<String> {
        let by_configuration = settings.models.iter().chain(settings.special_models()).cloned();
        distinct(self.models().into_iter().chain(by_configuration))
    }
}

/// Each of them once, in their order.
pub fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    names.filter(|name| seen.insert(name.clone())).collect()
}
