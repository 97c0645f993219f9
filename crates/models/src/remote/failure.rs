//! What went wrong with a call, in words that help and without the key.

use crate::provider::ProviderError;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::time::{Duration, SystemTime};
use trellis_domain::Timestamp;

/// How much of what a server says is repeated.
const LONGEST_WORDS: usize = 500;

/// A call that brought no reply.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: ProviderError,
    /// The provider's words, if it refused the request as such: another form of it may be taken.
    pub(crate) refusal: Option<Refusal>,
}

#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: Option<u16>,
    pub(crate) words: String,
    /// The member of the request that it is about, where the provider says so.
    pub(crate) parameter: Option<String>,
}

impl Refusal {
    /// Whether it is about this member of the request.
    pub(crate) fn names(&self, member: &str) -> bool {
        match &self.parameter {
            Some(parameter) => parameter.split(['.', '[']).next() == Some(member),
            None => self.words.contains(member),
        }
    }
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        Self { error, refusal: None }
    }
}

/// An error that a provider reports in the middle of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) words: String,
    /// Whether asking again may help.
    pub(crate) passing: bool,
    /// Whether a shorter request may help.
    pub(crate) too_long: bool,
    pub(crate) status: Option<u16>,
    pub(crate) parameter: Option<String>,
}

impl Fault {
    /// Something that no server should send.
    pub(crate) fn rubbish(words: impl Into<String>) -> Self {
        Self { words: words.into(), passing: true, too_long: false, status: None, parameter: None }
    }

    /// The error object of a provider: a text, or an object with message, type and code.
    pub(crate) fn reported(error: &Value) -> Self {
        let status = status_in(error);
        let words = words_in(error).unwrap_or_else(|| error.to_string());
        let kinds = [&error["type"], &error["code"]].map(|kind| kind.as_str().unwrap_or_default().to_lowercase());
        let lasting = kinds.iter().any(|kind| LASTING.contains(&kind.as_str()));
        let refused = status.is_some_and(|status| (400..500).contains(&status) && !PASSING.contains(&status));
        let too_long = status == Some(TOO_LARGE) || is_about_the_length(&words, &kinds);
        let parameter = parameter_in(error);
        Self { words, passing: !lasting && !refused && !too_long, too_long, status, parameter }
    }
}

/// What asking again does not change, as providers call it.
const LASTING: [&str; 12] = [
    "invalid_request_error",
    "invalid_prompt",
    "badrequesterror",
    "authentication_error",
    "permission_error",
    "not_found_error",
    "request_too_large",
    "billing_error",
    "insufficient_quota",
    "billing_hard_limit_reached",
    "context_length_exceeded",
    "content_policy_violation",
];
/// Codes that tell of a sampled failure, and not of the request.
const CHANCE: [&str; 2] = ["json_validate_failed", "tool_use_failed"];
/// Time-outs, conflicts and too many requests: the statuses below 500 that pass.
const PASSING: [u16; 4] = [408, 409, 425, 429];

/// Too many requests, and overload as Anthropic calls it.
const BUSY: [u16; 2] = [429, 529];

/// The status of a request with a body that is too large.
const TOO_LARGE: u16 = 413;

/// Whether the model cannot read so much. Each provider has its own words for it.
fn is_about_the_length(words: &str, kinds: &[String]) -> bool {
    const KINDS: [&str; 4] =
        ["context_length_exceeded", "exceed_context_size_error", "request_too_large", "string_above_max_length"];
    const WORDS: [&str; 15] = [
        "context length",
        "context window",
        "context size",
        "context limit",
        "maximum context",
        "prompt is too long",
        "input is too long",
        "prompt too long",
        "too many tokens",
        "reduce the length",
        "maximum number of tokens",
        "input token count",
        "tokens must be <=",
        "tokens` must be <=",
        "exceeds the maximum number of input tokens",
    ];
    let words = words.to_lowercase();
    kinds.iter().any(|kind| KINDS.contains(&kind.as_str())) || WORDS.iter().any(|known| words.contains(known))
}

/// Whether there would be room for the prompt, and not for it and the reply together.
pub(super) fn is_about_the_reply(error: &ProviderError) -> bool {
    const WORDS: [&str; 4] = ["max_tokens", "max_completion_tokens", "max_new_tokens", "in the completion"];
    let ProviderError::TooLong { reason } = error else { return false };
    WORDS.iter().any(|word| reason.contains(word))
}

/// The member of the request that an error names.
fn parameter_in(error: &Value) -> Option<String> {
    error["param"].as_str().filter(|name| !name.is_empty()).map(str::to_owned)
}

