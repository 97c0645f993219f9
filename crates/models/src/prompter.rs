//! Renders a prompt, asks a model, reads the reply. A transient failure is tried again, a few times; a model that does
//! not answer is followed by the next one, if there is one.

use crate::provider::{ModelReply, ModelRequest, Provider, ProviderError};
use crate::reply::{self, ReplyReader};
use crate::template::Templates;
use serde_json::Map;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Hash;
use trellis_domain::config::PromptReply as Expected;
use trellis_domain::record::{FailedAttempt, PromptUse};
use trellis_orchestrator::ports::{
    BoxFuture, Completion, PromptCall, PromptError, PromptReply, Prompter, ReplyContent, ReplySink, World,
};

/// How often a request is sent at most.
const ATTEMPTS: usize = 3;
/// The pause before the first repetition; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// A provider that asks for a longer pause is not asked again: the call would outlast its limit.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A model that failed this slowly is not asked again if another one is there: the call has a limit.
const SLOW_MS: u64 = 15_000;

/// Models in the order in which they are asked.
#[derive(Debug, Clone)]
pub struct Models {
    first: Arc<dyn Provider>,
    others: Vec<Arc<dyn Provider>>,
}

impl Models {
    pub fn new(first: Arc<dyn Provider>) -> Self {
        Self { first, others: Vec::new() }
    }

    /// One more, which is asked if none of those before it answers.
    #[must_use]
    pub fn or(mut self, next: Arc<dyn Provider>) -> Self {
        self.others.push(next);
        self
    }

    fn in_order(&self) -> impl Iterator<Item = &dyn Provider> {
        std::iter::once(&self.first).chain(&self.others).map(|provider| &**provider)
    }
}

/// Prompts from the session's settings, answered by the first model that can.
#[derive(Debug)]
pub struct TemplatePrompter {
    models: Models,
    world: Arc<dyn World>,
    templates: Templates,
}

impl TemplatePrompter {
    pub fn new(provider: Arc<dyn Provider>, world: Arc<dyn World>) -> Self {
        Self::with_models(Models::new(provider), world)
    }

    pub fn with_models(models: Models, world: Arc<dyn World>) -> Self {
        Self { models, world, templates: Templates::new() }
    }

    async fn answer(&self, call: PromptCall, sink: &mut dyn ReplySink) -> Result<PromptReply, PromptError> {
        let (request, prompt) = self.request(call)?;
        self.send(request, prompt, sink).await
    }

    async fn send(
        &self,
        request: ModelRequest,
        prompt: PromptUse,
        sink: &mut dyn ReplySink,
    ) -> Result<PromptReply, PromptError> {
        // Before the call, so that a broken schema is found before anything is paid for.
        let reader = ReplyReader::new(&request.prompt, &request.expected)?;
        let (reply, ms, failures) = self.ask_in_order(&request, sink).await?;
        let ModelReply { text: raw, model, in_token, out_token, enforced, cut_short } = reply;
        let content = reader.read(&raw);
        // A server may say yes to a schema and overlook it: the reply is the proof.
        let enforced = enforced && !matches!(content, ReplyContent::Wrong { .. });
        let model = Some(model);
        Ok(PromptReply { raw, content, prompt, model, in_token, out_token, enforced, cut_short, ms, failures })
    }

    fn request(&self, call: PromptCall) -> Result<(ModelRequest, PromptUse), PromptError> {
        let PromptCall { scope: _, settings, id, variables, schema, labels } = call;
        let Some(template) = settings.prompts.get(&id) else { return Err(PromptError::UnknownPrompt { id }) };
        let wrong = |reason| PromptError::Template { id: id.clone(), reason };
        let user = self.templates.render(&template.text, &variables).map_err(wrong)?;
        let system = self.templates.render(&settings.system_prompt, &variables);
        let system = system.map_err(|reason| wrong(format!("prompt/system, which stands in front of it: {reason}")))?;
        let sent = Hash::of_parts([system.as_bytes(), user.as_bytes()]);
        let prompt = PromptUse { id: id.clone(), template: Some(template.hash), sent: Some(sent) };
        let expected = reply::expected(&template.reply, schema);
        // Real providers see only the text, and calls may wait long: what they do not read is dropped.
        let variables = if self.models.in_order().any(Provider::reads_variables) { variables } else { Map::new() };
        let request = ModelRequest { system, user, prompt: id, variables, expected, labels };
        Ok((request, prompt))
    }

