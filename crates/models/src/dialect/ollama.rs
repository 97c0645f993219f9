//! Ollama's own chat: one JSON object per line.

use super::{chat, json_of, wonder_at, words};
use crate::provider::ModelRequest;
use crate::remote::{Dialect, Fault, Framing, Hold, Stop, Understood};
use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Ollama;

impl Dialect for Ollama {
    const NAME: &'static str = "ollama";
    const FRAMING: Framing = Framing::JsonLines;

    fn body(&self, model: &str, request: &ModelRequest, hold: &Hold<'_>) -> Value {
        let mut body = json!({ "model": model, "messages": chat(request), "stream": true });
        match hold {
            Hold::Free => {}
            Hold::Guided(schema) => body["format"] = (*schema).clone(),
            Hold::Strict(schema) => body["format"] = schema.clone(),
        }
        body
    }

    fn read(&self, message: &str, understood: &mut Understood) -> Result<Option<String>, Fault> {
        let value = json_of(message)?;
        if !value["error"].is_null() {
            return Err(Fault::reported(&value["error"]));
        }
        if value["message"].is_null() && value["done"].is_null() {
            wonder_at(&value, understood);
        }
        understood.model = words(&value["model"]).or(understood.model.take());
        understood.in_token = value["prompt_eval_count"].as_u64().or(understood.in_token);
        understood.out_token = value["eval_count"].as_u64().or(understood.out_token);
        if value["done"] == true {
            understood.over = true;
            let length = value["done_reason"] == "length";
            understood.stop = Some(if length { Stop::Length } else { Stop::Finished });
        }
        Ok(words(&value["message"]["content"]))
    }
}
