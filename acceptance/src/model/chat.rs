//! Replies as OpenAI's chat completions write them, whole or in chunks.

use super::MODEL;
use super::script::Reply;
use serde_json::{Value, json};

/// Letters per chunk of a stream, at least.
const PIECE: usize = 12;
/// Chunks of a stream, about at most: a long text must not take long.
const PIECES: usize = 40;

/// What a reply cost, counted roughly.
pub(crate) fn usage(asked: &str, reply: &Reply) -> Value {
    let rough = |text: &str| text.len().div_ceil(4);
    let said = match reply {
        Reply::Text(text) => rough(text),
        Reply::Call { arguments, .. } => rough(&arguments.to_string()),
    };
    let heard = rough(asked);
    json!({ "prompt_tokens": heard, "completion_tokens": said, "total_tokens": heard + said })
}

/// The reply to a request that does not stream.
pub(crate) fn whole(reply: &Reply, usage: Value) -> Value {
    let message = match reply {
        Reply::Text(text) => json!({ "role": "assistant", "content": text, "refusal": null }),
        Reply::Call { tool, arguments } => {
            let call = call(tool, &arguments.to_string());
            json!({ "role": "assistant", "content": null, "refusal": null, "tool_calls": [call] })
        }
    };
    let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": finish(reply) });
    let mut body = envelope("chat.completion", vec![choice]);
    body["usage"] = usage;
    body
}

/// The data of each event of a stream, the closing mark included.
pub(crate) fn chunks(reply: &Reply, usage: Option<Value>) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish });
        envelope("chat.completion.chunk", vec![choice])
    };
    let mut chunks = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
    match reply {
        Reply::Text(text) => {
            chunks.extend(pieces(text).map(|piece| chunk(json!({ "content": piece }), Value::Null)));
        }
        Reply::Call { tool, arguments } => {
            let mut begin = call(tool, "");
            begin["index"] = json!(0);
            chunks.push(chunk(json!({ "tool_calls": [begin] }), Value::Null));
            chunks.extend(pieces(&arguments.to_string()).map(|piece| {
                let more = json!({ "index": 0, "function": { "arguments": piece } });
                chunk(json!({ "tool_calls": [more] }), Value::Null)
            }));
        }
    }
    chunks.push(chunk(json!({}), json!(finish(reply))));
    if let Some(usage) = usage {
        let mut last = envelope("chat.completion.chunk", Vec::new());
        last["usage"] = usage;
        chunks.push(last);
    }
    chunks.iter().map(Value::to_string).chain(["[DONE]".to_owned()]).collect()
}

fn envelope(object: &str, choices: Vec<Value>) -> Value {
    json!({ "id": "chatcmpl-scripted", "object": object, "created": 0, "model": MODEL, "choices": choices })
}

fn call(tool: &str, arguments: &str) -> Value {
    json!({ "id": "call_1", "type": "function", "function": { "name": tool, "arguments": arguments } })
}

fn finish(reply: &Reply) -> &'static str {
    match reply {
        Reply::Text(_) => "stop",
        Reply::Call { .. } => "tool_calls",
    }
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(PIECE.max(letters.len() / PIECES)).map(String::from_iter).collect::<Vec<_>>().into_iter()
}
