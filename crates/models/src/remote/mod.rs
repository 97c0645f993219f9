//! A model behind HTTP. What providers have in common is here; how each of them speaks is its dialect.

mod answer;
mod connection;
mod converse;
mod endpoint;
mod failure;
mod lines;
mod members;
mod memory;
mod received;
mod sent;

pub use connection::{address, cause, client};
pub(crate) use converse::{Dialect, Said, SchemaEnforcement, Stop, Understood};
pub use endpoint::{CallSettings, EndpointError, Sampling};
pub(crate) use endpoint::{Endpoint, EndpointConfig, Key};
pub(crate) use failure::{Fault, Refusal};
pub(crate) use lines::Framing;
#[cfg(test)]
pub(crate) use lines::{Brought, LONGEST_LINE, Messages};
pub(crate) use members::{
    CACHE, COUNTS, EFFORT, FORCES, FORMAT, LIMIT, LeftOut, MemberName, ONE_CALL, SYSTEM, TEMPERATURE, TOP_P,
};

use crate::functions::{can_be_enforced, were_kept};
use crate::provider::{ModelReply, ModelRequest, OnPiece, Provider, ProviderError};
use crate::strict::strict;
use answer::AnswerMessages;
use converse::Strength;
use failure::{Failure, is_about_the_schema};
use members::{Refused, Trying};
use memory::Memory;
use received::{Complete, Received};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use trellis_domain::config::PromptReply;
use trellis_domain::parts::{Reply, ReplyPart};
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::BoxFuture;
use trellis_patterns::react::functions::Functions;

/// How long a server that has said why the model stopped is waited for: counts of tokens come last.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What is noted of a reply that held the provider's key.
pub(crate) const KEY_TAKEN_OUT: &str = "a key that it held was taken out";

/// One model of one provider.
#[derive(Debug)]
pub(crate) struct Remote<D> {
    dialect: D,
    endpoint: Endpoint,
    model: String,
    capacity: Arc<CallCapacity>,
    /// Forms of schemas that it takes, and forms of functions.
    schemas: Memory,
    functions: Memory,
    /// What else it does not take.
    refused: Refused,
}

impl<D: Dialect> Remote<D> {
    /// At most so many calls are made at a time as there is room for.
    pub(crate) fn new(dialect: D, endpoint: Endpoint, model: String, capacity: Arc<CallCapacity>) -> Self {
        let (schemas, functions) = (Memory::default(), Memory::default());
        Self { dialect, endpoint, model, capacity, schemas, functions, refused: Refused::default() }
    }

    /// Asks with the strongest enforcement that the provider takes. A refusal costs only time: it is noted, and does
    /// not count as an attempt that failed.
    async fn ask(&self, request: &ModelRequest, on_piece: &mut OnPiece<'_>) -> Result<ModelReply, ProviderError> {
        let functions = request.tools.as_deref().map(Functions::of);
        let memory = if functions.is_some() { &self.functions } else { &self.schemas };
        let mut enforcement = self.enforcement(request, functions.as_ref(), memory.strongest(&request.prompt));
        let (mut refused, mut trying) = (None, Trying::new(&self.refused));
        loop {
            let began = Instant::now();
            let failure = match self.attempt(request, &enforcement, trying.left_out, on_piece).await {
                Ok(reply) => {
                    trying.was_taken(&self.refused);
                    memory.learn(&request.prompt, refused, enforcement.strength());
                    return Ok(reply);
                }
                Err(failure) => failure,
            };
            let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            match &failure.refusal {
                Some(refusal) if trying.leaves_out(self.dialect.members(), refusal) => {
                    request.sent.refused(failure.error.to_string(), ms);
                }
                Some(refusal) if is_about_the_schema(refusal) && enforcement != SchemaEnforcement::Free => {
                    let words = self.endpoint.words(&refusal.words);
                    tracing::warn!(provider = D::NAME, model = self.model, prompt = request.prompt, %words,
                        "the provider does not take a schema or a function in this form");
                    let first = *refused.get_or_insert(enforcement.strength());
                    enforcement = match enforcement {
                        SchemaEnforcement::Functions { strict: false, .. } => {
                            memory.learn(&request.prompt, Some(first), Strength::Free);
                            return Err(ProviderError::ToolsRefused { reason: failure.error.to_string() });
                        }
                        SchemaEnforcement::Strict(_) | SchemaEnforcement::Functions { strict: true, .. } => {
                            self.enforcement(request, functions.as_ref(), Strength::Guided)
                        }
                        SchemaEnforcement::Guided(_) | SchemaEnforcement::Free => SchemaEnforcement::Free,
                    };
                    request.sent.refused(failure.error.to_string(), ms);
                }
                Some(_) | None => return Err(failure.error),
            }
        }
    }

