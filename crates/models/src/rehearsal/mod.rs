//! The stand-in for a model where none is configured: it plays a script, and says so.
//!
//! A reply is a pure function of the request. It never calls a tool that it does not know: a made-up call of
//! somebody's own tool could do harm.

mod answer;
mod company;
mod minimal;
mod react;
mod samples;

use crate::provider::{ModelReply, ModelRequest, OnText, Provider, ProviderError};
use serde_json::Value;
use std::time::Duration;
use trellis_domain::config::PromptReply;
use trellis_orchestrator::ports::BoxFuture;

/// The last line of every answer.
pub const NOTE: &str = "(Scripted by the rehearsal model: no language model was asked. This version cannot ask a \
    real one yet; later ones will choose it by OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST.)";

const MODEL: &str = "rehearsal";
const PIECE: usize = 12;
/// About as fast as a hosted model writes.
const USUAL_DELAY: Duration = Duration::from_millis(8);

/// Plays the specification's worked example, simple questions, and sample data for the seeded tools.
#[derive(Debug, Clone)]
pub struct Rehearsal {
    piece_delay: Duration,
}

impl Rehearsal {
    /// Waits this long between the pieces of a reply.
    pub fn new(piece_delay: Duration) -> Self {
        Self { piece_delay }
    }

    pub fn instant() -> Self {
        Self::new(Duration::ZERO)
    }

    async fn play(&self, request: &ModelRequest, on_text: &mut OnText<'_>) -> ModelReply {
        let script = reply_to(request);
        let mut said = 0;
        for piece in pieces(&script) {
            if said > 0 && !self.piece_delay.is_zero() {
                tokio::time::sleep(self.piece_delay).await;
            }
            said += piece.len();
            if on_text(piece).is_break() {
                break;
            }
        }
        let text = script[..said].to_owned();
        let in_token = Some(rough_tokens(&request.system) + rough_tokens(&request.user));
        ModelReply { model: MODEL.to_owned(), in_token, out_token: Some(rough_tokens(&text)), text }
    }
}

impl Default for Rehearsal {
    fn default() -> Self {
        Self::new(USUAL_DELAY)
    }
}

impl Provider for Rehearsal {
    fn reads_variables(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        on_text: &'a mut OnText<'_>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        Box::pin(async move { Ok(self.play(request, on_text).await) })
    }
}

fn reply_to(request: &ModelRequest) -> String {
    match &request.expected {
        PromptReply::Text => text_for(request),
        PromptReply::Json { schema } | PromptReply::JsonLines { schema } => {
            minimal::value(schema.as_ref().unwrap_or(&Value::Null)).to_string()
        }
    }
}

fn text_for(request: &ModelRequest) -> String {
    if request.prompt == "agent-react" {
        return react::step(&request.variables);
    }
    samples::reply(&request.prompt, &request.variables).unwrap_or_else(|| {
        format!("{} There is no script for the prompt `{}`.\n\n{NOTE}", samples::LABEL, request.prompt)
    })
}

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(PIECE).map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

fn rough_tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// One line of at most so many characters, made of any text.
fn line(text: &str, length: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", words[..end].trim_end()),
        None => words,
    }
}

#[cfg(test)]
#[path = "../rehearsal_tests.rs"]
mod tests;
