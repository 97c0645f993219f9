//! The messages of the agent protocol, with every field of the specification and of the original.
//!
//! Reading is lenient and the same for both dialects. Writing is not: the module `broker` writes every field, as serde
//! does with these types, the module `gateway` only what is set.

use crate::lenient::{collection, default_collection, names, nullable, texts};
use crate::rdf::Quad;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A question to the agent, or the continuation of one.
///
/// ```
/// use trellis_domain::message::AgentRequest;
///
/// let request: AgentRequest = serde_json::from_str(r#"{"question": "why?", "state": null, "user": "ignored"}"#)?;
/// assert_eq!((request.question.as_str(), request.collection.as_str()), ("why?", "default"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRequest {
    /// The only member that a caller must give.
    #[serde(deserialize_with = "nullable")]
    pub question: String,
    #[serde(default, deserialize_with = "nullable")]
    pub state: String,
    /// None means the group `default`; an empty list means no tools.
    #[serde(default, deserialize_with = "names")]
    pub group: Option<Vec<String>>,
    #[serde(default, deserialize_with = "nullable")]
    pub history: Vec<AgentStep>,
    #[serde(default = "default_collection", deserialize_with = "collection")]
    pub collection: String,
    #[serde(default, deserialize_with = "nullable")]
    pub streaming: bool,
    #[serde(default, alias = "session-id", deserialize_with = "nullable")]
    pub session_id: String,
    #[serde(default, alias = "conversation-id", deserialize_with = "nullable")]
    pub conversation_id: String,
    #[serde(default, deserialize_with = "nullable")]
    pub pattern: String,
    #[serde(default, alias = "task-type", deserialize_with = "nullable")]
    pub task_type: String,
    #[serde(default, alias = "framing_prompt", alias = "framing-prompt", deserialize_with = "nullable")]
    pub framing: String,
    #[serde(default, alias = "correlation-id", deserialize_with = "nullable")]
    pub correlation_id: String,
    #[serde(default, alias = "parent-session-id", deserialize_with = "nullable")]
    pub parent_session_id: String,
    #[serde(default, alias = "subagent-goal", deserialize_with = "nullable")]
    pub subagent_goal: String,
    #[serde(default, alias = "expected-siblings", deserialize_with = "nullable")]
    pub expected_siblings: u32,
}

impl Default for AgentRequest {
    fn default() -> Self {
        Self {
            question: String::new(),
            state: String::new(),
            group: None,
            history: Vec::new(),
            collection: default_collection(),
            streaming: false,
            session_id: String::new(),
            conversation_id: String::new(),
            pattern: String::new(),
            task_type: String::new(),
            framing: String::new(),
            correlation_id: String::new(),
            parent_session_id: String::new(),
            subagent_goal: String::new(),
            expected_siblings: 0,
        }
    }
}

/// One step of a history.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStep {
    #[serde(default, deserialize_with = "nullable")]
    pub thought: String,
    #[serde(default, deserialize_with = "nullable")]
    pub action: String,
    #[serde(default, deserialize_with = "texts")]
    pub arguments: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "nullable")]
    pub observation: String,
    #[serde(default, alias = "step-type", deserialize_with = "nullable")]
    pub step_type: String,
    #[serde(default, deserialize_with = "nullable")]
    pub plan: Vec<PlanStep>,
    #[serde(default, alias = "subagent-results", deserialize_with = "texts")]
    pub subagent_results: BTreeMap<String, String>,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanStep {
    #[serde(default, deserialize_with = "nullable")]
    pub goal: String,
    #[serde(default, alias = "tool-hint", deserialize_with = "nullable")]
    pub tool_hint: String,
    #[serde(default, alias = "depends-on", deserialize_with = "nullable")]
    pub depends_on: Vec<u32>,
    #[serde(default, deserialize_with = "nullable")]
    pub status: StepStatus,
    #[serde(default, deserialize_with = "nullable")]
    pub result: String,
}

/// The state of a plan step. Written as the original writes it; the specification's `complete` is read too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepStatus {
    #[default]
    Pending,
    Running,
    #[serde(alias = "complete")]
    Completed,
    Failed,
    Revised,
}

/// One message of the answer's stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct AgentResponse {
    #[serde(
        default,
        alias = "chunk_type",
        alias = "chunk-type",
        alias = "message-type",
        deserialize_with = "nullable"
    )]
    pub message_type: String,
    #[serde(default, deserialize_with = "nullable")]
    pub content: String,
    #[serde(default, alias = "end-of-message", deserialize_with = "nullable")]
    pub end_of_message: bool,
    #[serde(default, alias = "end-of-dialog", deserialize_with = "nullable")]
    pub end_of_dialog: bool,
    #[serde(default, alias = "explain-id")]
    pub explain_id: Option<String>,
    #[serde(default, alias = "explain-graph")]
    pub explain_graph: Option<String>,
    #[serde(default, alias = "explain-triples", deserialize_with = "nullable")]
    pub explain_triples: Vec<Quad>,
    #[serde(default, alias = "message-id", deserialize_with = "nullable")]
    pub message_id: String,
    #[serde(default, alias = "session-id", deserialize_with = "nullable")]
    pub session_id: String,
    #[serde(default)]
    pub error: Option<ErrorInfo>,
    #[serde(default)]
    pub in_token: Option<u64>,
    #[serde(default)]
    pub out_token: Option<u64>,
    #[serde(default)]
    pub model: Option<String>,
}

/// An error as the wire carries it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    #[serde(rename = "type", default, deserialize_with = "nullable")]
    pub kind: String,
    #[serde(default, deserialize_with = "nullable")]
    pub message: String,
}

/// The values of `message_type`.
pub mod message_type {
    pub const THOUGHT: &str = "thought";
    pub const ACTION: &str = "action";
    pub const OBSERVATION: &str = "observation";
    pub const ANSWER: &str = "answer";
    pub const EXPLAIN: &str = "explain";
    pub const ERROR: &str = "error";
}
