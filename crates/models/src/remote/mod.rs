//! A model behind HTTP. What providers have in common is here; how each of them speaks is its dialect.

mod access;
mod answer;
mod connection;
mod converse;
mod endpoint;
mod failure;
mod frames;
mod lines;
mod members;
mod memory;
mod pace;
mod probe;
mod received;
mod sent;
mod size;

pub(crate) use access::{Access, Credentials, Key, Unsigned};
pub use connection::{address, cause, client};
pub(crate) use converse::{Dialect, Said, SchemaEnforcement, Stop, Understood};
pub use endpoint::{CallSettings, EndpointError, Prices, Sampling};
pub(crate) use endpoint::{Endpoint, EndpointConfig};
pub(crate) use failure::{Fault, Refusal};
pub(crate) use lines::Framing;
#[cfg(test)]
pub(crate) use lines::{Brought, LONGEST_LINE, Messages};
pub(crate) use members::{
    CACHE, CAP, COUNTS, EFFORT, FORCES, FORMAT, LIMIT, LeftOut, MemberName, Members, ONE_CALL, SCHEMA, STRICT_CALLS,
    SYSTEM, TEMPERATURE, THOUGHTS, TOP_P,
};
pub(crate) use pace::Pace;
pub use pace::RateLimit;

use crate::described::Described;
use crate::functions::{can_be_enforced, were_kept};
use crate::provider::{ContextSize, ModelReply, ModelRequest, OnPiece, Provider, ProviderError, Turn};
use crate::strict::strict;
use answer::AnswerMessages;
use converse::Strength;
use failure::{Failure, is_about_the_reply, is_about_the_schema};
use members::{Refused, Trying};
use memory::{Memory, RefusedForm};
use probe::{Probe, Probes, is_about_functions};
use received::{Complete, Received};
use serde_json::{Map, Value};
use size::Size;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use trellis_domain::config::PromptReply;
use trellis_domain::parts::{Piece, Reply, ReplyPart};
use trellis_domain::record::ProbeUse;
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::BoxFuture;
use trellis_patterns::react::functions::Functions;

/// How long a server that has said why the model stopped is waited for: counts of tokens come last.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What is noted of a reply that held the provider's key.
pub(crate) const KEY_TAKEN_OUT: &str = "a key that it held was taken out";

/// How long a probe may take: somebody waits for the reply before it.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a model is asked through.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) endpoint: Endpoint,
    pub(crate) model: String,
    /// At most so many calls are made at a time as there is room for.
    pub(crate) capacity: Arc<CallCapacity>,
    pub(crate) pace: Arc<Pace>,
    /// Where its server tells about it, if it does.
    pub(crate) described: Option<Described>,
}

/// One model of one provider.
#[derive(Debug)]
pub(crate) struct Remote<D> {
    dialect: D,
    endpoint: Endpoint,
    model: String,
    capacity: Arc<CallCapacity>,
    pace: Arc<Pace>,
    /// Forms of schemas that it takes, and forms of functions.
    schemas: Memory,
    functions: Memory,
    /// What else it does not take.
    refused: Refused,
    /// How much it can read.
    size: Size,
    /// Whether it was seen to obey.
    probes: Probes,
}

impl<D: Dialect> Remote<D> {
    pub(crate) fn new(dialect: D, connection: Connection) -> Self {
        let Connection { endpoint, model, capacity, pace, described } = connection;
        let (schemas, functions) = (Memory::default(), Memory::default());
        let (refused, size, probes) = (Refused::default(), Size::new(described), Probes::default());
        Self { dialect, endpoint, model, capacity, pace, schemas, functions, refused, size, probes }
    }

