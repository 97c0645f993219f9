//! Chat completions as OpenAI defines them and many servers speak them. Fields that some of them leave out are not
//! relied on, and a server that does not stream is understood as well.

use super::Quirks;
use super::{Calls, arguments, chat, conversation, json_of, name, note_unrecognised, words};
use crate::provider::ModelRequest;
use crate::remote::{
    COUNTS, Dialect, EFFORT, FORCES, Fault, Framing, LIMIT, LeftOut, MemberName, Members, ONE_CALL, SCHEMA,
    STRICT_CALLS, SYSTEM, Said, Sampling, SchemaEnforcement, Stop, TEMPERATURE, TOP_P, Understood,
};
use serde_json::{Value, json};
use trellis_domain::parts::CallPiece;
use trellis_domain::usage::TokenDetails;
use trellis_patterns::react::functions::Functions;

/// How refusals name what can be left out.
const NAMES: [MemberName; 10] = [
    ("stream_options", COUNTS),
    ("include_usage", COUNTS),
    ("tool_choice", FORCES),
    ("parallel_tool_calls", ONE_CALL),
    ("ystem role not supported", SYSTEM),
    ("temperature", TEMPERATURE),
    ("top_p", TOP_P),
    ("max_tokens", LIMIT),
    ("max_completion_tokens", LIMIT),
    ("reasoning_effort", EFFORT),
];

#[derive(Debug, Default)]
pub(crate) struct OpenAi {
    pub(crate) quirks: Quirks,
}

impl OpenAi {
    fn offer(&self, functions: &Functions, strict: bool, left_out: LeftOut, body: &mut Value) {
        body["tools"] = super::functions(functions, strict);
        if left_out.sends(FORCES) {
            body["tool_choice"] = json!(self.quirks.forced);
        }
        if left_out.sends(ONE_CALL) {
            body["parallel_tool_calls"] = json!(false);
        }
        // Some models call functions here only if they do not think before.
        if !left_out.sends(EFFORT) {
            body["reasoning_effort"] = json!("none");
        }
    }
}

impl Dialect for OpenAi {
    const FRAMING: Framing = Framing::Events;

    fn body(
        &self,
        model: &str,
        request: &ModelRequest,
        enforcement: &SchemaEnforcement<'_>,
        left_out: LeftOut,
    ) -> Value {
        let prompt = if left_out.sends(SYSTEM) { chat(request) } else { vec![at_once(request)] };
        let messages = conversation(prompt, &request.turns, &InMessages { named_results: self.quirks.named_results });
        let mut body = json!({ "model": model, "messages": messages, "stream": true });
        if left_out.sends(COUNTS) {
            body["stream_options"] = json!({ "include_usage": true });
        }
        let format = |schema: &Value, strict: bool| {
            let format = json!({ "name": name_of(&request.prompt), "schema": schema, "strict": strict });
            json!({ "type": "json_schema", "json_schema": format })
        };
        match enforcement {
            SchemaEnforcement::Free => return body,
            SchemaEnforcement::Json => body["response_format"] = json!({ "type": "json_object" }),
            SchemaEnforcement::Guided(schema) => body["response_format"] = format(schema, false),
            SchemaEnforcement::Strict(schema) => body["response_format"] = format(schema, true),
            SchemaEnforcement::Functions { functions, strict } => self.offer(functions, *strict, left_out, &mut body),
        }
        if self.quirks.routed {
            body["provider"] = json!({ "require_parameters": true });
        }
        body
    }

    fn sample(&self, body: &mut Value, sampling: &Sampling, left_out: LeftOut) {
        // Whoever refuses one name takes the other.
        let new_name = self.quirks.new_limit == left_out.sends(LIMIT);
        super::sample(body, sampling, if new_name { "max_completion_tokens" } else { "max_tokens" }, left_out);
        if let Some(effort) = sampling.reasoning_effort.as_ref().filter(|_| left_out.sends(EFFORT)) {
            body["reasoning_effort"] = json!(effort);
        }
    }

    fn usual_tokens(&self) -> Option<u32> {
        Some(self.quirks.usual_tokens)
    }

