//! Google's own dialect: at the Gemini API with a key, at Vertex AI with a token.

mod openapi;

use super::{arguments, json_of, name, note_unrecognised, object, signature_by, signed, words};
use crate::functions::sent_schema;
use crate::provider::ModelRequest;
use crate::remote::{
    Dialect, EFFORT, FORCES, FORMAT, Fault, Framing, LeftOut, MemberName, SYSTEM, Said, Sampling, SchemaEnforcement,
    Stop, TEMPERATURE, THOUGHTS, TOP_P, Understood,
};
use openapi::openapi;
use serde_json::{Value, json};
use trellis_domain::parts::{CallPiece, ChatTurn, ReplyPart};
use trellis_patterns::react::functions::Function;

/// Who signs calls.
const SIGNED: &str = "google";
/// Stands in for the signature of a call that another model made, or whose signature is not known any more. Other clients
/// use it for that.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

/// How refusals name what can be left out.
const NAMES: [MemberName; 20] = [
    ("functionCallingConfig", FORCES),
    ("function_calling_config", FORCES),
    ("toolConfig", FORCES),
    ("tool_config", FORCES),
    ("responseJsonSchema", FORMAT),
    ("response_json_schema", FORMAT),
    ("parametersJsonSchema", FORMAT),
    ("parameters_json_schema", FORMAT),
    ("systemInstruction", SYSTEM),
    ("system_instruction", SYSTEM),
    ("eveloper instruction is not enabled", SYSTEM),
    ("temperature", TEMPERATURE),
    ("topP", TOP_P),
    ("top_p", TOP_P),
    ("thinkingConfig", EFFORT),
    ("thinking_config", EFFORT),
    ("hinking level", EFFORT),
    ("thoughtSignature", THOUGHTS),
    ("thought_signature", THOUGHTS),
    ("hought signature", THOUGHTS),
];

#[derive(Debug)]
pub(crate) struct Gemini;

impl Dialect for Gemini {
    const FRAMING: Framing = Framing::Events;

    fn body(&self, _: &str, request: &ModelRequest, enforcement: &SchemaEnforcement<'_>, left_out: LeftOut) -> Value {
        let mut body = json!({ "contents": contents(request, left_out) });
        if !request.system.is_empty() && left_out.sends(SYSTEM) {
            body["systemInstruction"] = json!({ "parts": [{ "text": request.system }] });
        }
        // The whole language of schemas has a member of its own; older models know a part of it.
        let whole = left_out.sends(FORMAT);
        let format = |schema: &Value| match (whole, openapi(schema)) {
            (true, _) => json!({ "responseMimeType": "application/json", "responseJsonSchema": schema }),
            (false, Some(schema)) => json!({ "responseMimeType": "application/json", "responseSchema": schema }),
            (false, None) => json!({ "responseMimeType": "application/json" }),
        };
        match enforcement {
            SchemaEnforcement::Free | SchemaEnforcement::Json => {}
            SchemaEnforcement::Guided(schema) => body["generationConfig"] = format(schema),
            SchemaEnforcement::Strict(schema) => body["generationConfig"] = format(schema),
            SchemaEnforcement::Functions { functions, strict } => {
                let declared: Vec<_> = functions.iter().map(|function| declared(function, *strict, whole)).collect();
                body["tools"] = json!([{ "functionDeclarations": declared }]);
                if left_out.sends(FORCES) {
                    body["toolConfig"] = json!({ "functionCallingConfig": { "mode": "ANY" } });
                }
            }
        }
        body
    }

    fn sample(&self, body: &mut Value, sampling: &Sampling, left_out: LeftOut) {
        let Sampling { temperature, top_p, max_tokens, reasoning_effort, .. } = sampling;
        // A level, or a number of tokens for older models.
        let thinking = reasoning_effort.as_ref().filter(|_| left_out.sends(EFFORT)).map(|effort| {
            let budget = effort.parse::<i64>().map(|tokens| json!({ "thinkingBudget": tokens }));
            budget.unwrap_or_else(|_| json!({ "thinkingLevel": effort.to_uppercase() }))
        });
        let set = [
            ("temperature", temperature.filter(|_| left_out.sends(TEMPERATURE)).map(Value::from)),
            ("topP", top_p.filter(|_| left_out.sends(TOP_P)).map(Value::from)),
            ("maxOutputTokens", max_tokens.map(Value::from)),
            ("thinkingConfig", thinking),
        ];
        for (name, value) in set {
            if let Some(value) = value {
                body["generationConfig"][name] = value;
            }
        }
    }

