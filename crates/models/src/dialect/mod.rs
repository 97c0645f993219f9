//! How each provider wants to be asked and how it replies. Pure: bytes and time are the business of `remote`.

mod anthropic;
mod bedrock;
mod gemini;
mod kind;
mod ollama;
mod openai;
mod quirks;
mod responses;

pub(crate) use anthropic::Anthropic;
pub(crate) use bedrock::Bedrock;
pub(crate) use gemini::Gemini;
pub use kind::DialectKind;
pub(crate) use ollama::Ollama;
pub(crate) use openai::OpenAi;
pub(crate) use quirks::{NO_QUIRKS, Quirks, caching};
pub(crate) use responses::Responses;

use crate::conversation::CallIds;
use crate::functions::sent_schema;
use crate::provider::ModelRequest;
use crate::remote::{Fault, LeftOut, Said, Sampling, TEMPERATURE, TOP_P, Understood};
use serde_json::{Value, json};
use trellis_domain::document::Payload;
use trellis_domain::parts::{ChatTurn, ReplyPart};
use trellis_patterns::react::functions::{Function, Functions};

/// A message of a stream as JSON.
fn json_of(message: &str) -> Result<Value, Fault> {
    // Whole: it is shortened when it is shown, after keys were taken out.
    let rubbish = |_| Fault::rubbish(format!("it sent something that is not JSON: {message}"));
    serde_json::from_str(message).or_else(|_| serde_json::from_str(&without_halves(message)).map_err(rubbish))
}

/// Servers that cut their text in the middle of a character send its halves, which no text can hold.
fn without_halves(message: &str) -> String {
    let mut whole = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('\\') {
        whole.push_str(before);
        let unit = |at: usize| u16::from_str_radix(after.get(at..at + 4)?, 16).ok();
        let first = after.starts_with('u').then(|| unit(1)).flatten();
        let second = after.get(5..7).filter(|escape| *escape == "\\u").and_then(|_| unit(7));
        let length = match (first, second) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 11,
            (Some(0xd800..=0xdfff), _) => {
                whole.push('\u{fffd}');
                rest = &after[5..];
                continue;
            }
            (Some(_), _) => 5,
            // Whatever is escaped is no backslash that begins something.
            (None, _) => after.chars().next().map_or(0, char::len_utf8),
        };
        whole.push('\\');
        whole.push_str(&after[..length]);
        rest = &after[length..];
    }
    whole + rest
}

/// Standing instructions, if any, and the prompt.
fn chat(request: &ModelRequest) -> Vec<Value> {
    let system = (!request.system.is_empty()).then(|| json!({ "role": "system", "content": request.system }));
    system.into_iter().chain([json!({ "role": "user", "content": request.user })]).collect()
}

/// How a provider writes what was called and what came of it.
trait Calls {
    fn call(&self, id: String, function: &str, arguments: &str) -> Value;
    fn result(&self, id: String, function: &str, text: &str) -> Value;
}

/// The prompt and what was said after it, in the form that most providers share.
fn conversation(mut messages: Vec<Value>, mut turns: &[ChatTurn], calls: &dyn Calls) -> Vec<Value> {
    // Models take turns: what the user's side adds to the prompt is a part of it.
    if let ([ChatTurn::User { text }, rest @ ..], Some(prompt)) = (turns, messages.last_mut()) {
        prompt["content"] = format!("{}\n\n{}", prompt["content"].as_str().unwrap_or_default(), text.text()).into();
        turns = rest;
    }
    let mut ids = CallIds::of_nine();
    let mut message = |turn: &ChatTurn| match turn {
        ChatTurn::User { text } => json!({ "role": "user", "content": text.text() }),
        ChatTurn::Assistant { parts } => {
            let called = parts.iter().filter_map(|part| match part {
                ReplyPart::Call { id, function, arguments } => {
                    Some(calls.call(ids.of_call(id.as_ref()), function, arguments.text()))
                }
                ReplyPart::Thought { .. } | ReplyPart::Text { .. } | ReplyPart::Refusal { .. } => None,
            });
            let called: Vec<_> = called.collect();
            let mut message = json!({ "role": "assistant", "content": spoken(parts) });
            if !called.is_empty() {
                message["tool_calls"] = json!(called);
            }
            message
        }
        ChatTurn::ToolResult { call, function, text, .. } => {
            calls.result(ids.of_result(call.as_ref()), function, text.text())
        }
    };
    messages.extend(turns.iter().map(&mut message));
    messages
}

/// What was said in words.
fn spoken(parts: &[ReplyPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        ReplyPart::Text { text } | ReplyPart::Refusal { text } => Some(text.text()),
        ReplyPart::Thought { .. } | ReplyPart::Call { .. } => None,
    });
    texts.collect()
}

/// Arguments as JSON; nothing if they were none.
fn object(arguments: &str) -> Value {
    serde_json::from_str(arguments).ok().filter(Value::is_object).unwrap_or_else(|| json!({}))
}

/// Functions as OpenAI describes them, strict where that is wanted and possible.
fn functions(functions: &Functions, strict: bool) -> Value {
    let function = |function: &Function| {
        let (parameters, is_strict) = sent_schema(function, strict);
        let (name, description) = (&function.name, function.description());
        let mut described = json!({ "name": name, "description": description, "parameters": parameters });
        if is_strict {
            described["strict"] = json!(true);
        }
        json!({ "type": "function", "function": described })
    };
    functions.iter().map(function).collect()
}

/// What is set, under the names that most providers have for it.
fn sample(place: &mut Value, sampling: &Sampling, max_tokens: &str, left_out: LeftOut) {
    let Sampling { temperature, top_p, max_tokens: most, .. } = sampling;
    let temperature = temperature.filter(|_| left_out.sends(TEMPERATURE)).map(Value::from);
    let top_p = top_p.filter(|_| left_out.sends(TOP_P)).map(Value::from);
    let set = [("temperature", temperature), ("top_p", top_p)];
    for (name, value) in set.into_iter().chain([(max_tokens, most.map(Value::from))]) {
        if let Some(value) = value {
            place[name] = value;
        }
    }
}

/// The arguments of a call: JSON in a text, or as it is.
fn arguments(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// A text that says something.
fn words(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// What a provider wants back with a thought, under the name of whoever can read it: no other provider takes it.
fn signed(by: &str, signature: &str) -> Said {
    Said::Signature(format!("{by}:{signature}"))
}

/// What this provider gave with a thought, as it gave it.
fn signature_by<'s>(by: &str, signature: Option<&'s Payload>) -> Option<&'s str> {
    signature?.text().strip_prefix(by)?.strip_prefix(':')
}

/// The longest name or id of a call that is kept: no function has a longer one.
const LONGEST_NAME: usize = 256;

/// The name or id of a call.
fn name(value: &Value) -> Option<String> {
    words(value).map(|name| name[..name.floor_char_boundary(LONGEST_NAME)].to_owned())
}

/// Notes the first message that is none of those we know.
fn note_unrecognised(value: &Value, understood: &mut Understood) {
    understood.unrecognised.get_or_insert_with(|| value.to_string());
}

#[cfg(test)]
mod tests;