    /// Asks with the strongest enforcement that the provider takes. A refusal costs only time: it is noted, and does
    /// not count as an attempt that failed.
    async fn ask(&self, request: &ModelRequest, on_piece: &mut OnPiece<'_>) -> Result<ModelReply, ProviderError> {
        let functions = request.tools.as_deref().map(Functions::of);
        let memory = if functions.is_some() { &self.functions } else { &self.schemas };
        let mut enforcement = self.enforcement(request, functions.as_ref(), memory.strongest(&request.prompt));
        let (mut refused, mut trying) = (None, Trying::new(&self.refused, self.unsaid()));
        loop {
            let began = Instant::now();
            let failure = match self.attempt(request, &enforcement, trying.left_out, on_piece).await {
                Ok(reply) => {
                    let left_out = trying.left_out;
                    trying.was_taken(&self.refused);
                    memory.learn(&request.prompt, refused.take(), enforcement.strength());
                    return Ok(self.confirmed(reply, &enforcement, left_out).await);
                }
                Err(failure) => failure,
            };
            let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let is_capped =
                self.endpoint.settings.sampling.max_tokens.is_none() && self.dialect.usual_tokens().is_some();
            if is_capped && is_about_the_reply(&failure.error) && trying.leaves_out_the_cap() {
                self.refused_form(request, &failure, ms);
                continue;
            }
            match &failure.refusal {
                Some(refusal) if trying.leaves_out(self.dialect.members(), refusal) => {
                    self.refused_form(request, &failure, ms);
                }
                Some(refusal) if is_about_the_schema(refusal) && enforcement != SchemaEnforcement::Free => {
                    let words = self.endpoint.words(&refusal.words);
                    tracing::warn!(provider = self.endpoint.name(), model = self.model, prompt = request.prompt, %words,
                        "the provider does not take a schema or a function in this form");
                    let first = RefusedForm { strength: enforcement.strength(), why: words.as_str().into() };
                    let first = refused.get_or_insert(first).clone();
                    enforcement = match enforcement {
                        SchemaEnforcement::Functions { strict: false, .. } => {
                            memory.learn(&request.prompt, Some(first), Strength::Free);
                            return Err(ProviderError::ToolsRefused { reason: failure.error.to_string() });
                        }
                        SchemaEnforcement::Strict(_) | SchemaEnforcement::Functions { strict: true, .. } => {
                            self.enforcement(request, functions.as_ref(), Strength::Guided)
                        }
                        SchemaEnforcement::Guided(_) => self.enforcement(request, functions.as_ref(), Strength::Json),
                        SchemaEnforcement::Json | SchemaEnforcement::Free => SchemaEnforcement::Free,
                    };
                    self.refused_form(request, &failure, ms);
                }
                Some(_) | None => return Err(failure.error),
            }
        }
    }

    /// What is not said to this model: the provider lacks it, or several calls at once are welcome.
    fn unsaid(&self) -> Members {
        let set = self.endpoint.settings.parallel_calls;
        let may_be_several = set.unwrap_or_else(|| self.dialect.takes_parallel_calls());
        self.dialect.lacks() | if may_be_several { ONE_CALL } else { 0 }
    }

    /// A reply counts as held to its schema only if the model was seen to obey one.
    async fn confirmed(
        &self,
        mut reply: ModelReply,
        enforcement: &SchemaEnforcement<'_>,
        left_out: LeftOut,
    ) -> ModelReply {
        if !reply.enforced {
            return reply;
        }
        if self.endpoint.settings.probe {
            let probe = self.probe(is_about_functions(enforcement), left_out);
            reply.probe = self.probes.seen(enforcement, probe).await;
        }
        reply.enforced = reply.probe.as_ref().is_some_and(|seen| seen.obeyed);
        reply
    }

    /// Asks for what a schema forbids. None if nothing came of it.
    async fn probe(&self, with_functions: bool, left_out: LeftOut) -> Option<ProbeUse> {
        let probe = Probe::new(with_functions);
        self.pace.count(tokens_in(probe.request.bytes()));
        let mut unheard = |_: Piece<'_>| ControlFlow::Continue(());
        let enforcement = probe.enforcement();
        let asked = self.attempt(&probe.request, &enforcement, left_out, &mut unheard);
        let seen = match timeout(PATIENCE, asked).await {
            Ok(Ok(reply)) => probe.read(&reply),
            // What breaks off in the middle is as good as nothing.
            Ok(Err(_)) | Err(_) => None,
        };
        let obeyed = seen.as_ref().is_some_and(|seen| seen.obeyed);
        if !obeyed {
            let reply = seen.as_ref().map(|seen| self.endpoint.words(&seen.reply));
            tracing::warn!(
                provider = self.endpoint.name(),
                model = self.model,
                with_functions,
                reply,
                "the model was not seen to obey its schema: replies are only checked"
            );
        }
        seen
    }

    /// What is set, and a limit where none is.
    fn sampling(&self, left_out: LeftOut) -> Sampling {
        let set = self.endpoint.settings.sampling.clone();
        let usual = || self.dialect.usual_tokens().filter(|_| left_out.sends(CAP));
        Sampling { max_tokens: set.max_tokens.or_else(usual), ..set }
    }

