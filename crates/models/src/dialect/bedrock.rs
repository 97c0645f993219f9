//! Amazon Bedrock's Converse: one dialect for the models of many makers. A model that takes no schema for its reply gets
//! a tool that it must call; the tool's input is the reply then.

use super::openai::name_of;
use super::{caching, json_of, name, note_unrecognised, object, signature_by, signed, words};
use crate::conversation::CallIds;
use crate::functions::sent_schema;
use crate::provider::ModelRequest;
use crate::remote::{
    CACHE, Dialect, EFFORT, FORCES, FORMAT, Fault, Framing, LeftOut, MemberName, SYSTEM, Said, Sampling,
    SchemaEnforcement, Stop, TEMPERATURE, THOUGHTS, TOP_P, Understood,
};
use serde_json::{Value, json};
use trellis_domain::parts::{CallPiece, ChatTurn, ReplyPart};
use trellis_patterns::react::functions::Function;

/// The tool that takes the reply.
const TOOL: &str = "reply";
/// Who signs thoughts, and whose thoughts are encrypted as a whole.
const SIGNED: &str = "bedrock";
const REDACTED: &str = "bedrock-redacted";

/// How refusals name what can be left out.
const NAMES: [MemberName; 13] = [
    ("toolChoice", FORCES),
    ("tool_choice", FORCES),
    ("outputConfig", FORMAT),
    ("output_config", FORMAT),
    ("output format", FORMAT),
    ("ystem messages", SYSTEM),
    ("temperature", TEMPERATURE),
    ("topP", TOP_P),
    ("top_p", TOP_P),
    ("cachePoint", CACHE),
    ("prompt caching", CACHE),
    ("reasoning", THOUGHTS),
    ("effort", EFFORT),
];

#[derive(Debug)]
pub(crate) struct Bedrock;

impl Dialect for Bedrock {
    const FRAMING: Framing = Framing::AwsEvents;

    fn body(
        &self,
        model: &str,
        request: &ModelRequest,
        enforcement: &SchemaEnforcement<'_>,
        left_out: LeftOut,
    ) -> Value {
        // What was computed for a conversation is needed again for its next turn.
        let is_conversation = request.tools.is_some() || !request.turns.is_empty();
        let caching = caching(model).filter(|_| is_conversation && left_out.sends(CACHE));
        let mut messages = messages(request, left_out);
        if caching.is_some() {
            mark_for_cache(&mut messages);
        }
        let mut body = json!({ "messages": messages });
        if !request.system.is_empty() && left_out.sends(SYSTEM) {
            let text = json!({ "text": request.system });
            body["system"] = std::iter::once(text).chain(caching.map(|_| cache_point())).collect();
        }
        let description = "Takes the reply. Call it with the whole reply.";
        let reply = json!({ "tool": { "name": TOOL } });
        let (mut tools, choice) = match enforcement {
            SchemaEnforcement::Free | SchemaEnforcement::Json => return body,
            SchemaEnforcement::Strict(schema) if left_out.sends(FORMAT) => {
                // The schema is a text here.
                let schema = json!({ "name": name_of(&request.prompt), "schema": schema.to_string() });
                let format = json!({ "type": "json_schema", "structure": { "jsonSchema": schema } });
                body["outputConfig"] = json!({ "textFormat": format });
                return body;
            }
            SchemaEnforcement::Guided(schema) => (vec![tool(TOOL, description, schema, false)], reply),
            SchemaEnforcement::Strict(schema) => (vec![tool(TOOL, description, schema, true)], reply),
            SchemaEnforcement::Functions { functions, strict } => {
                let offered = |function: &Function| {
                    let (schema, is_closed) = sent_schema(function, *strict);
                    tool(&function.name, &function.description(), &schema, is_closed)
                };
                (functions.iter().map(offered).collect(), json!({ "any": {} }))
            }
        };
        tools.extend(caching.filter(|known| known.tools).map(|_| cache_point()));
        body["toolConfig"] = json!({ "tools": tools });
        if left_out.sends(FORCES) {
            body["toolConfig"]["toolChoice"] = choice;
        }
        body
    }

