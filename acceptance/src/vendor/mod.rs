//! Model servers that refuse what their vendors document as refused, in the vendors' words and codes. What they say to a
//! request that they take is the script of `model`, in the vendor's form.

pub mod anthropic;
pub mod compatible;
mod messages;
pub mod mistral;
mod ollama;
pub mod openai;
mod recorder;
pub mod trouble;

pub use recorder::{Exchange, Vendor};

use axum::http::StatusCode;
use serde_json::Value;

/// How a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// OpenAI's chat completions.
    Chat,
    /// The same with ids of calls as Mistral makes and demands them.
    MistralChat,
    /// Anthropic's messages.
    Messages,
    /// Ollama's own chat.
    Ollama,
}

/// What a vendor takes: each rule is asked in turn, and the first that refuses is heard.
pub type Rule = fn(&Asked<'_>) -> Option<Refused>;

/// A request as rules see it.
#[derive(Debug)]
pub struct Asked<'a> {
    pub body: &'a Value,
    /// How many requests came before it.
    pub earlier: usize,
}

/// What is said to a request that is not taken.
#[derive(Debug, Clone)]
pub struct Refused {
    pub status: StatusCode,
    pub retry_after: Option<&'static str>,
    pub body: Value,
}

impl Refused {
    pub fn new(status: u16, body: Value) -> Self {
        let status = StatusCode::from_u16(status).expect("vendors answer with statuses of HTTP");
        Self { status, retry_after: None, body }
    }
}

impl Asked<'_> {
    fn list(&self, name: &str) -> &[Value] {
        self.body[name].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    fn has(&self, name: &str) -> bool {
        self.body.get(name).is_some()
    }

    fn offers_functions(&self) -> bool {
        !self.list("tools").is_empty()
    }
}
