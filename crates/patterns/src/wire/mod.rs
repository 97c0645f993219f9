//! A turn as neighbours in TrustGraph read it: a request that carries the whole history.
//!
//! Our own workers need none of this, they read records. It is for others on the same queue, and for requests that
//! others put there.

mod read;

pub use crate::history::step_type;
pub use read::{WireTurn, is_subagent, turn_of};

use crate::registry::pattern;
use crate::session::Session;
use trellis_domain::document::Document;
use trellis_domain::message::{AgentRequest, AgentStep};
use trellis_domain::record::{Accepted, Core, Name};

/// The request that stands for a turn of this session. None for turns of fan-ins: what wakes them is the
/// [`completion`] of a subagent.
pub fn request(session: &Session, turn: &Name) -> Option<AgentRequest> {
    let accepted = session.accepted()?;
    if turn.core().is_some_and(|core| core != Core::Route) {
        return None;
    }
    let mut request = AgentRequest { history: accepted.history.clone(), ..beginning(session, accepted)? };
    if let Some(Ok(pattern)) = session.routed().map(|routed| pattern(&routed.pattern)) {
        request.history.extend(pattern.history(session, turn));
    }
    Some(request)
}

/// The request that tells a supervisor's aggregator that this subagent has ended, however it ended. None for sessions
/// that have not ended, and for those that nobody waits for.
pub fn completion(session: &Session) -> Option<AgentRequest> {
    let accepted = session.accepted().filter(|accepted| accepted.parent.is_some())?;
    let ended = session.ended()?;
    let (answer, error) = (ended.answer.as_ref().map(Document::text), ended.error.as_deref());
    let observation =
        answer.map_or_else(|| format!("Error: {}", error.unwrap_or(ended.reason.as_str())), str::to_owned);
    Some(completed(beginning(session, accepted)?, ended.reason.is_answer(), observation))
}

/// The request of a subagent as it tells of its end. None of what it was asked with matters any more.
pub fn completed(request: AgentRequest, came_through: bool, observation: String) -> AgentRequest {
    let step = AgentStep {
        thought: if came_through { "Subagent completed" } else { "Subagent did not complete" }.to_owned(),
        action: "complete".to_owned(),
        observation,
        step_type: step_type::COMPLETION.to_owned(),
        ..AgentStep::default()
    };
    AgentRequest {
        history: vec![step],
        state: String::new(),
        pattern: String::new(),
        task_type: String::new(),
        framing: String::new(),
        streaming: false,
        ..request
    }
}

/// What every request of a session says, whatever has happened in it.
fn beginning(session: &Session, accepted: &Accepted) -> Option<AgentRequest> {
    let question = session.question().to_owned();
    let parent = accepted.parent.as_ref();
    let (pattern, task_type, framing) = match session.routed() {
        Some(routed) => (Some(&routed.pattern), Some(&routed.task_type), &routed.framing),
        None => (accepted.pattern.as_ref(), accepted.task_type.as_ref(), &accepted.framing),
    };
    Some(AgentRequest {
        state: session.tool_state().to_owned(),
        group: accepted.group.as_ref().map(|names| names.iter().map(ToString::to_string).collect()),
        history: Vec::new(),
        collection: accepted.collection.as_str().to_owned(),
        streaming: accepted.streaming,
        session_id: session.id()?.as_str().to_owned(),
        conversation_id: accepted.conversation.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default(),
        pattern: pattern.map(ToString::to_string).unwrap_or_default(),
        task_type: task_type.map(ToString::to_string).unwrap_or_default(),
        framing: framing.to_string(),
        correlation_id: parent.map(|parent| parent.correlation.clone()).unwrap_or_default(),
        parent_session_id: parent.map(|parent| parent.session.as_str().to_owned()).unwrap_or_default(),
        subagent_goal: parent.map(|_| question.clone()).unwrap_or_default(),
        expected_siblings: parent.map_or(0, |parent| parent.siblings),
        question,
    })
}

#[cfg(test)]
#[path = "../wire_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "../wire_fan_out_tests.rs"]
mod fan_out_tests;

#[cfg(test)]
#[path = "../wire_plan_tests.rs"]
mod plan_tests;
