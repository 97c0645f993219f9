//! What an incoming request is, told by its fields alone.

use super::step_type;
use serde_json::Value;
use trellis_domain::message::{AgentRequest, AgentStep};

/// What a request asks for. Ids are as they were sent: nothing is known about them yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireTurn {
    /// A subagent has ended: for the fan-in and nobody else.
    Completion { session: String, correlation: String },
    /// A supervisor's subagents are joined. The original does not name the correlation; then it is empty.
    Synthesis { session: String, correlation: String },
    /// Steps have been taken: not routed, goes on where it stands.
    Continuation,
    /// A question, or the first request of a subagent.
    New,
}

/// Sorts an incoming request.
pub fn turn_of(request: &AgentRequest) -> WireTurn {
    let session = || request.session_id.clone();
    let completes = |step: &AgentStep| step.step_type == step_type::COMPLETION;
    // Both are needed: a subagent may have been told of other completions, and a completion belongs to a fan-out.
    if is_subagent(request) && request.history.iter().any(completes) {
        return WireTurn::Completion { session: session(), correlation: request.correlation_id.clone() };
    }
    match request.history.iter().rev().find_map(joined_correlation) {
        Some(correlation) => WireTurn::Synthesis { session: session(), correlation },
        None if request.history.is_empty() => WireTurn::New,
        None => WireTurn::Continuation,
    }
}

/// A subagent is any request with a correlation.
pub fn is_subagent(request: &AgentRequest) -> bool {
    !request.correlation_id.is_empty()
}

/// The correlation that a step joins; empty if it brings results without naming it. None if it joins nothing.
fn joined_correlation(step: &AgentStep) -> Option<String> {
    if step.step_type != step_type::SYNTHESISE {
        return None;
    }
    let observation: Value = serde_json::from_str(&step.observation).unwrap_or_default();
    let named = observation.get("correlation_id").and_then(Value::as_str).filter(|id| !id.is_empty());
    match named {
        Some(correlation) => Some(correlation.to_owned()),
        None => (!step.subagent_results.is_empty()).then(String::new),
    }
}