    fn read(&self, message: &str, understood: &mut Understood) -> Result<Vec<Said>, Fault> {
        if message.trim() == "[DONE]" {
            understood.over = true;
            return Ok(Vec::new());
        }
        let value = json_of(message)?;
        if !value["error"].is_null() {
            return Err(Fault::reported(&value["error"]));
        }
        if value["object"] == "error" {
            return Err(Fault::reported(&value));
        }
        if value["choices"].is_null() && value["usage"].is_null() && value["id"].is_null() {
            note_unrecognised(&value, understood);
        }
        understood.model = words(&value["model"]).or(understood.model.take());
        understood.in_token = value["usage"]["prompt_tokens"].as_u64().or(understood.in_token);
        understood.out_token = value["usage"]["completion_tokens"].as_u64().or(understood.out_token);
        count(&value["usage"], &mut understood.details);
        let choices = value["choices"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(choice) = choices.iter().find(|choice| choice["index"].as_u64().unwrap_or(0) == 0) else {
            return Ok(Vec::new());
        };
        understood.stop = stop(choice)?.or(understood.stop);
        // Some servers repeat the whole beside each piece.
        let is_whole = choice["message"].is_object() && !choice["delta"].is_object();
        understood.over |= is_whole;
        let said = if is_whole { &choice["message"] } else { &choice["delta"] };
        let refused = words(&said["refusal"]);
        understood.unenforced |= refused.is_some();
        let thought = words(&said["reasoning_content"]).or_else(|| words(&said["reasoning"])).map(Said::Thought);
        let texts = [thought, content(&said["content"]).map(Said::Text), refused.map(Said::Refusal)];
        Ok(texts.into_iter().flatten().chain(calls(&said["tool_calls"]).map(Said::Call)).collect())
    }

    fn members(&self) -> &'static [MemberName] {
        &NAMES
    }

    fn lacks(&self) -> Members {
        self.quirks.lacks
    }

    fn can_show(&self, _: &Value) -> bool {
        self.quirks.lacks & SCHEMA == 0
    }

    /// Without the word in the prompt it is refused, or the model writes spaces without end.
    fn has_json_mode(&self, request: &ModelRequest) -> bool {
        let names_it = |text: &str| text.contains("JSON") || text.contains("json");
        names_it(&request.system.whole()) || names_it(&request.user.whole())
    }

    fn enforces_functions(&self) -> bool {
        self.quirks.lacks & STRICT_CALLS == 0
    }
}

/// What is counted apart. Some have their own name for what was in the cache.
fn count(usage: &Value, details: &mut TokenDetails) {
    let (read, written) = (&usage["prompt_tokens_details"], &usage["completion_tokens_details"]);
    let cached = read["cached_tokens"].as_u64().or_else(|| usage["prompt_cache_hit_tokens"].as_u64());
    details.cached = cached.or(details.cached);
    details.reasoning = written["reasoning_tokens"].as_u64().or(details.reasoning);
    let audio = [read, written].map(|tokens| tokens["audio_tokens"].as_u64());
    details.audio = audio.into_iter().flatten().reduce(u64::saturating_add).or(details.audio);
}

/// Calls in messages of the assistant, results in messages of their own.
struct InMessages {
    named_results: bool,
}

impl Calls for InMessages {
    fn call(&self, id: String, function: &str, arguments: &str) -> Value {
        json!({ "id": id, "type": "function", "function": { "name": function, "arguments": arguments } })
    }

    fn result(&self, id: String, function: &str, text: &str) -> Value {
        let mut result = json!({ "role": "tool", "tool_call_id": id, "content": text });
        if self.named_results {
            result["name"] = json!(function);
        }
        result
    }
}

/// Everything in one message: some models know nothing else.
fn at_once(request: &ModelRequest) -> Value {
    let ModelRequest { system, user, .. } = request;
    let text = if system.is_empty() { user.to_string() } else { format!("{system}\n\n{user}") };
    json!({ "role": "user", "content": text })
}

/// Pieces of calls, or whole ones.
fn calls(calls: &Value) -> impl Iterator<Item = CallPiece> {
    calls.as_array().into_iter().flatten().enumerate().map(|(place, call)| {
        let function = &call["function"];
        CallPiece {
            place: call["index"].as_u64().unwrap_or(place as u64),
            id: name(&call["id"]),
            function: name(&function["name"]),
            arguments: arguments(&function["arguments"]),
        }
    })
}

/// A text, or a list of parts that hold one.
fn content(content: &Value) -> Option<String> {
    let parts = content.as_array().map(|parts| parts.iter().filter_map(|part| words(&part["text"])).collect());
    words(content).or(parts)
}

fn stop(choice: &Value) -> Result<Option<Stop>, Fault> {
    Ok(match choice["finish_reason"].as_str() {
        None | Some("") => None,
        Some("length") => Some(Stop::Length),
        Some("content_filter") => Some(Stop::Withheld),
        Some("error") if choice["error"].is_null() => return Err(Fault::rubbish("the reply ended with an error")),
        Some("error") => return Err(Fault::reported(&choice["error"])),
        Some("tool_calls" | "function_call") => Some(Stop::Calls),
        Some(_) => Some(Stop::Finished),
    })
}

/// Names of schemas are short and simple.
pub(super) fn name_of(prompt: &str) -> String {
    let simple = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = prompt.chars().take(64).map(simple).collect();
    if name.is_empty() { "reply".to_owned() } else { name }
}
