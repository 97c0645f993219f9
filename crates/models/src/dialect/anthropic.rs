//! Anthropic's messages. A schema becomes the input of a tool that the model must call; its input is the reply.

use super::{json_of, wonder_at, words};
use crate::provider::ModelRequest;
use crate::remote::{Dialect, Fault, Framing, Hold, Stop, Understood};
use serde_json::{Value, json};

/// The tool that takes the reply.
const TOOL: &str = "reply";

#[derive(Debug)]
pub(crate) struct Anthropic {
    /// The longest reply; this provider insists on one.
    pub(crate) max_tokens: u32,
}

impl Dialect for Anthropic {
    const NAME: &'static str = "anthropic";
    const FRAMING: Framing = Framing::Events;

    fn body(&self, model: &str, request: &ModelRequest, hold: &Hold<'_>) -> Value {
        let messages = [json!({ "role": "user", "content": request.user })];
        let mut body = json!({ "model": model, "max_tokens": self.max_tokens, "messages": messages, "stream": true });
        if !request.system.is_empty() {
            body["system"] = json!(request.system);
        }
        let description = "Takes the reply. Call it with the whole reply.";
        let mut tool = match hold {
            Hold::Free => return body,
            Hold::Guided(schema) => json!({ "name": TOOL, "description": description, "input_schema": schema }),
            Hold::Strict(schema) => json!({ "name": TOOL, "description": description, "input_schema": schema }),
        };
        if let Hold::Strict(_) = hold {
            tool["strict"] = json!(true);
        }
        body["tools"] = json!([tool]);
        body["tool_choice"] = json!({ "type": "tool", "name": TOOL });
        body
    }

    fn can_show(&self, schema: &Value) -> bool {
        schema["type"] == "object"
    }

    fn read(&self, message: &str, understood: &mut Understood) -> Result<Option<String>, Fault> {
        let value = json_of(message)?;
        match value["type"].as_str().unwrap_or_default() {
            "message_start" => {
                about(&value["message"], understood);
                Ok(None)
            }
            "content_block_start" => Ok(block(&value["content_block"], understood)),
            "content_block_delta" => Ok(piece(&value["delta"], understood)),
            "message_delta" => {
                count(&value["usage"], understood);
                understood.stop = stop(&value["delta"]["stop_reason"]).or(understood.stop);
                Ok(None)
            }
            "message_stop" => {
                understood.over = true;
                Ok(None)
            }
            "message" => {
                about(&value, understood);
                understood.stop = stop(&value["stop_reason"]);
                understood.over = true;
                let blocks = value["content"].as_array().into_iter().flatten();
                let text: String = blocks.filter_map(|content| block(content, understood)).collect();
                Ok((!text.is_empty()).then_some(text))
            }
            "error" => Err(Fault::reported(&value["error"])),
            "ping" | "content_block_stop" => Ok(None),
            // New kinds of events may be added at any time.
            _ => {
                wonder_at(&value, understood);
                Ok(None)
            }
        }
    }
}

fn about(message: &Value, understood: &mut Understood) {
    understood.model = words(&message["model"]).or(understood.model.take());
    count(&message["usage"], understood);
}

/// What was read from a cache was read all the same.
fn count(usage: &Value, understood: &mut Understood) {
    let read = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let read = read.iter().filter_map(|kind| usage[*kind].as_u64()).reduce(u64::saturating_add);
    // It is said at the start and again at the end, and some servers count only once.
    understood.in_token = understood.in_token.max(read);
    understood.out_token = usage["output_tokens"].as_u64().or(understood.out_token);
}

/// A whole block, or what is known of one at its start.
fn block(block: &Value, understood: &mut Understood) -> Option<String> {
    match block["type"].as_str().unwrap_or_default() {
        "text" => unheld(words(&block["text"]), understood),
        "tool_use" => {
            block["input"].as_object().filter(|input| !input.is_empty()).map(|input| json!(input).to_string())
        }
        // Thoughts are not the reply.
        _ => None,
    }
}

fn piece(delta: &Value, understood: &mut Understood) -> Option<String> {
    match delta["type"].as_str().unwrap_or_default() {
        "text_delta" => unheld(words(&delta["text"]), understood),
        "input_json_delta" => words(&delta["partial_json"]),
        _ => None,
    }
}

fn unheld(text: Option<String>, understood: &mut Understood) -> Option<String> {
    understood.unheld |= text.is_some();
    text
}

fn stop(reason: &Value) -> Option<Stop> {
    Some(match reason.as_str()? {
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Withheld,
        _ => Stop::Finished,
    })
}