fn status_in(error: &Value) -> Option<u16> {
    let number = [&error["code"], &error["status"], &error["status_code"]]
        .into_iter()
        .find_map(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
    number.and_then(|number| u16::try_from(number).ok()).filter(|status| (100..600).contains(status))
}

/// What the body of an error says.
pub(super) struct ErrorBody {
    pub(super) words: String,
    /// Asking again does not help, whatever the status says.
    lasting: bool,
    too_long: bool,
    /// The model wrote something that the provider itself could not use. The next time it may not.
    chance: bool,
    parameter: Option<String>,
}

impl ErrorBody {
    pub(super) fn read(body: &str) -> Self {
        let value: Value = serde_json::from_str(body).unwrap_or_default();
        // Some put the error into a list.
        let value = value.get(0).cloned().unwrap_or(value);
        let error = if value["error"].is_null() { &value } else { &value["error"] };
        let kinds = [&error["code"], &error["type"]].map(|kind| kind.as_str().unwrap_or_default().to_lowercase());
        let words = words_in(&value).unwrap_or_else(|| raw_words(body));
        let too_long = is_about_the_length(&words, &kinds);
        let parameter = parameter_in(error);
        let (lasting, chance) = (LASTING.contains(&kinds[0].as_str()), CHANCE.contains(&kinds[0].as_str()));
        Self { words, lasting, too_long, chance, parameter }
    }
}

/// The error of an answer whose status says that it is one.
pub(super) fn of_status(name: &str, status: StatusCode, body: ErrorBody, retry_after: Option<Duration>) -> Failure {
    let ErrorBody { words, lasting, too_long, chance, parameter } = body;
    let colon = if words.is_empty() { "" } else { ": " };
    let reason = format!("{name} answered {status}{colon}{words}");
    let code = status.as_u16();
    if code == TOO_LARGE || too_long && matches!(code, 400 | 422 | 500) {
        return ProviderError::TooLong { reason }.into();
    }
    if chance {
        return ProviderError::Transient { reason, retry_after }.into();
    }
    let passing = (PASSING.contains(&code) || status.is_server_error() && code != 501) && !lasting;
    let error = if passing && BUSY.contains(&code) {
        ProviderError::Busy { reason, retry_after }
    } else if passing {
        ProviderError::Transient { reason, retry_after }
    } else {
        ProviderError::Permanent { reason }
    };
    let may_mean_the_form = matches!(code, 400 | 404 | 422 | 500 | 501);
    Failure { error, refusal: may_mean_the_form.then_some(Refusal { status: Some(code), words, parameter }) }
}

/// What a provider's JSON says is wrong: each has its own place for it.
fn words_in(value: &Value) -> Option<String> {
    let error = if value["error"].is_null() { value } else { &value["error"] };
    let said = [error, &error["message"], &error["detail"], &error["msg"]].into_iter().find_map(Value::as_str);
    let said = said.map(str::to_owned).or_else(|| {
        let detail = &error["detail"];
        (detail.is_array() || detail.is_object()).then(|| detail.to_string())
    })?;
    // A router repeats what the server behind it said.
    let behind = error["metadata"]["raw"].as_str().map(|raw| format!(" ({raw})")).unwrap_or_default();
    Some(format!("{said}{behind}"))
}

fn raw_words(body: &str) -> String {
    if body.trim_start().starts_with('<') { "a web page".to_owned() } else { body.to_owned() }
}

/// One line of bounded length.
pub(super) fn tidy(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_WORDS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// How long the provider asks to be left alone: milliseconds, seconds or a date.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
    if let Some(pause) = text("retry-after-ms").and_then(|ms| Some(Duration::from_millis(ms.parse().ok()?))) {
        return Some(pause);
    }
    let wish = text("retry-after")?;
    seconds(wish).or_else(|| {
        let date = httpdate::parse_http_date(wish).ok()?;
        let micros = date.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_micros();
        let date = Timestamp::from_micros(i64::try_from(micros).ok()?);
        Some(Duration::from_millis(date.ms_since(now)))
    })
}

/// Whether a refusal is about the schema that the reply was to follow.
pub(crate) fn is_about_the_schema(refusal: &Refusal) -> bool {
    const WORDS: [&str; 15] = [
        "response_format",
        "json_schema",
        "schema",
        "schemas",
        "input_schema",
        "format",
        "structured",
        "grammar",
        "strict",
        "tool",
        "tools",
        "tool_choice",
        "tool_use",
        "function",
        "guided_json",
    ];
    /// A failure inside the server may be anything; these words are said where a schema could not be compiled.
    const INTERNAL: [&str; 3] = ["grammar", "schema", "json_schema"];
    if let Some(parameter) = &refusal.parameter {
        let member = parameter.split(['.', '[']).next().unwrap_or_default();
        return WORDS.contains(&member) || ["text", "functions", "output_config", "output_format"].contains(&member);
    }
    let known: &[&str] = if refusal.status == Some(500) { &INTERNAL } else { &WORDS };
    let words = refusal.words.to_lowercase();
    let mut said = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    said.any(|word| known.contains(&word)) || words.contains("requested parameters")
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
