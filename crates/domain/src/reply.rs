//! What a model's reply says, once read.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One ReAct reply: the model acts, answers, or wrote something that cannot be read.
///
/// ```
/// use trellis_domain::reply::ReactReply;
///
/// let reply = ReactReply::Answer { thought: "Enough is known.".into(), answer: "42".into() };
/// assert_eq!(reply.thought(), "Enough is known.");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ReactReply {
    Action {
        thought: String,
        tool: String,
        arguments: Map<String, Value>,
    },
    Answer {
        thought: String,
        answer: String,
    },
    /// The reason is written for the model: it is shown to it so that it can correct itself.
    Unreadable {
        thought: String,
        reason: String,
    },
}

impl ReactReply {
    pub fn thought(&self) -> &str {
        match self {
            Self::Action { thought, .. } | Self::Answer { thought, .. } | Self::Unreadable { thought, .. } => thought,
        }
    }
}
