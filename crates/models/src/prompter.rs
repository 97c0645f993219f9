//! Renders a prompt, asks the provider, reads the reply. A transient failure is tried again, a few times.

use crate::provider::{ModelReply, ModelRequest, Provider, ProviderError};
use crate::reply::{self, ReplyReader};
use crate::template::Templates;
use serde_json::Map;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Hash;
use trellis_domain::record::{FailedAttempt, PromptUse};
use trellis_orchestrator::ports::{BoxFuture, PromptCall, PromptError, PromptReply, Prompter, ReplySink, World};

/// How often a request is sent at most.
const ATTEMPTS: usize = 3;
/// The pause before the first repetition; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// A provider that asks for a longer pause is not asked again: the call would outlast its limit.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Prompts from the session's settings, answered by one provider.
#[derive(Debug)]
pub struct TemplatePrompter {
    provider: Arc<dyn Provider>,
    world: Arc<dyn World>,
    templates: Templates,
}

impl TemplatePrompter {
    pub fn new(provider: Arc<dyn Provider>, world: Arc<dyn World>) -> Self {
        Self { provider, world, templates: Templates::new() }
    }

    async fn answer(&self, call: PromptCall, sink: &mut dyn ReplySink) -> Result<PromptReply, PromptError> {
        let (request, prompt) = self.request(call)?;
        // Before the call, so that a broken schema is found before anything is paid for.
        let reader = ReplyReader::new(&request.prompt, &request.expected)?;
        let (ModelReply { text, model, in_token, out_token }, ms, failures) = self.complete(&request, sink).await?;
        let content = reader.read(&text);
        Ok(PromptReply { raw: text, content, prompt, model: Some(model), in_token, out_token, ms, failures })
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
        let variables = if self.provider.reads_variables() { variables } else { Map::new() };
        let request = ModelRequest { system, user, prompt: id, variables, expected, labels };
        Ok((request, prompt))
    }

    async fn complete(
        &self,
        request: &ModelRequest,
        sink: &mut dyn ReplySink,
    ) -> Result<(ModelReply, u64, Vec<FailedAttempt>), PromptError> {
        let mut failures = Vec::new();
        loop {
            let started = self.world.now();
            let result = self.provider.complete(request, &mut |text| sink.text(text)).await;
            let ms = self.world.now().ms_since(started);
            let error = match result {
                Ok(reply) => return Ok((reply, ms, failures)),
                Err(error) => error,
            };
            failures.push(FailedAttempt { reason: error.to_string(), ms });
            let Some(pause) = pause_before_retry(&error, failures.len()) else {
                return Err(PromptError::Provider { reason: last_reason(&error, failures.len()), failures });
            };
            tracing::warn!(prompt = request.prompt, %error, ?pause, "the model did not answer; it is asked again");
            self.world.sleep(pause).await;
            sink.restart();
        }
    }
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
}

#[cfg(test)]
#[path = "prompter_tests.rs"]
mod tests;
