//! Ollama's own chat: one JSON object per line.

use super::{Calls, arguments, chat, conversation, json_of, name, note_unrecognised, object, words};
use crate::provider::ModelRequest;
use crate::remote::{
    Dialect, Fault, Framing, LeftOut, MemberName, Said, Sampling, SchemaEnforcement, Stop, Understood, tokens_in,
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use trellis_domain::parts::CallPiece;

/// The smallest room that is asked for, and the one that most models have.
const SMALLEST_ROOM: u64 = 4096;
/// The longest reply if nobody set one: the room for it is taken from the memory of the machine.
const USUAL_TOKENS: u32 = 4096;
/// A reply that may not even be this long is not worth asking for.
const SHORTEST_REPLY: u64 = 256;

#[derive(Debug, Default)]
pub(crate) struct Ollama {
    /// The largest room so far. The server loads the model anew for each other size, so that it never becomes smaller.
    room: AtomicU64,
}

impl Dialect for Ollama {
    const FRAMING: Framing = Framing::JsonLines;

    fn body(&self, model: &str, request: &ModelRequest, enforcement: &SchemaEnforcement<'_>, _: LeftOut) -> Value {
        let messages = conversation(chat(request), &request.turns, &ByName);
        let mut body = json!({ "model": model, "messages": messages, "stream": true });
        match enforcement {
            SchemaEnforcement::Free | SchemaEnforcement::Json => {}
            SchemaEnforcement::Guided(schema) => body["format"] = (*schema).clone(),
            SchemaEnforcement::Strict(schema) => body["format"] = schema.clone(),
            SchemaEnforcement::Functions { functions, strict } => body["tools"] = super::functions(functions, *strict),
        }
        body
    }

    /// It offers functions, and the model may still write what it likes.
    fn enforces_functions(&self) -> bool {
        false
    }

    /// It overlooks what it does not know.
    fn members(&self) -> &'static [MemberName] {
        &[]
    }

    fn sample(&self, body: &mut Value, sampling: &Sampling, left_out: LeftOut) {
        let mut options = json!({});
        super::sample(&mut options, sampling, "num_predict", left_out);
        if options.as_object().is_some_and(|options| !options.is_empty()) {
            body["options"] = options;
        }
        for (name, value) in [("keep_alive", &sampling.keep_alive), ("think", &sampling.think)] {
            if let Some(value) = value {
                body[name] = value.clone();
            }
        }
    }

    fn usual_tokens(&self) -> Option<u32> {
        Some(USUAL_TOKENS)
    }

    /// The server cuts the beginning of what does not fit, and says nothing.
    fn fit(&self, body: &mut Value, size: Option<u64>) -> Result<(), String> {
        let prompt = tokens_in(body.to_string().len());
        let most = body["options"]["num_predict"].as_u64().unwrap_or(0);
        let size = size.unwrap_or(u64::MAX);
        if prompt.saturating_add(SHORTEST_REPLY.min(most)) > size {
            return Err(format!("the prompt has about {prompt} tokens, and the context size of the model is {size}"));
        }
        let needed = prompt.saturating_add(most).min(size);
        let room = needed.max(SMALLEST_ROOM).next_power_of_two().max(self.room.load(Ordering::Relaxed)).min(size);
        self.room.fetch_max(room, Ordering::Relaxed);
        body["options"]["num_ctx"] = json!(room);
        if prompt.saturating_add(most) > room {
            body["options"]["num_predict"] = json!(room - prompt);
        }
        Ok(())
    }

    fn read(&self, message: &str, understood: &mut Understood) -> Result<Vec<Said>, Fault> {
        let value = json_of(message)?;
        if !value["error"].is_null() {
            return Err(Fault::reported(&value["error"]));
        }
        if value["message"].is_null() && value["done"].is_null() {
            note_unrecognised(&value, understood);
        }
        understood.model = words(&value["model"]).or(understood.model.take());
        understood.in_token = value["prompt_eval_count"].as_u64().or(understood.in_token);
        understood.out_token = value["eval_count"].as_u64().or(understood.out_token);
        if value["done"] == true {
            understood.over = true;
            let length = value["done_reason"] == "length";
            understood.stop = Some(if length { Stop::Length } else { Stop::Finished });
        }
        let message = &value["message"];
        let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| {
            understood.calls += 1;
            let function = &call["function"];
            let (function, arguments) = (name(&function["name"]), arguments(&function["arguments"]));
            Said::Call(CallPiece { place: understood.calls, id: None, function, arguments })
        });
        let texts = [words(&message["thinking"]).map(Said::Thought), words(&message["content"]).map(Said::Text)];
        Ok(texts.into_iter().flatten().chain(calls).collect())
    }
}

/// Calls and results are told apart by the names of their functions.
struct ByName;

impl Calls for ByName {
    fn call(&self, _: String, function: &str, arguments: &str) -> Value {
        json!({ "function": { "name": function, "arguments": object(arguments) } })
    }

    fn result(&self, _: String, function: &str, text: &str) -> Value {
        json!({ "role": "tool", "tool_name": function, "content": text })
    }
}
