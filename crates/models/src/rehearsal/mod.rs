//! The stand-in for a model where none is configured: it plays a script, and says so.
//!
//! A reply is a pure function of the request. It never calls a tool that it does not know: a made-up call of
//! somebody's own tool could do harm.

mod answer;
mod company;
mod debate;
mod deciding;
mod dispatch;
mod given;
mod heard;
mod inquiry;
mod knowledge;
mod loaded;
mod minimal;
mod plan;
mod quote;
mod react;
mod reflexion;
mod router;
mod samples;
mod scenario;
mod supervisor;
mod synthesis;
mod tables;

use crate::provider::{ModelReply, ModelRequest, OnPiece, Provider, ProviderError};
use given::Given;
use serde_json::Value;
use std::time::Duration;
use trellis_domain::config::PromptReply;
use trellis_domain::parts::Piece;
use trellis_orchestrator::ports::BoxFuture;

/// The last line of every answer.
pub const NOTE: &str = "(Scripted by the rehearsal model: no language model was asked. To ask a real one, set \
    OPENAI_API_KEY, ANTHROPIC_API_KEY or OLLAMA_HOST, or name it with --model.)";

const MODEL: &str = "rehearsal";
const PIECE: usize = 12;
/// About as fast as a hosted model writes.
const USUAL_DELAY: Duration = Duration::from_millis(8);
/// How long the market register lets its caller wait: longer than anybody does.
const SILENCE: Duration = Duration::from_mins(10);

/// Plays the router and every pattern: the specification's worked example, a plan that fails and is revised, a
/// comparison in which one source stays silent, simple questions, and sample data for the seeded tools.
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

    async fn play(&self, script: &str, request: &ModelRequest, on_piece: &mut OnPiece<'_>) -> ModelReply {
        let mut said = 0;
        for piece in pieces(script) {
            if said > 0 && !self.piece_delay.is_zero() {
                tokio::time::sleep(self.piece_delay).await;
            }
            said += piece.len();
            if on_piece(Piece::Text(piece)).is_break() {
                break;
            }
        }
        let text = script[..said].to_owned();
        let in_token = Some(rough_tokens(request.system.pieces()) + rough_tokens(request.user.pieces()));
        let out_token = Some(rough_tokens([text.as_str()]));
        ModelReply { model: MODEL.to_owned(), in_token, out_token, text, ..ModelReply::default() }
    }
}

impl Default for Rehearsal {
    fn default() -> Self {
        Self::new(USUAL_DELAY)
    }
}

impl Provider for Rehearsal {
    fn name(&self) -> String {
        MODEL.to_owned()
    }

    fn reads_variables(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        on_piece: &'a mut OnPiece<'_>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        Box::pin(async move {
            let refused = |reason: &str| ProviderError::Permanent { reason: reason.to_owned() };
            match cue(request) {
                Cue::Say(script) => Ok(self.play(&script, request, on_piece).await),
                Cue::Refuse(reason) => Err(refused(reason)),
                Cue::StaySilent(reason) => {
                    tokio::time::sleep(SILENCE).await;
                    Err(refused(reason))
                }
            }
        })
    }
}

/// What happens on stage.
enum Cue {
    Say(String),
    Refuse(&'static str),
    /// Nothing for a long time; whoever still waits then is told why.
    StaySilent(&'static str),
}

fn cue(request: &ModelRequest) -> Cue {
    match request.prompt.as_str() {
        "sample-archive-search" => Cue::Refuse("the archive is closed (scripted)"),
        "sample-market-register" => Cue::StaySilent("the market register stays silent (scripted)"),
        _ => Cue::Say(reply_to(request)),
    }
}

fn reply_to(request: &ModelRequest) -> String {
    let history = heard::history(request);
    let given = Given::new(&request.variables).after(history.as_ref());
    let choice = decision(&request.prompt, given);
    let schema = match &request.expected {
        PromptReply::Text => None,
        PromptReply::Json { schema } | PromptReply::JsonLines { schema } => Some(schema.as_ref()),
    };
    match (choice, schema) {
        // Better refused than a tool that was not meant.
        (Some(choice), Some(_)) if request.prompt == "plan-step-execute" => choice.to_string(),
        (Some(choice), Some(Some(schema))) => minimal::fitted(choice, schema).to_string(),
        (Some(choice), Some(None) | None) => choice.to_string(),
        (None, Some(schema)) => minimal::value(schema.unwrap_or(&Value::Null)).to_string(),
        (None, None) => text_for(request, given),
    }
}

/// The replies that are JSON.
fn decision(prompt: &str, given: Given<'_>) -> Option<Value> {
    Some(match prompt {
        "route" => router::route(given),
        "task-type-classify" => router::task_type(given),
        "pattern-select" => router::pattern(given),
        "plan-create" => plan::create(given),
        "plan-step-execute" => plan::step(given),
        "plan-revise" => plan::revise(given),
        "supervisor-decompose" => supervisor::decompose(given),
        "supervisor-review" => supervisor::review(given),
        "reflexion-critique" => reflexion::critique(given),
        "dispatch-choose" => dispatch::choose(given),
        "debate-stances" => debate::stances(given),
        "debate-moderate" => debate::moderate(),
        "kg-edge-scoring" => knowledge::scores(given),
        "extract-facts" => knowledge::facts(given),
        "schema-selection" => tables::select(given),
        "graphql-generation" => tables::query(given),
        "diagnose-structured-data" => tables::descriptor(given),
        "decision-scoring" => deciding::decide(given),
        _ => return None,
    })
}

fn text_for(request: &ModelRequest, given: Given<'_>) -> String {
    match request.prompt.as_str() {
        "agent-react" | "reflexion-act" => react::step(given),
        "plan-synthesise" => synthesis::of_steps(given),
        "supervisor-synthesise" => synthesis::of_findings(given),
        "debate-judge" => debate::judge(given),
        "extract-concepts" => knowledge::concepts(given),
        "kg-synthesis" => knowledge::answer(given),
        prompt => samples::reply(prompt, &request.variables)
            .unwrap_or_else(|| format!("{} There is no script for the prompt `{prompt}`.\n\n{NOTE}", samples::LABEL)),
    }
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

fn rough_tokens<'t>(pieces: impl IntoIterator<Item = &'t str>) -> u64 {
    pieces.into_iter().map(|piece| piece.chars().count() as u64).sum::<u64>().div_ceil(4)
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
mod offered_tests;
#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod stage_tests;
#[cfg(test)]
mod supervisor_tests;
#[cfg(test)]
#[path = "../rehearsal_tests.rs"]
pub(crate) mod tests;
