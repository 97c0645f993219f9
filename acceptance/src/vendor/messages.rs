//! Anthropic's messages: requests as the script reads them, and its replies as events.

use crate::model::Reply;
use serde_json::{Value, json};

/// The tool that takes a reply, where one has to follow a schema.
const REPLY: &str = "reply";

/// The request in the form of chat completions.
pub(super) fn as_chat(body: &Value) -> Value {
    let messages = body["messages"].as_array().into_iter().flatten().map(|message| {
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let texts: Vec<_> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let result = blocks.iter().any(|block| block["type"] == "tool_result");
        let role = if result { &json!("tool") } else { &message["role"] };
        json!({ "role": role, "content": message["content"].as_str().map_or_else(|| texts.concat(), str::to_owned) })
    });
    let tools = tools(body).filter(|tool| tool["name"] != REPLY).map(
        |tool| json!({ "type": "function", "function": { "name": tool["name"], "parameters": tool["input_schema"] } }),
    );
    let (messages, tools): (Vec<_>, Vec<_>) = (messages.collect(), tools.collect());
    let taken = tools_named_reply(body).map(|tool| tool["input_schema"].clone());
    let schema = taken.unwrap_or_else(|| body["output_config"]["format"]["schema"].clone());
    json!({ "messages": messages, "tools": tools, "response_format": { "json_schema": { "schema": schema } } })
}

/// The reply as a stream of events.
pub(super) fn events(reply: &Reply, body: &Value) -> String {
    let block = match reply {
        // What has to follow a schema is given to the tool that takes it.
        Reply::Text(text) => match (tools_named_reply(body), serde_json::from_str(text)) {
            (Some(_), Ok(input)) => call(REPLY, &input),
            (Some(_) | None, _) => json!({ "type": "text", "text": text }),
        },
        Reply::Call { tool, arguments } => call(tool, arguments),
    };
    let called = block["type"] == "tool_use";
    let (begun, delta) = if called {
        let begun = json!({ "type": "tool_use", "id": block["id"], "name": block["name"], "input": {} });
        (begun, json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() }))
    } else {
        (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": block["text"] }))
    };
    let usage = json!({ "input_tokens": 10, "output_tokens": 5 });
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [],
        "stop_reason": null, "usage": usage });
    let stop = if called { "tool_use" } else { "end_turn" };
    let events = [
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": begun }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": stop }, "usage": { "output_tokens": 5 } }),
        json!({ "type": "message_stop" }),
    ];
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(event).collect()
}

fn call(tool: &str, input: &Value) -> Value {
    json!({ "type": "tool_use", "id": "toolu_1", "name": tool, "input": input })
}

fn tools(body: &Value) -> impl Iterator<Item = &Value> {
    body["tools"].as_array().into_iter().flatten()
}

fn tools_named_reply(body: &Value) -> Option<&Value> {
    tools(body).find(|tool| tool["name"] == REPLY)
}
