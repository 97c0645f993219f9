//! A model behind HTTP. What providers have in common is here; how each of them speaks is its dialect.

mod answer;
mod connection;
mod endpoint;
mod failure;
mod lines;
mod memory;

pub use connection::{address, cause, client};
pub use endpoint::{CallSettings, EndpointError};
pub(crate) use endpoint::{Door, Endpoint, Key};
pub(crate) use failure::{Fault, Refusal};
pub(crate) use lines::Framing;

use crate::provider::{ModelReply, ModelRequest, OnText, Provider, ProviderError};
use crate::strict::strict;
use answer::AnswerMessages;
use failure::{Failure, is_about_the_schema};
use memory::Memory;
use serde_json::Value;
use std::ops::ControlFlow;
use std::time::Duration;
use trellis_domain::config::PromptReply;
use trellis_orchestrator::ports::BoxFuture;

/// How long a server that has said why the model stopped is waited for: counts of tokens come last.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// The largest piece that a listener gets at once, so that what it stops is not much longer than it wanted.
const LARGEST_PIECE: usize = 4 << 10;

/// How a reply is held to its schema.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Hold<'s> {
    /// Not at all: it is read and checked afterwards.
    Free,
    /// The provider is shown the schema and does what it can.
    Guided(&'s Value),
    /// The provider can write nothing else. This is the strict form of the schema.
    Strict(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strength {
    Free,
    Guided,
    Strict,
}

impl Hold<'_> {
    fn strength(&self) -> Strength {
        match self {
            Self::Free => Strength::Free,
            Self::Guided(_) => Strength::Guided,
            Self::Strict(_) => Strength::Strict,
        }
    }
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Finished,
    /// At its limit of tokens.
    Length,
    /// Somebody thought that this must not be said.
    Withheld,
}

/// What a dialect has understood so far, besides the text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Understood {
    pub(crate) model: Option<String>,
    pub(crate) in_token: Option<u64>,
    pub(crate) out_token: Option<u64>,
    pub(crate) stop: Option<Stop>,
    /// Nothing follows.
    pub(crate) over: bool,
    /// Something was said that no schema holds, such as a refusal.
    pub(crate) unheld: bool,
    /// The first message that is none of those the dialect knows.
    pub(crate) strange: Option<String>,
}

/// How a provider wants to be asked, and how its replies are to be understood. Without IO.
pub(crate) trait Dialect: std::fmt::Debug + Send + Sync {
    const NAME: &'static str;
    const FRAMING: Framing;

    fn body(&self, model: &str, request: &ModelRequest, hold: &Hold<'_>) -> Value;

    /// The text that a message brings, if any.
    fn read(&self, message: &str, understood: &mut Understood) -> Result<Option<String>, Fault>;

    /// Whether a schema can be shown to the provider at all.
    fn can_show(&self, _schema: &Value) -> bool {
        true
    }

    /// Whether something besides the schema was refused that can be left out from now on.
    fn leave_out(&self, _refusal: &Refusal) -> bool {
        false
    }
}

/// One model of one provider.
#[derive(Debug)]
pub(crate) struct Remote<D> {
    dialect: D,
    endpoint: Endpoint,
    model: String,
    memory: Memory,
}

impl<D: Dialect> Remote<D> {
    pub(crate) fn new(dialect: D, endpoint: Endpoint, model: String) -> Self {
        Self { dialect, endpoint, model, memory: Memory::default() }
    }

    /// Asks under the strongest hold that the provider takes. Being refused costs nothing but time, so it is not an
    /// attempt: only the form that is taken is.
    async fn ask(&self, request: &ModelRequest, on_text: &mut OnText<'_>) -> Result<ModelReply, ProviderError> {
        let mut hold = self.hold(request, self.memory.strongest(&request.prompt));
        let mut refused = None;
        loop {
            let failure = match self.attempt(request, &hold, on_text).await {
                Ok(reply) => {
                    self.memory.learn(&request.prompt, refused, hold.strength());
                    return Ok(reply);
                }
                Err(failure) => failure,
            };
            match &failure.refusal {
                Some(refusal) if self.dialect.leave_out(refusal) => {}
                Some(refusal) if is_about_the_schema(refusal) && hold != Hold::Free => {
                    let words = self.endpoint.words(&refusal.words);
                    tracing::warn!(provider = D::NAME, model = self.model, prompt = request.prompt, %words,
                        "the provider does not take the schema of a reply in this form");
                    refused.get_or_insert(hold.strength());
                    hold = match hold {
                        Hold::Strict(_) => self.hold(request, Strength::Guided),
                        Hold::Guided(_) | Hold::Free => Hold::Free,
                    };
                }
                Some(_) | None => return Err(failure.error),
            }
        }
    }

