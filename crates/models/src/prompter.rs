//! Renders a prompt, asks a model, reads the reply. A transient failure is tried again, a few times; a model that does
//! not answer is followed by the next one, if there is one.

use crate::asking::Asking;
use crate::models::{Candidate, Models, Wishes};
use crate::provider::{ContextSize, ModelReply, Provider, ProviderError, Response};
use crate::reply::ReplyReader;
use crate::retries::{LONGEST_BUSY_PAUSE, LONGEST_PAUSE, chance, pause_before_retry};
use crate::template::Templates;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Timestamp;
use trellis_domain::config::Settings;
use trellis_domain::document::Document;
use trellis_domain::parts::Piece;
use trellis_domain::record::FailedAttempt;
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::{
    BoxFuture, Completion, PromptCall, PromptError, PromptNeed, PromptReply, Prompter, ReplyContent, ReplySink, World,
};

/// A model that failed this slowly is not asked again if another one is there: the call has a limit.
const SLOW_MS: u64 = 15_000;

/// Prompts from the session's settings, answered by the first model that can.
///
/// ```
/// # use std::{ops::ControlFlow, sync::Arc};
/// # use trellis_domain::config::{Settings, StoredItem};
/// # use trellis_models::{Rehearsal, TemplatePrompter};
/// # use trellis_orchestrator::ports::{PromptCall, Prompter, RealWorld, ReplySink};
/// # struct Unheard;
/// # impl ReplySink for Unheard {
/// #     fn text(&mut self, _: &str) -> ControlFlow<()> { ControlFlow::Continue(()) }
/// #     fn restart(&mut self) {}
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let item = StoredItem {
///     kind: "prompt".to_owned(),
///     key: "template.question".to_owned(),
///     value: r#"{"prompt": "Answer in one sentence: {{ question }}"}"#.to_owned(),
/// };
/// let prompter = TemplatePrompter::new(Arc::new(Rehearsal::default()), Arc::new(RealWorld));
/// let call = PromptCall {
///     settings: Arc::new(Settings::take(1, [item]).0),
///     id: "question".to_owned(),
///     variables: [("question".to_owned(), "Why is moss green?".into())].into_iter().collect(),
///     ..PromptCall::default()
/// };
/// let reply = prompter.ask(call, &mut Unheard).await?;
/// assert!(reply.prompt.sent.is_some(), "what was sent is on record by its hash");
/// # assert!(!reply.raw.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TemplatePrompter {
    models: Models,
    world: Arc<dyn World>,
    templates: Templates,
}

/// A call while it is made.
struct Attempts<'c> {
    asking: Box<Asking>,
    sink: &'c mut dyn ReplySink,
    failures: Vec<FailedAttempt>,
    began: Timestamp,
    /// For how long it only waited for its turn.
    waited_ms: u64,
}

/// Why a model did not answer in the end.
enum GaveUp {
    /// The next model may answer.
    Model(String),
    /// Nobody can any more.
    Call(PromptError),
}

impl Attempts<'_> {
    /// An attempt at a model was in vain.
    fn fail(&mut self, model: String, reason: String, ms: u64, too_long: bool) {
        let asked = Some(Box::new(self.asking.record()));
        self.note(FailedAttempt { reason, ms, too_long, model: Some(model), asked });
    }

    fn note(&mut self, attempt: FailedAttempt) {
        self.sink.failed(&attempt);
        self.failures.push(attempt);
    }

    /// What is left of the call's own time; none if it may take as long as it takes.
    fn time_left(&self, now: Timestamp) -> Option<Duration> {
        let spent = now.ms_since(self.began).saturating_sub(self.waited_ms);
        Some(self.asking.timeout?.saturating_sub(Duration::from_millis(spent)))
    }

    fn out_of_time(&mut self) -> GaveUp {
        let failures = std::mem::take(&mut self.failures);
        GaveUp::Call(PromptError::took_too_long(self.asking.timeout.unwrap_or_default(), failures))
    }
}

impl TemplatePrompter {
    pub fn new(provider: Arc<dyn Provider>, world: Arc<dyn World>) -> Self {
        Self::with_models(Models::new(provider), world)
    }

    pub fn with_models(models: Models, world: Arc<dyn World>) -> Self {
        Self { models, world, templates: Templates::new() }
    }

