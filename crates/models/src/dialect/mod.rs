//! How each provider wants to be asked and how it replies. Pure: bytes and time are the business of `remote`.

mod anthropic;
mod ollama;
mod openai;

pub(crate) use anthropic::Anthropic;
pub(crate) use ollama::Ollama;
pub(crate) use openai::OpenAi;

use crate::provider::ModelRequest;
use crate::remote::{Fault, Understood};
use serde_json::{Value, json};

/// A message of a stream as JSON.
fn json_of(message: &str) -> Result<Value, Fault> {
    serde_json::from_str(message).map_err(|_| {
        let beginning: String = message.chars().take(80).collect();
        Fault::rubbish(format!("it sent something that is not JSON: {beginning}"))
    })
}

/// Standing instructions, if any, and the prompt.
fn chat(request: &ModelRequest) -> Vec<Value> {
    let system = (!request.system.is_empty()).then(|| json!({ "role": "system", "content": request.system }));
    system.into_iter().chain([json!({ "role": "user", "content": request.user })]).collect()
}

/// A text that says something.
fn words(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Notes the first message that is none of those we know.
fn wonder_at(value: &Value, understood: &mut Understood) {
    understood.strange.get_or_insert_with(|| value.to_string().chars().take(200).collect());
}

#[cfg(test)]
mod tests;