    fn hold<'r>(&self, request: &'r ModelRequest, strongest: Strength) -> Hold<'r> {
        let schema = match &request.expected {
            PromptReply::Json { schema } => schema.as_ref(),
            // A schema holds each line and not the whole.
            PromptReply::Text | PromptReply::JsonLines { .. } => None,
        };
        let Some(schema) = schema.filter(|schema| self.dialect.can_show(schema)) else { return Hold::Free };
        match strongest {
            Strength::Strict => strict(schema).map_or(Hold::Guided(schema), Hold::Strict),
            Strength::Guided => Hold::Guided(schema),
            Strength::Free => Hold::Free,
        }
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        hold: &Hold<'_>,
        on_text: &mut OnText<'_>,
    ) -> Result<ModelReply, Failure> {
        let body = self.dialect.body(&self.model, request, hold);
        let mut messages = self.endpoint.post(request, &body).await?.messages(D::FRAMING);
        let mut heard = Heard { text: String::new(), on_text, enough: false };
        let understood = self.listen(&mut messages, &mut heard).await?;
        let Heard { text, enough, .. } = heard;
        if !enough {
            self.check(&text, &understood, &messages)?;
        }
        let model = understood.model.filter(|model| !model.trim().is_empty());
        let model = model.map_or_else(|| self.model.clone(), |model| self.endpoint.words(&model));
        let finished = understood.stop.is_none_or(|stop| stop == Stop::Finished);
        Ok(ModelReply {
            text,
            model: format!("{}/{model}", D::NAME),
            in_token: understood.in_token,
            out_token: understood.out_token,
            enforced: hold.strength() == Strength::Strict && finished && !enough && !understood.unheld,
            cut_short: understood.stop == Some(Stop::Length),
        })
    }

    async fn listen(
        &self,
        messages: &mut AnswerMessages<'_>,
        heard: &mut Heard<'_, '_>,
    ) -> Result<Understood, Failure> {
        let mut understood = Understood::default();
        while !understood.over {
            let patience = understood.stop.map(|_| LAST_WORDS);
            let message = match messages.next(patience).await {
                Ok(message) => message,
                // What is missing now are counts, not words.
                Err(_) if understood.stop.is_some() => None,
                Err(error) => return Err(error.into()),
            };
            let Some(message) = message else { break };
            let text = self.dialect.read(&message, &mut understood);
            let text = text.map_err(|fault| self.failure(fault, heard.text.is_empty()))?;
            if text.is_some_and(|text| heard.hear(&text).is_break()) {
                break;
            }
        }
        Ok(understood)
    }

    fn failure(&self, fault: Fault, nothing_said: bool) -> Failure {
        let Fault { words, passing, status } = fault;
        let what = format!("failed: {words}");
        let error = if passing { self.endpoint.transient(&what) } else { self.endpoint.permanent(&what) };
        Failure { error, refusal: (nothing_said && !passing).then_some(Refusal { status, words }) }
    }

    /// A reply has words and an end.
    fn check(&self, text: &str, understood: &Understood, messages: &AnswerMessages<'_>) -> Result<(), ProviderError> {
        let ended = understood.over || understood.stop.is_some();
        let strange = understood.strange.as_deref().or(messages.strange());
        match (text.is_empty(), ended, strange, understood.stop) {
            (false, true, _, _) => Ok(()),
            (true, false, Some(strange), _) => Err(self.endpoint.not_a_reply(&format!("`{strange}`"))),
            (_, false, _, _) => Err(self.endpoint.transient("broke off in the middle of the reply")),
            (true, true, _, Some(Stop::Withheld)) => Err(self.endpoint.permanent("withheld the reply by its filter")),
            (true, true, _, Some(Stop::Length)) => {
                Err(self.endpoint.permanent("used up the limit of tokens before anything was said"))
            }
            (true, true, _, Some(Stop::Finished) | None) => Err(self.endpoint.transient("said nothing")),
        }
    }
}

impl<D: Dialect> Provider for Remote<D> {
    fn name(&self) -> String {
        format!("{}/{}", D::NAME, self.model)
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        on_text: &'a mut OnText<'_>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        Box::pin(self.ask(request, on_text))
    }
}

/// The text so far, and who listens to it.
struct Heard<'a, 's> {
    text: String,
    on_text: &'a mut OnText<'s>,
    enough: bool,
}

impl Heard<'_, '_> {
    fn hear(&mut self, text: &str) -> ControlFlow<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(LARGEST_PIECE));
            rest = after;
            self.text.push_str(piece);
            if (self.on_text)(piece).is_break() {
                self.enough = true;
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}