    /// The asking is boxed: thousands of these wait at once, and each would hold a place for every move of it.
    async fn send(&self, mut asking: Box<Asking>, sink: &mut dyn ReplySink) -> Result<PromptReply, PromptError> {
        // Before the call, so that a broken schema is found before anything is paid for.
        let reader = ReplyReader::new(&asking.request.prompt, &asking.request.expected)?;
        let candidates = self.models.candidates(&asking.wishes());
        let are_read = candidates.iter().any(Candidate::reads_variables);
        let may_take_tools = candidates.iter().any(|candidate| candidate.may_take_tools(&asking.request.prompt));
        asking.forget_variables(are_read, may_take_tools);
        let began = self.world.now();
        let mut attempts = Attempts { asking, sink, failures: Vec::new(), began, waited_ms: 0 };
        let (reply, ms) = self.ask_in_order(&candidates, &mut attempts).await?;
        let Attempts { asking, failures, .. } = attempts;
        let mut prompt = asking.record();
        let ModelReply { text: raw, parts, stop, response, model, in_token, out_token, details, .. } = reply;
        let ModelReply { enforced, probe, refused_before, cut_short, repairs, .. } = reply;
        if let Some(Response { hash, body, request_id }) = response {
            (prompt.received, prompt.response) = (Some(hash), body.and_then(Document::stored));
            prompt.request_id = request_id;
        }
        (prompt.details, prompt.probe, prompt.refused_before) = (details, probe.map(Box::new), refused_before);
        let content = reader.read(&raw);
        // A server may say yes to a schema and overlook it: the reply is the proof.
        let enforced = enforced && !matches!(content, ReplyContent::Wrong { .. });
        let model = Some(model);
        Ok(PromptReply {
            raw,
            parts,
            stop,
            content,
            prompt,
            model,
            in_token,
            out_token,
            enforced,
            cut_short,
            ms,
            failures,
            repairs,
        })
    }

    /// Asks the models in their order until one answers.
    async fn ask_in_order(
        &self,
        candidates: &[Candidate],
        attempts: &mut Attempts<'_>,
    ) -> Result<(ModelReply, u64), PromptError> {
        let mut reasons: Vec<String> = Vec::new();
        let mut candidates = candidates.iter().peekable();
        while let Some(candidate) = candidates.next() {
            if let Some(reason) = reasons.last() {
                let prompt = &attempts.asking.request.prompt;
                tracing::warn!(prompt, %reason, "the model did not answer; the next one is asked");
                attempts.sink.restart();
            }
            let model = match self.models.ready(candidate) {
                Ok(model) => model,
                Err(reason) => {
                    attempts.note(FailedAttempt { reason: reason.clone(), ..FailedAttempt::default() });
                    reasons.push(reason);
                    continue;
                }
            };
            match self.insist(&*model, candidates.peek().is_some(), attempts).await {
                Ok(reply) => return Ok(reply),
                Err(GaveUp::Model(reason)) => reasons.push(reason),
                Err(GaveUp::Call(error)) => return Err(error),
            }
        }
        let failures = std::mem::take(&mut attempts.failures);
        Err(PromptError::Provider { reason: reasons.join("; then "), failures })
    }

    /// Asks one model, a few times if that may help.
    async fn insist(
        &self,
        model: &dyn Provider,
        is_followed: bool,
        attempts: &mut Attempts<'_>,
    ) -> Result<(ModelReply, u64), GaveUp> {
        let refused_before = model.refused_before(&attempts.asking.request, attempts.asking.offers_tools());
        let mut native = attempts.asking.offers_tools() && model.takes_tools(&attempts.asking.request.prompt);
        let mut failed = 0;
        loop {
            attempts.asking.offer_tools(&self.templates, native).map_err(GaveUp::Call)?;
            let (error, ms) = match self.ask_once(model, attempts).await {
                (Some(Ok(reply)), ms) => return Ok((ModelReply { refused_before, ..reply }, ms)),
                (Some(Err(error)), ms) => (error, ms),
                (None, ms) => {
                    attempts.fail(model.name(), "the time for the call was over".to_owned(), ms, false);
                    return Err(attempts.out_of_time());
                }
            };
            let too_long = matches!(error, ProviderError::TooLong { .. });
            attempts.fail(model.name(), error.to_string(), ms, too_long);
            let prompt = &attempts.asking.request.prompt;
            if native && matches!(error, ProviderError::ToolsRefused { .. }) {
                tracing::warn!(prompt, %error, "the model takes no tools; it is asked in text");
                native = false;
                continue;
            }
            failed += 1;
            let too_slow = is_followed && ms > SLOW_MS;
            let left = attempts.time_left(self.world.now());
            let is_busy = matches!(error, ProviderError::Busy { .. });
            let patience = if is_busy && !is_followed { 2 * LONGEST_BUSY_PAUSE } else { LONGEST_PAUSE };
            let longest = left.filter(|_| !is_followed).unwrap_or(patience);
            let pause = pause_before_retry(&error, failed, is_followed);
            let Some(pause) = pause.filter(|pause| !too_slow && pause.least <= longest) else {
                return Err(GaveUp::Model(last_reason(&error, failed)));
            };
            let pause = pause.drawn(chance(&self.world.fresh_id()));
            tracing::warn!(prompt, %error, ?pause, "the model did not answer; it is asked again");
            if self.within(left, self.world.sleep(pause)).await.is_none() {
                return Err(attempts.out_of_time());
            }
            attempts.sink.restart();
        }
    }

