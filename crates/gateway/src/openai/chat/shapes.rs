//! The objects of chat completions.

use super::super::OpenAiError;
use super::super::ending::{About, Answer, EndedRun};
use super::super::seconds;
use super::chat_id;
use serde::Serialize;
use serde_json::Value;
use trellis_domain::usage;
use utoipa::ToSchema;

/// A question with what was said before it. Other members of OpenAI's are taken and ignored, or refused.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct ChatRequest {
    /// `trellis/auto`, or `trellis/` and a pattern
    #[schema(example = "trellis/auto")]
    model: String,
    #[schema(min_items = 1)]
    messages: Vec<ChatMessage>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct ChatMessage {
    /// `system`, `developer`, `user` or `assistant`; the last message is the user's
    role: String,
    /// A text, or a list of parts of type `text`
    #[schema(value_type = Value)]
    content: Value,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only the schema is used")]
struct StreamOptions {
    /// The last chunk has the tokens of the whole run
    include_usage: Option<bool>,
}

/// An answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatCompletion {
    /// `chatcmpl-` and the id of the run
    id: String,
    object: &'static str,
    created: i64,
    model: String,
    choices: Vec<Choice>,
    /// The tokens of the whole run; null if no model reported any
    #[schema(required)]
    usage: Option<ChatUsage>,
    trellis: About,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatChoice)]
struct Choice {
    index: u32,
    message: Reply,
    #[schema(required, value_type = Option<Object>)]
    logprobs: Option<()>,
    /// `stop`; `length` if a limit ended the run and this is what there was
    finish_reason: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatReply)]
struct Reply {
    role: &'static str,
    content: String,
    #[schema(required)]
    refusal: Option<String>,
}

/// Tokens of a whole run, with all its calls.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(super) struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptDetails,
    completion_tokens_details: CompletionDetails,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct PromptDetails {
    cached_tokens: u64,
}

#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
struct CompletionDetails {
    reasoning_tokens: u64,
}

impl ChatCompletion {
    pub(super) fn of(ended: &EndedRun, model: String, left_out: usize) -> Result<Self, OpenAiError> {
        let answer = ended.answer().unwrap_or_else(|| Err(OpenAiError::still_running(ended.run())))?;
        let message = Reply { role: "assistant", content: answer.text.to_owned(), refusal: None };
        Ok(Self {
            id: chat_id(ended.run()),
            object: "chat.completion",
            created: seconds(ended.summary.started),
            model,
            choices: vec![Choice { index: 0, message, logprobs: None, finish_reason: finish_reason(answer) }],
            usage: ended.usage().map(ChatUsage::of),
            trellis: ended.about(left_out),
        })
    }
}

impl ChatUsage {
    pub(super) fn of(usage: &usage::Usage) -> Self {
        let (sent, received) = (usage.in_token.unwrap_or(0), usage.out_token.unwrap_or(0));
        Self {
            prompt_tokens: sent,
            completion_tokens: received,
            total_tokens: sent + received,
            prompt_tokens_details: PromptDetails { cached_tokens: usage.details.cached.unwrap_or(0) },
            completion_tokens_details: CompletionDetails { reasoning_tokens: usage.details.reasoning.unwrap_or(0) },
        }
    }
}

pub(super) fn finish_reason(answer: Answer<'_>) -> &'static str {
    if answer.cut { "length" } else { "stop" }
}