    /// What a model thinks counts, too.
    fn usual_tokens(&self) -> Option<u32> {
        Some(16_384)
    }

    fn read(&self, message: &str, understood: &mut Understood) -> Result<Vec<Said>, Fault> {
        let mut said = Vec::new();
        // Errors, and answers that are not streamed, come as lists.
        let value = json_of(message)?;
        let messages = value.as_array().map_or(std::slice::from_ref(&value), Vec::as_slice);
        for message in messages {
            said.extend(read_one(message, understood)?);
        }
        understood.over |= value.is_array();
        Ok(said)
    }

    fn members(&self) -> &'static [MemberName] {
        &NAMES
    }

    /// A part of the schema may have been left out of the older form.
    fn was_held(&self, understood: &Understood, left_out: LeftOut) -> bool {
        left_out.sends(FORMAT) && !understood.unenforced
    }
}

fn declared(function: &Function, strict: bool, whole: bool) -> Value {
    let (schema, _) = sent_schema(function, strict);
    let mut declared = json!({ "name": function.name, "description": function.description() });
    if whole {
        declared["parametersJsonSchema"] = schema;
    } else if let Some(parameters) = openapi(&schema) {
        declared["parameters"] = parameters;
    }
    declared
}

/// The prompt and what was said after it. Users and the model take turns: what follows from the same side is one content.
fn contents(request: &ModelRequest, left_out: LeftOut) -> Vec<Value> {
    let ModelRequest { system, user, turns, .. } = request;
    let prompt =
        if system.is_empty() || left_out.sends(SYSTEM) { user.to_string() } else { format!("{system}\n\n{user}") };
    let signs = Signing::of(turns, left_out);
    let mut contents: Vec<(&str, Vec<Value>)> = vec![("user", vec![json!({ "text": prompt })])];
    for turn in turns {
        let (role, parts) = match turn {
            ChatTurn::User { text } => ("user", vec![json!({ "text": text.text() })]),
            ChatTurn::Assistant { parts } => ("model", said_before(parts, signs)),
            ChatTurn::ToolResult { call, function, text, is_error } => {
                let result = if *is_error { "error" } else { "output" };
                let mut response = json!({ "name": function, "response": { result: text.text() } });
                if let Some(id) = call {
                    response["id"] = json!(id);
                }
                ("user", vec![json!({ "functionResponse": response })])
            }
        };
        match contents.last_mut() {
            Some((last, before)) if *last == role => before.extend(parts),
            Some(_) | None => contents.push((role, parts)),
        }
    }
    let contents = contents.into_iter().filter(|(_, parts)| !parts.is_empty());
    contents.map(|(role, parts)| json!({ "role": role, "parts": parts })).collect()
}

/// Which signatures go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signing {
    /// Nobody asked for any.
    None,
    /// Those that there are, and the stand-in where one is missing.
    Known,
    /// The model takes none of those that there are.
    StandIn,
}

impl Signing {
    fn of(turns: &[ChatTurn], left_out: LeftOut) -> Self {
        let is_signed = |part: &ReplyPart| match part {
            ReplyPart::Thought { signature, .. } => signature_by(SIGNED, signature.as_ref()).is_some(),
            ReplyPart::Text { .. } | ReplyPart::Call { .. } | ReplyPart::Refusal { .. } => false,
        };
        let are_signed = turns.iter().any(|turn| match turn {
            ChatTurn::Assistant { parts } => parts.iter().any(is_signed),
            ChatTurn::User { .. } | ChatTurn::ToolResult { .. } => false,
        });
        match (left_out.sends(THOUGHTS), are_signed) {
            (false, _) => Self::StandIn,
            (true, true) => Self::Known,
            (true, false) => Self::None,
        }
    }
}