    fn sample(&self, body: &mut Value, sampling: &Sampling, left_out: LeftOut) {
        let Sampling { temperature, top_p, max_tokens, reasoning_effort, .. } = sampling;
        if let Some(effort) = reasoning_effort.as_ref().filter(|_| left_out.sends(EFFORT)) {
            body["outputConfig"]["effort"] = json!(effort);
        }
        let set = [
            ("temperature", temperature.filter(|_| left_out.sends(TEMPERATURE)).map(Value::from)),
            ("topP", top_p.filter(|_| left_out.sends(TOP_P)).map(Value::from)),
            ("maxTokens", max_tokens.map(Value::from)),
        ];
        for (name, value) in set {
            if let Some(value) = value {
                body["inferenceConfig"][name] = value;
            }
        }
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
        let event = value.as_object().and_then(|event| event.iter().next());
        let Some((kind, event)) = event else {
            note_unrecognised(&value, understood);
            return Ok(Vec::new());
        };
        let place = event["contentBlockIndex"].as_u64().unwrap_or(0);
        Ok(match kind.as_str() {
            "contentBlockStart" => begun(place, &event["start"]["toolUse"]).into_iter().collect(),
            "contentBlockDelta" => piece(place, &event["delta"], understood).into_iter().collect(),
            "messageStop" => {
                understood.stop = Some(stop(&event["stopReason"])?);
                Vec::new()
            }
            "metadata" => {
                count(&event["usage"], understood);
                understood.over = understood.stop.is_some();
                Vec::new()
            }
            "messageStart" | "contentBlockStop" => Vec::new(),
            "validationException" => return Err(Fault { passing: false, status: Some(400), ..Fault::reported(event) }),
            "error" => return Err(Fault::reported(event)),
            failure if failure.ends_with("Exception") => return Err(Fault::reported(event)),
            // New kinds of events may be added at any time.
            _ => {
                note_unrecognised(&value, understood);
                Vec::new()
            }
        })
    }
}

fn tool(name: &str, description: &str, schema: &Value, strict: bool) -> Value {
    let mut tool = json!({ "name": name, "inputSchema": { "json": schema } });
    if !description.trim().is_empty() {
        tool["description"] = json!(description);
    }
    if strict {
        tool["strict"] = json!(true);
    }
    json!({ "toolSpec": tool })
}

