//! Ollama's own chat: one JSON object per line.

use super::{Calls, arguments, chat, conversation, json_of, name, note_unrecognised, object, words};
use crate::provider::ModelRequest;
use crate::remote::{
    Dialect, Fault, Framing, LeftOut, MemberName, Said, Sampling, SchemaEnforcement, Stop, Understood,
};
use serde_json::{Value, json};
use trellis_domain::parts::CallPiece;

#[derive(Debug)]
pub(crate) struct Ollama;

impl Dialect for Ollama {
    const FRAMING: Framing = Framing::JsonLines;

    fn body(&self, model: &str, request: &ModelRequest, enforcement: &SchemaEnforcement<'_>, _: LeftOut) -> Value {
        let messages = conversation(chat(request), &request.turns, &ByName);
        let mut body = json!({ "model": model, "messages": messages, "stream": true });
        match enforcement {
            SchemaEnforcement::Free => {}
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