    /// Asks the models in their order until one answers.
    async fn ask_in_order(
        &self,
        request: &ModelRequest,
        sink: &mut dyn ReplySink,
    ) -> Result<(ModelReply, u64, Vec<FailedAttempt>), PromptError> {
        let mut failures = Vec::new();
        let mut reasons: Vec<String> = Vec::new();
        let mut models = self.models.in_order().peekable();
        while let Some(model) = models.next() {
            if let Some(reason) = reasons.last() {
                tracing::warn!(prompt = request.prompt, %reason, "the model did not answer; the next one is asked");
                sink.restart();
            }
            match self.insist(model, models.peek().is_some(), request, sink, &mut failures).await {
                Ok((reply, ms)) => return Ok((reply, ms, failures)),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(PromptError::Provider { reason: reasons.join("; then "), failures })
    }

    /// Asks one model, a few times if that may help. The error is why it did not answer in the end.
    async fn insist(
        &self,
        model: &dyn Provider,
        is_followed: bool,
        request: &ModelRequest,
        sink: &mut dyn ReplySink,
        failures: &mut Vec<FailedAttempt>,
    ) -> Result<(ModelReply, u64), String> {
        let mut failed = 0;
        loop {
            let started = self.world.now();
            let result = model.complete(request, &mut |text| sink.text(text)).await;
            let ms = self.world.now().ms_since(started);
            let error = match result {
                Ok(reply) => return Ok((reply, ms)),
                Err(error) => error,
            };
            failed += 1;
            failures.push(FailedAttempt { reason: error.to_string(), ms });
            let too_slow = is_followed && ms > SLOW_MS;
            let Some(pause) = pause_before_retry(&error, failed).filter(|_| !too_slow) else {
                return Err(last_reason(&error, failed));
            };
            tracing::warn!(prompt = request.prompt, %error, ?pause, "the model did not answer; it is asked again");
            self.world.sleep(pause).await;
            sink.restart();
        }
    }
}

/// A text that needs no template.
fn as_it_stands(call: Completion) -> (ModelRequest, PromptUse) {
    let Completion { scope: _, settings: _, system, prompt: user, schema, json, labels } = call;
    let expected = if json || schema.is_some() { Expected::Json { schema } } else { Expected::Text };
    let sent = Hash::of_parts([system.as_bytes(), user.as_bytes()]);
    let prompt = PromptUse { id: Completion::ID.to_owned(), template: None, sent: Some(sent) };
    let request =
        ModelRequest { system, user, prompt: Completion::ID.to_owned(), variables: Map::new(), expected, labels };
    (request, prompt)
}

/// None if asking again makes no sense, or not within a reasonable time.
fn pause_before_retry(error: &ProviderError, failed: usize) -> Option<Duration> {
    match error {
        ProviderError::Transient { retry_after, .. } if failed < ATTEMPTS => {
            let doublings = u32::try_from(failed - 1).unwrap_or(u32::MAX);
            let pause = retry_after.unwrap_or(FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(doublings)));
            (pause <= LONGEST_PAUSE).then_some(pause)
        }
        ProviderError::Transient { .. } | ProviderError::Permanent { .. } => None,
    }
}

fn last_reason(error: &ProviderError, failed: usize) -> String {
    if failed == 1 { error.to_string() } else { format!("{error} (asked {failed} times)") }
}

impl Prompter for TemplatePrompter {
    fn ask<'a>(
        &'a self,
        call: PromptCall,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        Box::pin(self.answer(call, sink))
    }

    fn complete<'a>(
        &'a self,
        call: Completion,
        sink: &'a mut dyn ReplySink,
    ) -> BoxFuture<'a, Result<PromptReply, PromptError>> {
        let (request, prompt) = as_it_stands(call);
        Box::pin(self.send(request, prompt, sink))
    }

    fn models(&self) -> Vec<String> {
        self.models.in_order().map(Provider::name).collect()
    }
}

#[cfg(test)]
#[path = "prompter_tests.rs"]
mod tests;
