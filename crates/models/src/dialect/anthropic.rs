//! Anthropic's messages. A model that takes no schema for its reply gets a tool that it must call; the tool's input is the
//! reply then.

use super::{arguments, json_of, name, note_unrecognised, object, signature_by, signed, words};
use crate::conversation::CallIds;
use crate::functions::sent_schema;
use crate::provider::ModelRequest;
use crate::remote::{
    CACHE, Dialect, FORCES, FORMAT, Fault, Framing, LeftOut, MemberName, ONE_CALL, Said, Sampling, SchemaEnforcement,
    Stop, TEMPERATURE, THOUGHTS, TOP_P, Understood,
};
use serde_json::{Value, json};
use trellis_domain::parts::{CallPiece, ChatTurn, ReplyPart};
use trellis_patterns::react::functions::Function;

/// The tool that takes the reply.
const TOOL: &str = "reply";
/// Who signs thoughts, and whose thoughts are encrypted as a whole.
const SIGNED: &str = "anthropic";
const REDACTED: &str = "anthropic-redacted";

#[derive(Debug)]
pub(crate) struct Anthropic {
    /// The longest reply, if it was set for this provider alone.
    pub(crate) max_tokens: Option<u32>,
}

/// How refusals name what can be left out.
const NAMES: [MemberName; 10] = [
    ("output_config", FORMAT),
    ("output_format", FORMAT),
    ("output format", FORMAT),
    ("disable_parallel_tool_use", ONE_CALL),
    ("tool_choice", FORCES),
    ("temperature", TEMPERATURE),
    ("top_p", TOP_P),
    ("cache_control", CACHE),
    ("`signature`", THOUGHTS),
    ("blocks in the latest assistant message cannot be modified", THOUGHTS),
];

/// This provider insists on a limit.
const USUAL_TOKENS: u32 = 8192;

impl Dialect for Anthropic {
    const FRAMING: Framing = Framing::Events;

    fn body(
        &self,
        model: &str,
        request: &ModelRequest,
        enforcement: &SchemaEnforcement<'_>,
        left_out: LeftOut,
    ) -> Value {
        let mut messages = messages(request, left_out);
        // What was computed for a conversation is needed again for its next turn.
        if (request.tools.is_some() || !request.turns.is_empty()) && left_out.sends(CACHE) {
            mark_for_cache(&mut messages);
        }
        let mut body = json!({ "model": model, "max_tokens": USUAL_TOKENS, "messages": messages, "stream": true });
        if !request.system.is_empty() {
            body["system"] = json!(request.system);
        }
        let description = "Takes the reply. Call it with the whole reply.";
        let reply = json!({ "type": "tool", "name": TOOL });
        let (tools, choice) = match enforcement {
            SchemaEnforcement::Free | SchemaEnforcement::Json => return body,
            SchemaEnforcement::Strict(schema) if left_out.sends(FORMAT) => {
                body["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema } });
                return body;
            }
            SchemaEnforcement::Guided(schema) => (vec![tool(TOOL, description, schema, false)], reply),
            SchemaEnforcement::Strict(schema) => (vec![tool(TOOL, description, schema, true)], reply),
            SchemaEnforcement::Functions { functions, strict } => {
                let offered = |function: &Function| {
                    let (schema, is_closed) = sent_schema(function, *strict);
                    tool(&function.name, &function.description(), &schema, is_closed)
                };
                (functions.iter().map(offered).collect(), json!({ "type": "any" }))
            }
        };
        body["tools"] = json!(tools);
        body["tool_choice"] = if left_out.sends(FORCES) { choice } else { json!({ "type": "auto" }) };
        if matches!(enforcement, SchemaEnforcement::Functions { .. }) && left_out.sends(ONE_CALL) {
            body["tool_choice"]["disable_parallel_tool_use"] = json!(true);
        }
        body
    }

    fn sample(&self, body: &mut Value, sampling: &Sampling, left_out: LeftOut) {
        let max_tokens = self.max_tokens.or(sampling.max_tokens);
        super::sample(body, &Sampling { max_tokens, ..sampling.clone() }, "max_tokens", left_out);
        if let Some(effort) = sampling.reasoning_effort.as_ref().filter(|_| left_out.sends(FORMAT)) {
            body["output_config"]["effort"] = json!(effort);
        }
    }

    fn takes_parallel_calls(&self) -> bool {
        true
    }

    /// Each request has one.
    fn usual_tokens(&self) -> Option<u32> {
        None
    }

    fn members(&self) -> &'static [MemberName] {
        &NAMES
    }

    /// A tool that had to be called was. Whether a schema for the reply is overlooked shows in a probe.
    fn was_held(&self, understood: &Understood, left_out: LeftOut) -> bool {
        left_out.sends(FORMAT) || left_out.sends(FORCES) && !understood.unenforced
    }

    fn can_show(&self, schema: &Value) -> bool {
        schema["type"] == "object"
    }

    fn read(&self, message: &str, understood: &mut Understood) -> Result<Vec<Said>, Fault> {
        let value = json_of(message)?;
        match value["type"].as_str().unwrap_or_default() {
            "message_start" => {
                about(&value["message"], understood);
                Ok(Vec::new())
            }
            "content_block_start" => Ok(block(place(&value), &value["content_block"], understood)),
            "content_block_delta" => Ok(piece(place(&value), &value["delta"], understood)),
            "message_delta" => {
                count(&value["usage"], understood);
                understood.stop = stop(&value["delta"]["stop_reason"]).or(understood.stop);
                Ok(Vec::new())
            }
            "message_stop" => {
                understood.over = true;
                Ok(Vec::new())
            }
            "message" => {
                about(&value, understood);
                understood.stop = stop(&value["stop_reason"]);
                understood.over = true;
                let blocks = value["content"].as_array().into_iter().flatten().zip(0..);
                Ok(blocks.flat_map(|(content, place)| block(place, content, understood)).collect())
            }
            "error" => Err(Fault::reported(&value["error"])),
            "ping" | "content_block_stop" => Ok(Vec::new()),
            // New kinds of events may be added at any time.
            _ => {
                note_unrecognised(&value, understood);
                Ok(Vec::new())
            }
        }
    }
}

