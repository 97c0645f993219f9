//! The objects of responses.

use super::super::ending::{About, Answer, EndedRun, response_id};
use super::super::{models, seconds};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use trellis_domain::RunId;
use trellis_domain::run::RunState;
use trellis_domain::usage;
use utoipa::ToSchema;

/// A question. Other members of OpenAI's are taken and ignored, or refused.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct ResponseRequest {
    /// `trellis/auto`, or `trellis/` and a pattern
    #[schema(example = "trellis/auto")]
    model: String,
    /// The question, or a list of messages whose last is the question
    #[schema(value_type = Value)]
    input: Value,
    /// Words on how to go about it
    instructions: Option<String>,
    /// The response that it goes on from
    previous_response_id: Option<String>,
    /// The conversation that it goes on from, by its id or as an object with one
    #[schema(value_type = Option<Value>)]
    conversation: Option<Value>,
    /// Whether the reply comes at once
    background: Option<bool>,
    stream: Option<bool>,
    /// Texts that come back with the reply
    metadata: Option<BTreeMap<String, String>>,
}

/// What a request says that its reply repeats.
#[derive(Debug, Clone, Default)]
pub(super) struct Echo {
    pub(super) background: bool,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) exchanges_left_out: usize,
}

/// A response.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Response)]
pub(crate) struct ResponseObject {
    /// `resp_` and the id of the run
    id: String,
    object: &'static str,
    created_at: i64,
    #[schema(required)]
    completed_at: Option<i64>,
    /// `queued`, `in_progress`, `completed`, `incomplete`, `failed` or `cancelled`
    status: &'static str,
    background: bool,
    #[schema(required)]
    error: Option<ResponseError>,
    #[schema(required)]
    incomplete_details: Option<IncompleteDetails>,
    #[schema(required)]
    instructions: Option<String>,
    #[schema(required)]
    max_output_tokens: Option<u64>,
    model: String,
    output: Vec<OutputMessage>,
    parallel_tool_calls: bool,
    #[schema(required)]
    previous_response_id: Option<String>,
    #[schema(required)]
    conversation: Option<ConversationName>,
    /// Always true: everything is on record
    store: bool,
    #[schema(required)]
    temperature: Option<f64>,
    #[schema(required)]
    top_p: Option<f64>,
    text: TextFormat,
    tool_choice: &'static str,
    #[schema(value_type = Vec<Object>)]
    tools: [(); 0],
    truncation: &'static str,
    metadata: BTreeMap<String, String>,
    /// The tokens of the whole run; null if no model reported any
    #[schema(required)]
    usage: Option<ResponseUsage>,
    trellis: About,
}

