//! Quads to typed steps: what a reader of the graph sees.
//!
//! The trace is read from the quads alone, so it works for what we projected, for what came over the
//! wire, and for what another program wrote; what is not there stays absent.

mod decision;
mod read;

pub use decision::{Decision, Word};
pub(crate) use decision::{decision, decisions};
pub use read::trace;

use serde::Serialize;
use serde_json::Value;
use trellis_domain::run::Termination;

/// Everything that some quads say about agent sessions, the earliest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Trace {
    pub sessions: Vec<SessionTrace>,
}

/// One session: its question and how it went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionTrace {
    /// IRI of the question.
    pub id: String,
    pub session: String,
    pub question: String,
    pub started: Option<String>,
    pub ended: Option<String>,
    pub conversation: Option<String>,
    pub pattern: Option<String>,
    pub task_type: Option<String>,
    pub steps: Vec<Step>,
    pub totals: Totals,
}

/// What a whole session took, as far as it was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub in_token: Option<u64>,
    pub out_token: Option<u64>,
    pub model_calls: Option<u64>,
    pub tool_calls: Option<u64>,
}

/// One step. The routing comes first, then the iterations by number, then the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    Routing(Routing),
    Analysis(Analysis),
    Observation(Observation),
    /// A reply that would have ended the session, had it come in time.
    LateReply(LateReply),
    Conclusion(Conclusion),
}

impl Step {
    /// IRI of the step's node.
    pub fn id(&self) -> &str {
        match self {
            Self::Routing(step) => &step.id,
            Self::Analysis(step) => &step.id,
            Self::Observation(step) => &step.id,
            Self::LateReply(step) => &step.id,
            Self::Conclusion(step) => &step.id,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Routing {
    pub id: String,
    pub pattern: Option<String>,
    pub task_type: Option<String>,
    pub decisions: Vec<Decision>,
    pub mark: Mark,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    pub id: String,
    pub n: u32,
    pub tool: String,
    /// The arguments as JSON; as plain text if they are none.
    pub arguments: Value,
    pub candidates: Vec<String>,
    pub decisions: Vec<Decision>,
    pub thought: Option<Thought>,
    pub cost: Cost,
    pub mark: Mark,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observation {
    pub id: String,
    pub n: u32,
    pub document: Option<DocumentLink>,
    pub error: Option<String>,
    pub tool_ms: Option<u64>,
    /// What the tool spent on models of its own.
    pub cost: Cost,
    /// The state that holds afterwards, if it changed.
    pub state: Option<String>,
    pub idempotency_key: Option<String>,
    pub mark: Mark,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LateReply {
    pub id: String,
    pub n: u32,
    pub thought: Option<Thought>,
    pub cost: Cost,
    pub mark: Mark,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conclusion {
    pub id: String,
    pub reason: Option<Word<Termination>>,
    pub document: Option<DocumentLink>,
    pub error: Option<String>,
    pub decisions: Vec<Decision>,
    pub thought: Option<Thought>,
    pub cost: Cost,
    pub mark: Mark,
}

/// What asking a model took, as far as it was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    pub model: Option<String>,
    pub model_ms: Option<u64>,
    pub in_token: Option<u64>,
    pub out_token: Option<u64>,
}

/// Circumstances of the record behind a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// Counts from 1.
    pub attempt: u64,
    /// Came after the end: kept, never acted on.
    pub late: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thought {
    pub id: String,
    pub document: Option<DocumentLink>,
    /// The id under which it was streamed, if that is not the node's.
    pub message_id: Option<String>,
}

/// A document's id, and what its content must hash to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DocumentLink {
    pub id: String,
    pub sha256: Option<String>,
}

#[cfg(test)]
#[path = "../trace_tests.rs"]
mod tests;
