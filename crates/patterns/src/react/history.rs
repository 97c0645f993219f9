//! What a ReAct session has done so far, as steps of a history.

use super::{action_of, step};
use crate::history::{arguments_of, step_type, thought_of};
use crate::session::Session;
use trellis_domain::document::Document;
use trellis_domain::message::AgentStep;

/// The iterations before this one.
pub(super) fn iterations(session: &Session, n: u32) -> Vec<AgentStep> {
    let iteration = |i: u32| {
        let (replied, observed) = step(session, i)?;
        Some(AgentStep {
            thought: thought_of(replied),
            action: action_of(replied).to_owned(),
            arguments: arguments_of(replied),
            observation: observed.result.as_ref().map_or("", Document::text).to_owned(),
            step_type: step_type::REACT.to_owned(),
            ..AgentStep::default()
        })
    };
    (1..n).filter_map(iteration).collect()
}
