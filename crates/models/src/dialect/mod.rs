//! How each provider wants to be asked and how it replies. Pure: bytes and time are the business of `remote`.

mod anthropic;
mod ollama;
mod openai;

pub(crate) use anthropic::Anthropic;
pub(crate) use ollama::Ollama;
pub(crate) use openai::OpenAi;

use crate::functions::{Function, Functions};
use crate::provider::ModelRequest;
use crate::remote::{Fault, Sampling, Understood};
use serde_json::{Value, json};

/// A message of a stream as JSON.
fn json_of(message: &str) -> Result<Value, Fault> {
    // Whole: it is shortened when it is shown, after keys were taken out.
    serde_json::from_str(message).map_err(|_| Fault::rubbish(format!("it sent something that is not JSON: {message}")))
}

/// Standing instructions, if any, and the prompt.
fn chat(request: &ModelRequest) -> Vec<Value> {
    let system = (!request.system.is_empty()).then(|| json!({ "role": "system", "content": request.system }));
    system.into_iter().chain([json!({ "role": "user", "content": request.user })]).collect()
}

/// Functions as OpenAI describes them, strict where that is wanted and possible.
fn functions(functions: &Functions, strict: bool) -> Value {
    let function = |function: &Function| {
        let Function { name, description, schema, .. } = function;
        let held = function.strict.as_ref().filter(|_| strict);
        let mut described = json!({ "name": name, "description": description, "parameters": held.unwrap_or(schema) });
        if held.is_some() {
            described["strict"] = json!(true);
        }
        json!({ "type": "function", "function": described })
    };
    functions.iter().map(function).collect()
}

/// What is set, under the names that most providers have for it.
fn sample(place: &mut Value, sampling: &Sampling, max_tokens: &str) {
    let Sampling { temperature, top_p, max_tokens: most } = sampling;
    let set = [("temperature", temperature.map(Value::from)), ("top_p", top_p.map(Value::from))];
    for (name, value) in set.into_iter().chain([(max_tokens, most.map(Value::from))]) {
        if let Some(value) = value {
            place[name] = value;
        }
    }
}

/// The arguments of a call: JSON in a text, or as it is.
fn arguments(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// A text that says something.
fn words(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Notes the first message that is none of those we know.
fn wonder_at(value: &Value, understood: &mut Understood) {
    understood.strange.get_or_insert_with(|| value.to_string());
}

#[cfg(test)]
mod tests;
