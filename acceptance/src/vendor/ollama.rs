//! Ollama's chat: requests as the script reads them, and its replies as lines.

use crate::model::Reply;
use serde_json::{Value, json};

/// The request in the form of chat completions.
pub(super) fn as_chat(body: &Value) -> Value {
    let format = json!({ "json_schema": { "schema": body["format"] } });
    json!({ "messages": body["messages"], "tools": body["tools"], "response_format": format })
}

/// The reply as JSON lines.
pub(super) fn lines(reply: &Reply, body: &Value) -> String {
    let message = match reply {
        Reply::Text(text) => json!({ "role": "assistant", "content": text }),
        Reply::Call { tool, arguments } => {
            let call = json!({ "function": { "name": tool, "arguments": arguments } });
            json!({ "role": "assistant", "content": "", "tool_calls": [call] })
        }
    };
    let said = json!({ "model": body["model"], "message": message, "done": false });
    let nothing = json!({ "role": "assistant", "content": "" });
    let end = json!({ "model": body["model"], "message": nothing, "done": true, "done_reason": "stop",
        "prompt_eval_count": 10, "eval_count": 5 });
    format!("{said}\n{end}\n")
}
