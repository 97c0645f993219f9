//! OpenAI's Responses API, in which reasoning models think before they call functions. Nothing is kept at OpenAI: what a
//! model thought comes back encrypted and is sent again with the conversation.

use super::openai::name_of;
use super::{arguments, json_of, name, note_unrecognised, signature_by, signed, spoken, words};
use crate::conversation::CallIds;
use crate::functions::sent_schema;
use crate::provider::ModelRequest;
use crate::remote::{
    Dialect, EFFORT, FORCES, Fault, Framing, LeftOut, MemberName, ONE_CALL, Said, Sampling, SchemaEnforcement, Stop,
    TEMPERATURE, THOUGHTS, TOP_P, Understood,
};
use serde_json::{Value, json};
use trellis_domain::parts::{CallPiece, ChatTurn, ReplyPart};
use trellis_patterns::react::functions::Function;

/// Who encrypts thoughts.
const SIGNED: &str = "openai";

/// How refusals name what can be left out.
const NAMES: [MemberName; 8] = [
    ("tool_choice", FORCES),
    ("parallel_tool_calls", ONE_CALL),
    ("temperature", TEMPERATURE),
    ("top_p", TOP_P),
    ("reasoning", EFFORT),
    ("include", THOUGHTS),
    ("ncrypted content", THOUGHTS),
    ("encrypted_content", THOUGHTS),
];

#[derive(Debug)]
pub(crate) struct Responses;

impl Dialect for Responses {
    const FRAMING: Framing = Framing::Events;

    fn body(
        &self,
        model: &str,
        request: &ModelRequest,
        enforcement: &SchemaEnforcement<'_>,
        left_out: LeftOut,
    ) -> Value {
        let mut body = json!({ "model": model, "input": input(request, left_out), "stream": true, "store": false });
        if !request.system.is_empty() {
            body["instructions"] = json!(request.system);
        }
        if left_out.sends(THOUGHTS) {
            body["include"] = json!(["reasoning.encrypted_content"]);
        }
        let format = |schema: &Value, strict: bool| {
            let name = name_of(&request.prompt);
            json!({ "format": { "type": "json_schema", "name": name, "schema": schema, "strict": strict } })
        };
        match enforcement {
            SchemaEnforcement::Free | SchemaEnforcement::Json => {}
            SchemaEnforcement::Guided(schema) => body["text"] = format(schema, false),
            SchemaEnforcement::Strict(schema) => body["text"] = format(schema, true),
            SchemaEnforcement::Functions { functions, strict } => {
                body["tools"] = functions.iter().map(|function| tool(function, *strict)).collect();
                if left_out.sends(FORCES) {
                    body["tool_choice"] = json!("required");
                }
                if left_out.sends(ONE_CALL) {
                    body["parallel_tool_calls"] = json!(false);
                }
            }
        }
        body
    }

    fn sample(&self, body: &mut Value, sampling: &Sampling, left_out: LeftOut) {
        super::sample(body, sampling, "max_output_tokens", left_out);
        if let Some(effort) = sampling.reasoning_effort.as_ref().filter(|_| left_out.sends(EFFORT)) {
            body["reasoning"] = json!({ "effort": effort });
        }
    }

    /// What a model thinks counts, too.
    fn usual_tokens(&self) -> Option<u32> {
        Some(16_384)
    }

    fn read(&self, message: &str, understood: &mut Understood) -> Result<Vec<Said>, Fault> {
        if message.trim() == "[DONE]" {
            understood.over = true;
            return Ok(Vec::new());
        }
        let value = json_of(message)?;
        let place = value["output_index"].as_u64().unwrap_or(0);
        let delta = words(&value["delta"]);
        Ok(match value["type"].as_str() {
            Some("response.output_text.delta") => delta.map(Said::Text).into_iter().collect(),
            Some("response.refusal.delta") => {
                understood.unenforced |= delta.is_some();
                delta.map(Said::Refusal).into_iter().collect()
            }
            Some("response.reasoning_summary_text.delta" | "response.reasoning_text.delta") => {
                delta.map(Said::Thought).into_iter().collect()
            }
            Some("response.function_call_arguments.delta") => {
                let arguments = delta.unwrap_or_default();
                vec![Said::Call(CallPiece { place, arguments, ..CallPiece::default() })]
            }
            Some("response.output_item.added") => begun(place, &value["item"]).into_iter().collect(),
            Some("response.output_item.done") => kept_thought(&value["item"]).into_iter().collect(),
            Some("response.completed" | "response.incomplete") => {
                end(&value["response"], understood);
                Vec::new()
            }
            Some("response.failed") => return Err(Fault::reported(&value["response"]["error"])),
            Some("error") if value["error"].is_object() => return Err(Fault::reported(&value["error"])),
            Some("error") => return Err(Fault::reported(&value)),
            // There are many more, and what they say is said by these as well.
            Some(other) if other.starts_with("response.") => Vec::new(),
            _ if value["object"] == "response" => whole(&value, understood)?,
            _ if !value["error"].is_null() => return Err(Fault::reported(&value["error"])),
            _ => {
                note_unrecognised(&value, understood);
                Vec::new()
            }
        })
    }

    fn members(&self) -> &'static [MemberName] {
        &NAMES
    }
}

