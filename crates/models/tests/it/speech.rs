//! Replies in the words of each provider.

use crate::stub::{Script, Seen, stream};
use serde_json::{Value, json};

/// The messages of a reply in these pieces, as they are sent.
pub(crate) fn reply(provider: &str, pieces: &[&str]) -> Vec<String> {
    match provider {
        "openai" => openai(pieces),
        "anthropic" => anthropic(pieces, "text"),
        "ollama" => ollama(pieces),
        other => panic!("{other}"),
    }
}

/// The same under a schema, which makes a difference for some.
pub(crate) fn held_reply(provider: &str, pieces: &[&str]) -> Vec<String> {
    if provider == "anthropic" { anthropic(pieces, "tool_use") } else { reply(provider, pieces) }
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn openai(pieces: &[&str]) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        event(&json!({ "id": "c", "object": "chat.completion.chunk", "model": "m-2026",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] }))
    };
    let usage = json!({ "id": "c", "choices": [], "usage": { "prompt_tokens": 11, "completion_tokens": 4 } });
    let mut messages = vec![": keep-alive\n\n".to_owned(), chunk(json!({ "role": "assistant" }), Value::Null)];
    messages.extend(pieces.iter().map(|piece| chunk(json!({ "content": piece }), Value::Null)));
    messages.extend([chunk(json!({}), json!("stop")), event(&usage), "data: [DONE]\n\n".to_owned()]);
    messages
}

fn anthropic(pieces: &[&str], block: &str) -> Vec<String> {
    let named = |value: Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap());
    let delta = |piece: &&str| match block {
        "text" => json!({ "type": "text_delta", "text": piece }),
        _ => json!({ "type": "input_json_delta", "partial_json": piece }),
    };
    let usage = json!({ "input_tokens": 11, "output_tokens": 1 });
    let mut messages = vec![
        named(json!({ "type": "message_start", "message": { "model": "m-2026", "usage": usage } })),
        named(json!({ "type": "content_block_start", "index": 0, "content_block": { "type": block, "input": {} } })),
        named(json!({ "type": "ping" })),
    ];
    messages.extend(
        pieces
            .iter()
            .map(delta)
            .map(|delta| named(json!({ "type": "content_block_delta", "index": 0, "delta": delta }))),
    );
    messages.extend([
        named(json!({ "type": "content_block_stop", "index": 0 })),
        named(
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 4 } }),
        ),
        named(json!({ "type": "message_stop" })),
    ]);
    messages
}

fn ollama(pieces: &[&str]) -> Vec<String> {
    let line = |value: Value| format!("{value}\n");
    let piece = |piece: &&str| {
        line(json!({ "model": "m-2026", "message": { "role": "assistant", "content": piece }, "done": false }))
    };
    let mut messages: Vec<_> = pieces.iter().map(piece).collect();
    messages.push(line(json!({ "model": "m-2026", "message": { "role": "assistant", "content": "" }, "done": true,
        "done_reason": "stop", "prompt_eval_count": 11, "eval_count": 4 })));
    messages
}

/// The messages of a call of this function, its arguments in these pieces.
pub(crate) fn call(provider: &str, function: &str, pieces: &[&str]) -> Vec<String> {
    match provider {
        "openai" => openai_call(function, pieces),
        "anthropic" => {
            let named = format!("\"type\":\"tool_use\",\"name\":\"{function}\"");
            let start = |message: String| message.replace("\"type\":\"tool_use\"", &named);
            anthropic(pieces, "tool_use").into_iter().map(start).collect()
        }
        "ollama" => {
            let arguments: Value = serde_json::from_str(&pieces.concat()).unwrap();
            let call = json!({ "function": { "name": function, "arguments": arguments } });
            let message = json!({ "role": "assistant", "content": "", "tool_calls": [call] });
            let mut messages = ollama(&[]);
            messages.insert(0, format!("{}\n", json!({ "model": "m-2026", "message": message, "done": false })));
            messages
        }
        other => panic!("{other}"),
    }
}

fn openai_call(function: &str, pieces: &[&str]) -> Vec<String> {
    let mut messages = openai(&[]);
    let delta = |call: Value| {
        let delta = json!({ "tool_calls": [call] });
        event(&json!({ "id": "c", "model": "m-2026", "choices": [{ "index": 0, "delta": delta }] }))
    };
    let begun = json!({ "index": 0, "id": "t", "type": "function", "function": { "name": function, "arguments": "" } });
    let piece = |piece: &&str| delta(json!({ "index": 0, "function": { "arguments": piece } }));
    let calls: Vec<_> = std::iter::once(delta(begun)).chain(pieces.iter().map(piece)).collect();
    let end = messages.len() - 3;
    messages.splice(end..end, calls);
    messages
}

/// What a model writes that can write nothing but what its schema allows, although it is asked for something else.
pub(crate) fn obedient(probe: &Seen) -> Script {
    let (function, arguments) = ("pick", "{\"thought\": \"it has to be\", \"number\": 7}");
    let path = probe.path.as_str();
    match path.rsplit(['/', ':']).next().unwrap_or_default() {
        "responses" => return crate::responses::thoughtful_call(function, arguments),
        "streamGenerateContent?alt=sse" => return crate::gemini::signed_call(function, arguments),
        "converse-stream" => return crate::bedrock::thoughtful_call(function, arguments),
        _ => {}
    }
    let provider = match path {
        "/v1/messages" => "anthropic",
        "/api/chat" => "ollama",
        _ => "openai",
    };
    let offers_functions = probe.body["tools"].as_array().is_some_and(|tools| tools.len() > 1);
    if offers_functions {
        return stream(call(provider, function, &[arguments]));
    }
    let said = ["{\"colour\": \"red\"}"];
    let by_tool = probe.body["tools"].is_array();
    stream(if by_tool { held_reply(provider, &said) } else { reply(provider, &said) })
}
