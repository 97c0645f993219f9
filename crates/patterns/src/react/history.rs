//! What a ReAct session has done so far, as steps of a history.

use super::done;
use super::iterations::Done;
use crate::history::{step_type, texts};
use crate::session::Session;
use trellis_domain::document::Document;
use trellis_domain::message::AgentStep;

/// The iterations before this one.
pub(super) fn iterations(session: &Session, n: u32) -> Vec<AgentStep> {
    let step = |done: Done<'_>| AgentStep {
        thought: done.thought.to_owned(),
        action: done.action.to_owned(),
        arguments: done.arguments.map(texts).unwrap_or_default(),
        observation: done.observed.result.as_ref().map_or("", Document::text).to_owned(),
        step_type: step_type::REACT.to_owned(),
        ..AgentStep::default()
    };
    (1..n).flat_map(|i| done(session, i)).map(step).collect()
}