/// The prompt and what was said after it, as items.
fn input(request: &ModelRequest, left_out: LeftOut) -> Vec<Value> {
    let mut ids = CallIds::default();
    let (mut user, mut turns) = (request.user.to_string(), request.turns.as_slice());
    // Models take turns: what the user's side adds to the prompt is a part of it.
    if let [ChatTurn::User { text }, rest @ ..] = turns {
        (user, turns) = (format!("{user}\n\n{}", text.text()), rest);
    }
    let mut items = vec![json!({ "role": "user", "content": user })];
    for turn in turns {
        match turn {
            ChatTurn::User { text } => items.push(json!({ "role": "user", "content": text.text() })),
            ChatTurn::Assistant { parts } => {
                items.extend(parts.iter().filter_map(|part| said_before(part, &mut ids, left_out)));
            }
            ChatTurn::ToolResult { call, text, .. } => {
                let id = ids.of_result(call.as_ref());
                items.push(json!({ "type": "function_call_output", "call_id": id, "output": text.text() }));
            }
        }
    }
    items
}

/// A part of an earlier reply.
fn said_before(part: &ReplyPart, ids: &mut CallIds, left_out: LeftOut) -> Option<Value> {
    match part {
        ReplyPart::Text { .. } | ReplyPart::Refusal { .. } => {
            let said = spoken(std::slice::from_ref(part));
            (!said.is_empty()).then(|| json!({ "role": "assistant", "content": said }))
        }
        ReplyPart::Call { id, function, arguments } => {
            let id = ids.of_call(id.as_ref());
            let arguments = arguments.text();
            Some(json!({ "type": "function_call", "call_id": id, "name": function, "arguments": arguments }))
        }
        ReplyPart::Thought { text, signature } => {
            let kept = signature_by(SIGNED, signature.as_ref()).filter(|_| left_out.sends(THOUGHTS))?;
            let (id, encrypted) = kept.split_once(':')?;
            let summary = Some(text.text()).filter(|text| !text.is_empty());
            let summary: Vec<_> =
                summary.map(|text| json!({ "type": "summary_text", "text": text })).into_iter().collect();
            Some(json!({ "type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted }))
        }
    }
}

/// A function, strict where that is wanted and possible. What is not said here counts as strict.
fn tool(function: &Function, strict: bool) -> Value {
    let (parameters, strict) = sent_schema(function, strict);
    let (kind, name, description) = ("function", &function.name, function.description());
    json!({ "type": kind, "name": name, "description": description, "parameters": parameters, "strict": strict })
}

/// A call of which the arguments follow.
fn begun(place: u64, item: &Value) -> Option<Said> {
    (item["type"] == "function_call").then(|| {
        let (id, function) = (name(&item["call_id"]), name(&item["name"]));
        Said::Call(CallPiece { place, id, function, arguments: String::new() })
    })
}

/// What is sent back of a thought. Only the finished item holds all of it.
fn kept_thought(item: &Value) -> Option<Said> {
    let (id, encrypted) = (words(&item["id"])?, words(&item["encrypted_content"])?);
    (item["type"] == "reasoning").then(|| signed(SIGNED, &format!("{id}:{encrypted}")))
}

/// What is known at the end.
fn end(response: &Value, understood: &mut Understood) {
    understood.over = true;
    understood.model = words(&response["model"]).or(understood.model.take());
    let usage = &response["usage"];
    understood.in_token = usage["input_tokens"].as_u64().or(understood.in_token);
    understood.out_token = usage["output_tokens"].as_u64().or(understood.out_token);
    let (read, details) = (&usage["input_tokens_details"], &mut understood.details);
    details.cached = read["cached_tokens"].as_u64().or(details.cached);
    details.cache_written = read["cache_write_tokens"].as_u64().or(details.cache_written);
    details.reasoning = usage["output_tokens_details"]["reasoning_tokens"].as_u64().or(details.reasoning);
    let has_called = response["output"].as_array().into_iter().flatten().any(|item| item["type"] == "function_call");
    understood.stop = Some(match response["incomplete_details"]["reason"].as_str() {
        Some("content_filter") => Stop::Withheld,
        Some("max_output_tokens") => Stop::Length,
        Some(_) | None if response["status"] == "incomplete" => Stop::Length,
        Some(_) | None if has_called => Stop::Calls,
        Some(_) | None => Stop::Finished,
    });
}

/// A reply that was not streamed.
fn whole(response: &Value, understood: &mut Understood) -> Result<Vec<Said>, Fault> {
    if !response["error"].is_null() {
        return Err(Fault::reported(&response["error"]));
    }
    end(response, understood);
    let mut said = Vec::new();
    for (item, place) in response["output"].as_array().into_iter().flatten().zip(0..) {
        match item["type"].as_str() {
            Some("message") => {
                for part in item["content"].as_array().into_iter().flatten() {
                    said.extend(words(&part["text"]).map(Said::Text));
                    let refused = words(&part["refusal"]);
                    understood.unenforced |= refused.is_some();
                    said.extend(refused.map(Said::Refusal));
                }
            }
            Some("function_call") => {
                let (id, function) = (name(&item["call_id"]), name(&item["name"]));
                said.push(Said::Call(CallPiece { place, id, function, arguments: arguments(&item["arguments"]) }));
            }
            Some("reasoning") => {
                let summary = item["summary"].as_array().into_iter().flatten();
                said.extend(summary.filter_map(|part| words(&part["text"])).map(Said::Thought));
                said.extend(kept_thought(item));
            }
            Some(_) | None => {}
        }
    }
    Ok(said)
}

#[cfg(test)]
#[path = "responses_tests.rs"]
mod tests;
