//! What a fan-out sent its subagents after, read back from the graph.

use crate::graph::{QuadIndex, Subject};
use crate::vocabulary::{tg, trellis};
use serde::Serialize;

/// One subagent's goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GoalTrace {
    /// Counts from 0 over all rounds of the session; none in a graph that has the goals alone.
    pub index: Option<u32>,
    pub goal: String,
    /// Id of the subagent's session.
    pub session: Option<String>,
}

/// The goals of a decomposition by number, then those that have none.
pub(super) fn goals(graph: &QuadIndex<'_>, decomposition: Subject<'_>) -> Vec<GoalTrace> {
    let fan_outs = decomposition.links(trellis::FAN_OUT).filter_map(|iri| graph.subject(iri));
    let documents = fan_outs.flat_map(|fan_out| fan_out.links(tg::SUBAGENT_GOALS));
    let mut goals: Vec<_> = documents.filter_map(|iri| goal(graph.subject(iri)?)).collect();
    goals.sort_by_key(|goal| goal.index);
    let texts = decomposition.texts(tg::SUBAGENT_GOAL);
    let bare = texts.filter(|text| !goals.iter().any(|goal| goal.goal == *text));
    let bare: Vec<_> = bare.map(|text| GoalTrace { index: None, goal: text.to_owned(), session: None }).collect();
    goals.extend(bare);
    goals
}

fn goal(node: Subject<'_>) -> Option<GoalTrace> {
    Some(GoalTrace {
        index: node.number(trellis::SIBLING_INDEX).and_then(|index| u32::try_from(index).ok()),
        goal: node.text(trellis::GOAL)?,
        session: node.text(tg::SUBAGENT_SESSION_ID),
    })
}
