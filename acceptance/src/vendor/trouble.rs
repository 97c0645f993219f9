//! What every vendor says in its own words: the prompt is too long, too many requests.

use super::{Asked, Refused};
use serde_json::{Value, json};

/// So many bytes of results of tools are taken.
const ROOM: usize = 2_500;

/// A vendor's words for a prompt that is too long: the status, and the body that it comes with.
#[derive(Debug, Clone, Copy)]
pub struct TooLong {
    pub vendor: &'static str,
    /// Which server is meant.
    pub rule: super::Rule,
}

macro_rules! too_long {
    ($($vendor:ident: $status:literal, $body:tt;)*) => {
        /// Everybody's words for a prompt that is too long.
        pub const TOO_LONG: &[TooLong] = &[$(TooLong {
            vendor: stringify!($vendor),
            rule: |asked| is_too_long(asked).then(|| Refused::new($status, json!($body))),
        }),*];
    };
}

too_long! {
    openai: 400, { "error": { "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9031 tokens. Please reduce the length of the messages.", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded" } };
    anthropic: 400, { "type": "error", "error": { "type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum" } };
    mistral: 400, { "object": "error", "message": "Prompt contains 34115 tokens and 0 draft tokens, too large for model with 32768 maximum context length", "type": "invalid_request_prompt", "param": null, "code": "3051" };
    gemini: 400, [{ "error": { "code": 400, "message": "The input token count (1048900) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT" } }];
    groq: 400, { "error": { "message": "Please reduce the length of the messages or completion.", "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded" } };
    cohere: 400, { "message": "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs." };
    vllm: 400, { "error": { "message": "This model's maximum context length is 4096 tokens. However, you requested 4600 tokens (4344 in the messages, 256 in the completion). Please reduce the length of the messages or completion.", "type": "BadRequestError", "param": null, "code": 400 } };
    llama_cpp: 400, { "error": { "code": 400, "message": "the request exceeds the available context size, try increasing it", "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 8192 } };
    tgi: 422, { "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4344 `inputs` tokens and 256 `max_new_tokens`", "error_type": "validation" };
    bedrock: 400, { "message": "Input is too long for requested model." };
}

/// Whether more of what tools brought is shown than there is room for.
fn is_too_long(asked: &Asked<'_>) -> bool {
    let said = |message: &Value| {
        let text = message["content"].as_str().map_or(0, str::len);
        let blocks = message["content"].as_array().into_iter().flatten();
        text + blocks.filter_map(|block| block["content"].as_str()).map(str::len).sum::<usize>()
    };
    // The first message is the prompt, or stands before it.
    let after_prompt = asked.list("messages").iter().skip_while(|message| message["role"] != "assistant");
    after_prompt.map(said).sum::<usize>() > ROOM
}

/// The first two requests come too soon.
pub fn two_too_many(asked: &Asked<'_>) -> Option<Refused> {
    let message = "Rate limit reached for gpt-4.1 in organization org-1 on tokens per min (TPM): Limit 30000, Used \
                   29813, Requested 519. Please try again in 664ms.";
    let error = json!({ "message": message, "type": "tokens", "param": null, "code": "rate_limit_exceeded" });
    (asked.earlier < 2).then(|| Refused { retry_after: Some("1"), ..Refused::new(429, json!({ "error": error })) })
}

/// The first two requests find Anthropic overloaded.
pub fn twice_overloaded(asked: &Asked<'_>) -> Option<Refused> {
    let error = json!({ "type": "overloaded_error", "message": "Overloaded" });
    let body = json!({ "type": "error", "error": error });
    (asked.earlier < 2).then(|| Refused { retry_after: Some("1"), ..Refused::new(529, body) })
}

/// After one reply the account has no credit any more.
pub fn out_of_credit(asked: &Asked<'_>) -> Option<Refused> {
    let message = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or \
                   purchase credits.";
    let error = json!({ "type": "invalid_request_error", "message": message });
    (asked.earlier > 0).then(|| Refused::new(400, json!({ "type": "error", "error": error })))
}
