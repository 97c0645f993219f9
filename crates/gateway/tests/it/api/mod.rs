//! Our own API over real HTTP. Every reply is held against the API's own document.

mod asking;
mod cancelling;
mod deciding;
mod document;
mod following;
mod looking;
mod openai;
mod server;
mod tools;

use serde_json::{Value, json};

/// A question that is played: one tool call and an answer.
fn agent(answer: &str) -> Value {
    ask(&json!({"tools": 1, "answer": answer}), "react")
}

/// The body that asks for a scene.
fn ask(scene: &Value, pattern: &str) -> Value {
    json!({"question": scene.to_string(), "pattern": pattern})
}

fn team() -> Value {
    let inner = json!({"team": [[{"answer": "x"}, {"answer": "y"}]]});
    ask(&json!({"team": [[inner, {"tools": 1, "answer": "b"}, {"fail": true}], [{"answer": "c"}]]}), "supervisor")
}
