//! How the replies to the prompts are read. Reading is lenient: what can be understood is, and what cannot becomes a
//! reason that the model is shown.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use trellis_domain::config::ToolItem;
use trellis_domain::decision::Decision;
use trellis_domain::document::Document;
use trellis_domain::reading::Citation;
use trellis_domain::record::Reading;

/// How the reply to one prompt is read: by the pattern that asks it, under rules that are its own. What the router asks
/// is one name of the only offered set.
#[derive(Debug, Clone, PartialEq)]
pub struct Reader {
    prompt: &'static str,
    rules: Value,
    /// The tools that the reply chooses from.
    tools: Option<Arc<[Arc<ToolItem>]>>,
}

/// How a reply is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyForm {
    /// As in ReAct: thoughts apart from the answer, in the text grammar or in calls.
    Steps,
    /// All of it is the answer.
    Answer,
    /// It is read as a whole.
    Whole,
}

/// A reply, read.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadReply {
    /// What the agent says about it while it works; shown and stored.
    pub thought: Option<Document>,
    pub reading: Reading,
    pub decisions: Vec<Decision>,
    pub citations: Vec<Citation>,
    /// What had to be put right.
    pub repairs: Vec<String>,
}

impl ReadReply {
    pub fn new(thought: &str, reading: Reading, decisions: Vec<Decision>) -> Self {
        let thought = Document::stored(thought);
        Self { thought, reading, decisions, citations: Vec::new(), repairs: Vec::new() }
    }

    /// A reply that cannot be used: the offered sets stay without a choice.
    pub fn unusable(reason: impl Into<String>, decisions: Vec<Decision>) -> Self {
        Self::new("", Reading::Unusable { reason: reason.into() }, decisions)
    }

    #[must_use]
    pub fn with_repairs(self, repairs: Vec<String>) -> Self {
        Self { repairs, ..self }
    }
}

impl Reader {
    /// Reads replies to a prompt that needs no rules.
    pub fn plain(prompt: &'static str) -> Self {
        Self { prompt, rules: Value::Null, tools: None }
    }

    /// Reads replies to a prompt under rules of the pattern that asks it.
    pub fn under(prompt: &'static str, rules: impl Serialize) -> Self {
        Self { prompt, rules: serde_json::to_value(rules).unwrap_or_default(), tools: None }
    }

    /// Reads replies that call one of these tools, or say that they want to.
    #[must_use]
    pub fn with_tools(self, tools: Vec<Arc<ToolItem>>) -> Self {
        Self { tools: Some(tools.into()), ..self }
    }

    /// The tools that the reply chooses from. None if it is no choice of a tool; empty if it is one and there are none.
    pub fn tools(&self) -> Option<&Arc<[Arc<ToolItem>]>> {
        self.tools.as_ref()
    }

    /// The prompt whose replies it reads.
    pub fn prompt(&self) -> &'static str {
        self.prompt
    }

    /// The rules, as the pattern wrote them.
    pub(crate) fn rules<T: DeserializeOwned + Default>(&self) -> T {
        T::deserialize(&self.rules).unwrap_or_default()
    }
}