/// The prompt and what was said after it. Users and the model take turns: what follows from the same side is one message.
fn messages(request: &ModelRequest, left_out: LeftOut) -> Vec<Value> {
    let ModelRequest { system, user, turns, .. } = request;
    let prompt =
        if system.is_empty() || left_out.sends(SYSTEM) { user.to_string() } else { format!("{system}\n\n{user}") };
    let mut ids = CallIds::default();
    let mut messages: Vec<(&str, Vec<Value>)> = vec![("user", vec![json!({ "text": prompt })])];
    for turn in turns {
        let (role, content) = match turn {
            ChatTurn::User { text } => ("user", vec![json!({ "text": text.text() })]),
            ChatTurn::Assistant { parts } => {
                ("assistant", parts.iter().filter_map(|part| said_before(part, &mut ids, left_out)).collect())
            }
            ChatTurn::ToolResult { call, text, is_error, .. } => {
                let (id, status) = (ids.of_result(call.as_ref()), if *is_error { "error" } else { "success" });
                // Nothing but space is refused.
                let text = if text.text().trim().is_empty() { "(empty)" } else { text.text() };
                let result = json!({ "toolUseId": id, "content": [{ "text": text }], "status": status });
                ("user", vec![json!({ "toolResult": result })])
            }
        };
        match messages.last_mut() {
            Some((last, before)) if *last == role => before.extend(content),
            Some(_) | None => messages.push((role, content)),
        }
    }
    let messages = messages.into_iter().filter(|(_, content)| !content.is_empty());
    messages.map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

/// Asks to keep everything before it.
fn cache_point() -> Value {
    json!({ "cachePoint": { "type": "default" } })
}

/// Asks to keep everything up to the end of the last message.
fn mark_for_cache(messages: &mut [Value]) {
    let last = messages.last_mut().filter(|message| message["role"] == "user");
    if let Some(content) = last.and_then(|message| message["content"].as_array_mut()) {
        content.push(cache_point());
    }
}

/// A part of an earlier reply.
fn said_before(part: &ReplyPart, ids: &mut CallIds, left_out: LeftOut) -> Option<Value> {
    match part {
        ReplyPart::Text { text } | ReplyPart::Refusal { text } => {
            Some(text.text()).filter(|text| !text.trim().is_empty()).map(|text| json!({ "text": text }))
        }
        ReplyPart::Call { id, function, arguments } => {
            let (id, input) = (ids.of_call(id.as_ref()), object(arguments.text()));
            Some(json!({ "toolUse": { "toolUseId": id, "name": function, "input": input } }))
        }
        ReplyPart::Thought { .. } if !left_out.sends(THOUGHTS) => None,
        // It is only taken back unchanged, and with its signature.
        ReplyPart::Thought { text, signature } => {
            let thinking = |signature| json!({ "reasoningText": { "text": text.text(), "signature": signature } });
            let redacted = |data| json!({ "redactedContent": data });
            let signature = signature.as_ref();
            let thought = signature_by(SIGNED, signature).map(thinking);
            let thought = thought.or_else(|| signature_by(REDACTED, signature).map(redacted))?;
            Some(json!({ "reasoningContent": thought }))
        }
    }
}

/// A call of which the arguments follow.
fn begun(place: u64, call: &Value) -> Option<Said> {
    let (id, function) = (name(&call["toolUseId"]), name(&call["name"])?);
    Some(Said::Call(CallPiece { place, id, function: Some(function), arguments: String::new() }))
}

fn piece(place: u64, delta: &Value, understood: &mut Understood) -> Option<Said> {
    let text = words(&delta["text"]);
    understood.unenforced |= text.is_some();
    let arguments = || {
        let arguments = words(&delta["toolUse"]["input"])?;
        Some(Said::Call(CallPiece { place, arguments, ..CallPiece::default() }))
    };
    let thought = &delta["reasoningContent"];
    text.map(Said::Text)
        .or_else(arguments)
        .or_else(|| words(&thought["text"]).map(Said::Thought))
        .or_else(|| words(&thought["signature"]).map(|signature| signed(SIGNED, &signature)))
        .or_else(|| words(&thought["redactedContent"]).map(|data| signed(REDACTED, &data)))
}

fn stop(reason: &Value) -> Result<Stop, Fault> {
    Ok(match reason.as_str().unwrap_or_default() {
        "max_tokens" | "model_context_window_exceeded" => Stop::Length,
        "guardrail_intervened" | "content_filtered" => Stop::Withheld,
        "tool_use" => Stop::Calls,
        // The model failed at its own grammar; another time it may not.
        broken @ ("malformed_model_output" | "malformed_tool_use") => {
            return Err(Fault::rubbish(format!("the reply ended with {broken}")));
        }
        _ => Stop::Finished,
    })
}

/// What was read from a cache was read all the same.
fn count(usage: &Value, understood: &mut Understood) {
    let read = ["inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"];
    let read = read.iter().filter_map(|kind| usage[*kind].as_u64()).reduce(u64::saturating_add);
    understood.in_token = read.or(understood.in_token);
    understood.out_token = usage["outputTokens"].as_u64().or(understood.out_token);
    let details = &mut understood.details;
    details.cached = usage["cacheReadInputTokens"].as_u64().or(details.cached);
    details.cache_written = usage["cacheWriteInputTokens"].as_u64().or(details.cache_written);
}

#[cfg(test)]
#[path = "bedrock_tests.rs"]
mod tests;