    /// Asks a model once, as soon as it has a place. None if the call's time is over.
    async fn ask_once(
        &self,
        model: &dyn Provider,
        attempts: &mut Attempts<'_>,
    ) -> (Option<Result<ModelReply, ProviderError>>, u64) {
        let asked = self.world.now();
        let _permit = attempts.asking.enter(model.capacity()).await;
        let turn = model.turn(&attempts.asking.request).await;
        let started = self.world.now();
        attempts.waited_ms += started.ms_since(asked);
        let left = attempts.time_left(started);
        let Attempts { asking, sink, .. } = attempts;
        asking.model = Some(model.name());
        if let Some(format) = asking.format() {
            sink.begin(format);
        }
        let mut listen = |piece: Piece<'_>| match piece {
            Piece::Text(text) => sink.text(text),
            Piece::Call(piece) => sink.call(piece),
        };
        let result = self.within(left, model.complete(&asking.request, &mut listen)).await;
        if let Some(Ok(ModelReply { in_token: Some(read), out_token: Some(written), .. })) = &result {
            model.settle(turn, read.saturating_add(*written));
        }
        let refused = attempts.asking.refused(&model.name());
        for attempt in refused {
            attempts.note(attempt);
        }
        (result, self.world.now().ms_since(started))
    }

    async fn within<T>(&self, timeout: Option<Duration>, work: impl Future<Output = T>) -> Option<T> {
        let Some(timeout) = timeout else { return Some(work.await) };
        tokio::select! {
            biased;
            result = work => Some(result),
            () = self.world.sleep(timeout) => None,
        }
    }
}

fn last_reason(error: &ProviderError, failed: usize) -> String {
    if failed == 1 { error.to_string() } else { format!("{error} (asked {failed} times)") }
}

/// Half of what a model can read is for material; the rest is for instructions, tools and the reply. Tokens are
/// seldom shorter than this.
const fn bytes_of_material(tokens: u64) -> u64 {
    const BYTES_PER_TOKEN: u64 = 3;
    tokens.saturating_mul(BYTES_PER_TOKEN) / 2
}

impl Prompter for TemplatePrompter {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        match Asking::of_prompt(&self.templates, call) {
            Ok(asking) => Box::pin(self.send(Box::new(asking), sink)),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn complete<'a>(
        &'a self,
        call: Completion,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(self.send(Box::new(Asking::of_text(call)), sink))
    }

    /// The room of the model that is asked first.
    fn capacity(&self, need: PromptNeed<'_>) -> Option<Arc<CallCapacity>> {
        let candidates = self.models.candidates(&Wishes::of(need));
        let first = candidates.iter().find_map(|candidate| self.models.ready(candidate).ok())?;
        first.capacity().cloned()
    }

    fn routes_in_one_call(&self, need: PromptNeed<'_>) -> bool {
        let candidates = self.models.candidates(&Wishes::of(need));
        let first = candidates.iter().find_map(|candidate| self.models.ready(candidate).ok());
        first.is_none_or(|model| model.routes_in_one_call())
    }

    /// Of those that may have to answer, the one that can read least counts.
    fn room<'a>(&'a self, need: PromptNeed<'a>) -> BoxFuture<'a, Option<u64>> {
        Box::pin(async move {
            let candidates = self.models.candidates(&Wishes::of(need));
            let mut least = None;
            for candidate in &candidates {
                let Ok(model) = self.models.ready(candidate) else { continue };
                let size = model.context_size().await.map(ContextSize::tokens);
                least = least.into_iter().chain(size).min();
            }
            least.map(bytes_of_material)
        })
    }

    fn models(&self) -> Vec<String> {
        self.models.names()
    }

    fn choosable(&self, settings: &Settings) -> Vec<String> {
        self.models.choosable(settings)
    }
}

#[cfg(test)]
#[path = "prompter_tests.rs"]
mod tests;