/// Why there is no answer.
#[derive(Debug, Serialize, ToSchema)]
struct ResponseError {
    code: &'static str,
    message: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct IncompleteDetails {
    /// Of the reasons that OpenAI has the one that is nearest; `trellis.reason` has our own
    reason: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
struct ConversationName {
    id: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct TextFormat {
    format: PlainText,
}

#[derive(Debug, Serialize, ToSchema)]
struct PlainText {
    #[serde(rename = "type")]
    kind: &'static str,
}

/// The answer.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OutputMessage {
    id: String,
    #[serde(rename = "type")]
    kind: &'static str,
    status: &'static str,
    role: &'static str,
    content: Vec<OutputText>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OutputText {
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
    #[schema(value_type = Vec<Object>)]
    annotations: [(); 0],
    #[schema(value_type = Vec<Object>)]
    logprobs: [(); 0],
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct ResponseUsage {
    input_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens: u64,
    output_tokens_details: OutputDetails,
    total_tokens: u64,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct InputDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct OutputDetails {
    reasoning_tokens: u64,
}

impl ResponseObject {
    pub(super) fn of(ended: &EndedRun, echo: &Echo) -> Self {
        let answer = ended.answer();
        let (output, error) = match &answer {
            Some(Ok(answer)) => (vec![OutputMessage::of(ended.run(), Some(*answer))], None),
            Some(Err(error)) => (Vec::new(), Some(error)),
            None => (Vec::new(), None),
        };
        let cut = matches!(answer, Some(Ok(Answer { cut: true, .. })));
        Self {
            completed_at: ended.summary.ended.map(seconds),
            status: status(ended.whole.state, cut),
            error: error.map(|error| ResponseError { code: "server_error", message: error.message().to_owned() }),
            incomplete_details: cut.then_some(IncompleteDetails { reason: "max_output_tokens" }),
            output,
            usage: ended.usage().map(ResponseUsage::of),
            ..Self::begun(ended, echo)
        }
    }

    /// The same as it was when the question was accepted.
    pub(super) fn begun(run: &EndedRun, echo: &Echo) -> Self {
        let accepted = run.accepted();
        let framing = accepted.map(|accepted| accepted.framing.to_string()).filter(|framing| !framing.is_empty());
        let previous = accepted.and_then(|accepted| accepted.earlier.last()?.run.as_ref());
        let pattern = accepted.and_then(|accepted| accepted.pattern.as_deref());
        let conversation = run.summary.conversation.as_ref();
        Self {
            id: response_id(run.run()),
            object: "response",
            created_at: seconds(run.summary.started),
            completed_at: None,
            status: status(RunState::Running, false),
            background: echo.background,
            error: None,
            incomplete_details: None,
            instructions: framing,
            max_output_tokens: None,
            model: models::name(pattern),
            output: Vec::new(),
            parallel_tool_calls: false,
            previous_response_id: previous.map(response_id),
            conversation: conversation.map(|id| ConversationName { id: id.to_string() }),
            store: true,
            temperature: None,
            top_p: None,
            text: TextFormat { format: PlainText { kind: "text" } },
            tool_choice: "none",
            tools: [],
            truncation: "disabled",
            metadata: echo.metadata.clone(),
            usage: None,
            trellis: run.about(echo.exchanges_left_out),
        }
    }

    pub(super) fn status(&self) -> &'static str {
        self.status
    }
}

impl OutputMessage {
    /// The message with its text, or as it is before there is any.
    pub(super) fn of(run: &RunId, answer: Option<Answer<'_>>) -> Self {
        let status = match answer {
            None => "in_progress",
            Some(Answer { cut: true, .. }) => "incomplete",
            Some(Answer { cut: false, .. }) => "completed",
        };
        let content = answer.map(|answer| OutputText::of(answer.text)).into_iter().collect();
        Self { id: message_id(run), kind: "message", status, role: "assistant", content }
    }
}

impl OutputText {
    pub(super) fn of(text: &str) -> Self {
        Self { kind: "output_text", text: text.to_owned(), annotations: [], logprobs: [] }
    }
}

impl ResponseUsage {
    fn of(usage: &usage::Usage) -> Self {
        let (sent, received, details) = (usage.in_token.unwrap_or(0), usage.out_token.unwrap_or(0), &usage.details);
        let (cached_tokens, cache_write_tokens) = (details.cached.unwrap_or(0), details.cache_written.unwrap_or(0));
        Self {
            input_tokens: sent,
            input_tokens_details: InputDetails { cached_tokens, cache_write_tokens },
            output_tokens: received,
            output_tokens_details: OutputDetails { reasoning_tokens: details.reasoning.unwrap_or(0) },
            total_tokens: sent + received,
        }
    }
}

/// The id of the message that is the answer.
pub(super) fn message_id(run: &RunId) -> String {
    format!("msg_{run}")
}

fn status(state: RunState, cut: bool) -> &'static str {
    match state {
        RunState::Queued => "queued",
        RunState::Running | RunState::Waiting => "in_progress",
        RunState::Answered | RunState::AnsweredPartial => "completed",
        RunState::Limit if cut => "incomplete",
        RunState::Limit | RunState::Failed => "failed",
        RunState::Cancelled => "cancelled",
    }
}