/// The prompt and what was said after it. Users and the model take turns: what follows from the same side is one message.
fn messages(request: &ModelRequest, left_out: LeftOut) -> Vec<Value> {
    let mut ids = CallIds::default();
    let mut messages: Vec<(&str, Vec<Value>)> = vec![("user", vec![text(&request.user.to_string())])];
    for turn in &request.turns {
        let (role, content) = match turn {
            ChatTurn::User { text: said } => ("user", vec![text(said.text())]),
            ChatTurn::Assistant { parts } => {
                ("assistant", parts.iter().filter_map(|part| said_before(part, &mut ids, left_out)).collect())
            }
            ChatTurn::ToolResult { call, text, is_error, .. } => {
                let id = ids.of_result(call.as_ref());
                let mut result = json!({ "type": "tool_result", "tool_use_id": id, "content": text.text() });
                if *is_error {
                    result["is_error"] = json!(true);
                }
                ("user", vec![result])
            }
        };
        match messages.last_mut() {
            Some((last, before)) if *last == role => before.extend(content),
            Some(_) | None => messages.push((role, content)),
        }
    }
    // A prompt alone is the shortest form there is.
    if let [(role, _)] = messages.as_slice() {
        return vec![json!({ "role": role, "content": request.user })];
    }
    messages.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

/// Asks to keep everything up to the end of the last message.
fn mark_for_cache(messages: &mut [Value]) {
    let Some(content) = messages.last_mut().map(|message| &mut message["content"]) else { return };
    if let Some(said) = content.as_str().map(text) {
        *content = json!([said]);
    }
    if let Some(last) = content.as_array_mut().and_then(|blocks| blocks.last_mut()) {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// A part of an earlier reply.
fn said_before(part: &ReplyPart, ids: &mut CallIds, left_out: LeftOut) -> Option<Value> {
    match part {
        ReplyPart::Text { text: said } | ReplyPart::Refusal { text: said } => {
            Some(said.text()).filter(|said| !said.trim().is_empty()).map(text)
        }
        ReplyPart::Call { id, function, arguments } => {
            let (id, input) = (ids.of_call(id.as_ref()), object(arguments.text()));
            Some(json!({ "type": "tool_use", "id": id, "name": function, "input": input }))
        }
        ReplyPart::Thought { .. } if !left_out.sends(THOUGHTS) => None,
        // It is only taken back unchanged, and with its signature.
        ReplyPart::Thought { text, signature } => {
            let thinking = |signature| json!({ "type": "thinking", "thinking": text.text(), "signature": signature });
            let redacted = |data| json!({ "type": "redacted_thinking", "data": data });
            let signature = signature.as_ref();
            signature_by(SIGNED, signature).map(thinking).or_else(|| signature_by(REDACTED, signature).map(redacted))
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
    let details = &mut understood.details;
    details.cached = usage["cache_read_input_tokens"].as_u64().or(details.cached);
    details.cache_written = usage["cache_creation_input_tokens"].as_u64().or(details.cache_written);
}

/// Which block an event is about.
fn place(event: &Value) -> u64 {
    event["index"].as_u64().unwrap_or(0)
}

fn tool(name: &str, description: &str, schema: &Value, strict: bool) -> Value {
    let mut tool = json!({ "name": name, "description": description, "input_schema": schema });
    if strict {
        tool["strict"] = json!(true);
    }
    tool
}

/// A whole block, or what is known of one at its start.
fn block(place: u64, block: &Value, understood: &mut Understood) -> Vec<Said> {
    match block["type"].as_str().unwrap_or_default() {
        "text" => unenforced(words(&block["text"]), understood),
        "tool_use" => {
            let input = block["input"].as_object().filter(|input| !input.is_empty());
            let arguments = input.map(|_| arguments(&block["input"])).unwrap_or_default();
            let (id, function) = (name(&block["id"]), name(&block["name"]));
            vec![Said::Call(CallPiece { place, id, function, arguments })]
        }
        "thinking" => {
            let thought = words(&block["thinking"]).map(Said::Thought);
            thought.into_iter().chain(words(&block["signature"]).map(|it| signed(SIGNED, &it))).collect()
        }
        "redacted_thinking" => words(&block["data"]).map(|data| signed(REDACTED, &data)).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn piece(place: u64, delta: &Value, understood: &mut Understood) -> Vec<Said> {
    match delta["type"].as_str().unwrap_or_default() {
        "text_delta" => unenforced(words(&delta["text"]), understood),
        "input_json_delta" => {
            let arguments = words(&delta["partial_json"]).unwrap_or_default();
            vec![Said::Call(CallPiece { place, arguments, ..CallPiece::default() })]
        }
        "thinking_delta" => words(&delta["thinking"]).map(Said::Thought).into_iter().collect(),
        "signature_delta" => words(&delta["signature"]).map(|it| signed(SIGNED, &it)).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn unenforced(text: Option<String>, understood: &mut Understood) -> Vec<Said> {
    understood.unenforced |= text.is_some();
    text.map(Said::Text).into_iter().collect()
}

fn stop(reason: &Value) -> Option<Stop> {
    Some(match reason.as_str()? {
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "refusal" => Stop::Withheld,
        "tool_use" => Stop::Calls,
        _ => Stop::Finished,
    })
}