    /// It goes out once more in another form.
    fn refused_form(&self, request: &ModelRequest, failure: &Failure, ms: u64) {
        request.sent.refused(failure.error.to_string(), ms);
        self.pace.count(tokens_in(request.bytes()));
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
        let Some(schema) = schema else { return SchemaEnforcement::Free };
        let strongest = if self.dialect.can_show(schema) { strongest } else { strongest.min(Strength::Json) };
        match strongest {
            Strength::Strict => strict(schema).map_or(SchemaEnforcement::Guided(schema), SchemaEnforcement::Strict),
            Strength::Guided => SchemaEnforcement::Guided(schema),
            // What it makes sure of is an object.
            Strength::Json if schema["type"] == "object" && self.dialect.has_json_mode(request) => {
                SchemaEnforcement::Json
            }
            Strength::Json | Strength::Free => SchemaEnforcement::Free,
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
        self.dialect.sample(&mut body, &self.sampling(left_out), left_out);
        let size = self.size.of(&self.endpoint, &self.model).await.map(ContextSize::tokens);
        let too_long = |words: String| self.endpoint.too_long(&format!("was not asked: {words}"));
        self.dialect.fit(&mut body, size).map_err(too_long)?;
        add(&mut body, &self.endpoint.body);
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
            // A refusal in words was not held to anything.
            SchemaEnforcement::Strict(_) => self.dialect.was_held(&understood, left_out) && is_json(&reply.text()),
            SchemaEnforcement::Guided(_) | SchemaEnforcement::Json | SchemaEnforcement::Free => false,
        };
        let text = reply.text().into_owned();
        let mut details = understood.details;
        let prices = self.endpoint.settings.prices;
        details.cost_micros =
            prices.and_then(|prices| prices.cost(understood.in_token, details.cached, understood.out_token));
        let only_text = matches!(reply.parts.as_slice(), [] | [ReplyPart::Text { .. }]);
        Ok(ModelReply {
            text,
            parts: if only_text { Vec::new() } else { reply.parts },
            stop: understood.stop.and_then(Stop::reason),
            response: Some(messages.response()),
            model: format!("{}/{model}", self.endpoint.name()),
            in_token: understood.in_token,
            out_token: understood.out_token,
            details,
            probe: None,
            refused_before: None,
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
            (true, true, _, Some(Stop::Length)) => Err(self.endpoint.permanent(
                "used up the limit of tokens before anything was said; set max-tokens of this model higher",
            )),
            (true, true, _, Some(Stop::Finished | Stop::Calls) | None) => Err(self.endpoint.transient("said nothing")),
        }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// About how many tokens so many bytes are. Rather too many: English has four bytes a token, code and JSON three.
pub(crate) fn tokens_in(bytes: usize) -> u64 {
    bytes.div_ceil(3) as u64
}

/// Adds the operator's own members. What is an object in both is merged, so that one option can be set.
fn add(body: &mut Value, members: &Map<String, Value>) {
    for (name, value) in members {
        match (&mut body[name], value) {
            (place @ Value::Object(_), Value::Object(inner)) => add(place, inner),
            (place, value) => *place = value.clone(),
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
        format!("{}/{}", self.endpoint.name(), self.model)
    }

    fn takes_tools(&self, prompt: &str) -> bool {
        self.endpoint.settings.native_tools && self.functions.strongest(prompt) > Strength::Free
    }

    fn refused_before(&self, request: &ModelRequest, with_tools: bool) -> Option<String> {
        let has_schema = matches!(request.expected, PromptReply::Json { schema: Some(_) });
        let functions = if with_tools { self.functions.why_not(&request.prompt) } else { None };
        let schemas = || if has_schema { self.schemas.why_not(&request.prompt) } else { None };
        functions.or_else(schemas).map(|why| why.to_string())
    }

    fn routes_in_one_call(&self) -> bool {
        self.endpoint.settings.one_call_routing.unwrap_or_else(|| !self.endpoint.is_near())
    }

    fn context_size(&self) -> BoxFuture<'_, Option<ContextSize>> {
        Box::pin(self.size.of(&self.endpoint, &self.model))
    }

    fn capacity(&self) -> Option<&Arc<CallCapacity>> {
        Some(&self.capacity)
    }

    fn turn<'a>(&'a self, request: &'a ModelRequest) -> BoxFuture<'a, Turn> {
        Box::pin(async move {
            let most = self.endpoint.settings.sampling.max_tokens.unwrap_or(0);
            let number = self.pace.enter(tokens_in(request.bytes()).saturating_add(u64::from(most))).await;
            Turn(number)
        })
    }

    fn settle(&self, turn: Turn, tokens: u64) {
        self.pace.settle(turn.0, tokens);
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