/// The parts of an earlier reply. A signature belongs to the part that follows it. Of several calls the first has one.
fn said_before(parts: &[ReplyPart], signing: Signing) -> Vec<Value> {
    let mut said = Vec::new();
    let mut signature: Option<&str> = None;
    let mut needs_one = signing != Signing::None;
    for part in parts {
        let mut value = match part {
            ReplyPart::Thought { signature: given, .. } => {
                let given = signature_by(SIGNED, given.as_ref()).filter(|_| signing == Signing::Known);
                signature = given.or(signature);
                continue;
            }
            ReplyPart::Text { text } | ReplyPart::Refusal { text } if text.text().is_empty() => continue,
            ReplyPart::Text { text } | ReplyPart::Refusal { text } => json!({ "text": text.text() }),
            ReplyPart::Call { id, function, arguments } => {
                let mut call = json!({ "name": function, "args": object(arguments.text()) });
                if let Some(id) = id {
                    call["id"] = json!(id);
                }
                if std::mem::take(&mut needs_one) {
                    signature = signature.or(Some(NOT_SIGNED));
                }
                json!({ "functionCall": call })
            }
        };
        if let Some(signature) = signature.take() {
            value["thoughtSignature"] = json!(signature);
        }
        said.push(value);
    }
    // The end of a stream may be a signature alone.
    said.extend(signature.map(|signature| json!({ "text": "", "thoughtSignature": signature })));
    said
}

fn read_one(value: &Value, understood: &mut Understood) -> Result<Vec<Said>, Fault> {
    if !value["error"].is_null() {
        return Err(Fault::reported(&value["error"]));
    }
    let known = ["candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"];
    if known.iter().all(|member| value[*member].is_null()) {
        note_unrecognised(value, understood);
    }
    understood.model = words(&value["modelVersion"]).or(understood.model.take());
    count(&value["usageMetadata"], understood);
    if value["promptFeedback"]["blockReason"].is_string() {
        understood.stop = Some(Stop::Withheld);
    }
    let candidate = &value["candidates"][0];
    let mut said = Vec::new();
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        said.extend(words(&part["thoughtSignature"]).map(|signature| signed(SIGNED, &signature)));
        let call = &part["functionCall"];
        if call.is_object() {
            understood.calls += 1;
            let (id, function, arguments) = (name(&call["id"]), name(&call["name"]), arguments(&call["args"]));
            said.push(Said::Call(CallPiece { place: understood.calls, id, function, arguments }));
        } else {
            let is_thought = part["thought"] == true;
            said.extend(words(&part["text"]).map(if is_thought { Said::Thought } else { Said::Text }));
        }
    }
    understood.stop = stop(candidate, understood)?.or(understood.stop);
    Ok(said)
}

/// What was read from a cache is a part of the prompt; what was thought is not a part of the reply.
fn count(usage: &Value, understood: &mut Understood) {
    let sum = |kinds: [&str; 2]| kinds.iter().filter_map(|kind| usage[*kind].as_u64()).reduce(u64::saturating_add);
    understood.in_token = sum(["promptTokenCount", "toolUsePromptTokenCount"]).or(understood.in_token);
    understood.out_token = sum(["candidatesTokenCount", "thoughtsTokenCount"]).or(understood.out_token);
    let details = &mut understood.details;
    details.cached = usage["cachedContentTokenCount"].as_u64().or(details.cached);
    details.reasoning = usage["thoughtsTokenCount"].as_u64().or(details.reasoning);
}

fn stop(candidate: &Value, understood: &Understood) -> Result<Option<Stop>, Fault> {
    let Some(reason) = candidate["finishReason"].as_str() else { return Ok(None) };
    Ok(Some(match reason {
        "MAX_TOKENS" => Stop::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => Stop::Withheld,
        // The model failed at its own grammar; another time it may not.
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => {
            let why = words(&candidate["finishMessage"]).map(|why| format!(": {why}")).unwrap_or_default();
            return Err(Fault::rubbish(format!("the reply ended with {reason}{why}")));
        }
        _ if understood.calls > 0 => Stop::Calls,
        _ => Stop::Finished,
    }))
}

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