    fn enforcement<'r>(
        &self,
        request: &'r ModelRequest,
        functions: Option<&'r Functions>,
        strongest: Strength,
    ) -> SchemaEnforcement<'r> {
        if let Some(functions) = functions {
            let strict = strongest == Strength::Strict && self.dialect.enforces_functions();
            return SchemaEnforcement::Functions { functions, strict };
        }
        let schema = match &request.expected {
            PromptReply::Json { schema } => schema.as_ref(),
            // A schema holds each line and not the whole.
            PromptReply::Text | PromptReply::JsonLines { .. } => None,
        };
        let Some(schema) = schema.filter(|schema| self.dialect.can_show(schema)) else {
            return SchemaEnforcement::Free;
        };
        match strongest {
            Strength::Strict => strict(schema).map_or(SchemaEnforcement::Guided(schema), SchemaEnforcement::Strict),
            Strength::Guided => SchemaEnforcement::Guided(schema),
            Strength::Free => SchemaEnforcement::Free,
        }
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        enforcement: &SchemaEnforcement<'_>,
        left_out: LeftOut,
        on_piece: &mut OnPiece<'_>,
    ) -> Result<ModelReply, Failure> {
        let mut body = self.dialect.body(&self.model, request, enforcement, left_out);
        self.dialect.sample(&mut body, &self.endpoint.settings.sampling, left_out);
        let (bytes, sent) = sent::sealed(&body, &self.endpoint);
        drop(body);
        request.sent.tell(sent);
        let mut messages = self.endpoint.post(request, bytes).await?.messages(D::FRAMING);
        let mut received = Received::new(on_piece, enforcement);
        let understood = self.listen(&mut messages, &mut received).await?;
        let enough = received.enough;
        let Complete { mut parts, mut repairs } = received.finish();
        if self.endpoint.redact_parts(&mut parts) {
            repairs.push(KEY_TAKEN_OUT.to_owned());
        }
        let reply = Reply { parts, ..Reply::default() };
        if !enough {
            self.check(says_something(&reply.parts), &understood, &messages)?;
        }
        let model = understood.model.as_ref().filter(|model| !model.trim().is_empty());
        let model = model.map_or_else(|| self.model.clone(), |model| self.endpoint.words(model));
        let finished = understood.stop.is_none_or(|stop| matches!(stop, Stop::Finished | Stop::Calls));
        let was_enforced = match enforcement {
            SchemaEnforcement::Functions { functions, strict } => {
                *strict && can_be_enforced(functions) && were_kept(functions, &reply.parts)
            }
            SchemaEnforcement::Strict(_) => self.dialect.was_held(&understood, left_out),
            SchemaEnforcement::Guided(_) | SchemaEnforcement::Free => false,
        };
        let text = reply.text().into_owned();
        let only_text = matches!(reply.parts.as_slice(), [] | [ReplyPart::Text { .. }]);
        Ok(ModelReply {
            text,
            parts: if only_text { Vec::new() } else { reply.parts },
            stop: understood.stop.and_then(Stop::reason),
            response: Some(messages.response()),
            model: format!("{}/{model}", D::NAME),
            in_token: understood.in_token,
            out_token: understood.out_token,
            enforced: was_enforced && finished && !enough,
            cut_short: understood.stop == Some(Stop::Length),
            repairs,
        })
    }

    async fn listen(
        &self,
        messages: &mut AnswerMessages<'_>,
        received: &mut Received<'_, '_>,
    ) -> Result<Understood, Failure> {
        let mut understood = Understood::default();
        while !understood.over {
            let time_limit = understood.stop.map(|_| LAST_WORDS);
            let message = match messages.next(time_limit).await {
                Ok(message) => message,
                // What is missing now are counts, not words.
                Err(_) if understood.stop.is_some() => None,
                Err(error) => return Err(error.into()),
            };
            let Some(message) = message else { break };
            let said = self.dialect.read(&message, &mut understood);
            let said = said.map_err(|fault| self.failure(fault, received.has_received_nothing()))?;
            for said in said {
                if received.take(said).is_break() {
                    return Ok(understood);
                }
            }
            if received.exceeds_limit() {
                return Err(self.endpoint.permanent("wrote a reply that does not end").into());
            }
        }
        Ok(understood)
    }

    fn failure(&self, fault: Fault, nothing_said: bool) -> Failure {
        let Fault { words, passing, too_long, status, parameter } = fault;
        let what = format!("failed: {words}");
        if too_long {
            return self.endpoint.too_long(&what).into();
        }
        let error = if passing { self.endpoint.transient(&what) } else { self.endpoint.permanent(&what) };
        Failure { error, refusal: (nothing_said && !passing).then_some(Refusal { status, words, parameter }) }
    }

    /// A reply has words and an end.
    fn check(
        &self,
        has_words: bool,
        understood: &Understood,
        messages: &AnswerMessages<'_>,
    ) -> Result<(), ProviderError> {
        let ended = understood.over || understood.stop.is_some();
        let unrecognised = understood.unrecognised.as_deref().or(messages.unrecognised());
        match (!has_words, ended, unrecognised, understood.stop) {
            (false, true, _, Some(Stop::Withheld)) => {
                Err(self.endpoint.permanent("withheld the rest of the reply by its filter"))
            }
            (false, true, _, Some(Stop::Finished | Stop::Calls | Stop::Length) | None) => Ok(()),
            (true, false, Some(unrecognised), _) => Err(self.endpoint.not_a_reply(&format!("`{unrecognised}`"))),
            (_, false, _, _) => Err(self.endpoint.transient("broke off in the middle of the reply")),
            (true, true, _, Some(Stop::Withheld)) => Err(self.endpoint.permanent("withheld the reply by its filter")),
            (true, true, _, Some(Stop::Length)) => {
                Err(self.endpoint.permanent("used up the limit of tokens before anything was said"))
            }
            (true, true, _, Some(Stop::Finished | Stop::Calls) | None) => Err(self.endpoint.transient("said nothing")),
        }
    }
}

/// Whether there are words or calls in it, and not only thoughts.
fn says_something(parts: &[ReplyPart]) -> bool {
    parts.iter().any(|part| match part {
        ReplyPart::Text { text } | ReplyPart::Refusal { text } => !text.text().is_empty(),
        ReplyPart::Call { .. } => true,
        ReplyPart::Thought { .. } => false,
    })
}

impl<D: Dialect> Provider for Remote<D> {
    fn name(&self) -> String {
        format!("{}/{}", D::NAME, self.model)
    }

    fn takes_tools(&self, prompt: &str) -> bool {
        self.endpoint.settings.native_tools && self.functions.strongest(prompt) > Strength::Free
    }

    fn capacity(&self) -> Option<&Arc<CallCapacity>> {
        Some(&self.capacity)
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        on_piece: &'a mut OnPiece<'_>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        Box::pin(async move {
            let time_limit = self.endpoint.settings.total_timeout;
            let late = |_| {
                let what = format!("was not done after {} s", time_limit.as_secs_f32());
                Err(self.endpoint.permanent(&what))
            };
            timeout(time_limit, self.ask(request, on_piece)).await.unwrap_or_else(late)
        })
    }
}
