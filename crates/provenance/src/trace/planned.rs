//! What a plan wants done, read back from the graph.

use super::parts::number;
use crate::graph::{QuadIndex, Subject};
use crate::vocabulary::{tg, trellis};
use serde::Serialize;

/// A step as it was planned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PlannedStep {
    /// IRI of the node; none in a graph that has the goals alone.
    pub id: Option<String>,
    /// Counts from 0 over all plans of the session.
    pub number: Option<u32>,
    pub goal: String,
    /// Advice, not an order.
    pub tool_hint: Option<String>,
    /// Numbers of the steps whose results it needs.
    pub depends_on: Vec<u32>,
    /// IRI of the plan that took its place.
    pub superseded_by: Option<String>,
}

/// The steps of a plan by number, then the goals that have none.
pub(super) fn planned_steps(graph: &QuadIndex<'_>, plan: Subject<'_>) -> Vec<PlannedStep> {
    let nodes = plan.links(trellis::PLANNED_STEP).filter_map(|iri| graph.subject(iri));
    let mut steps: Vec<_> = nodes.map(|node| planned_step(graph, node)).collect();
    steps.sort_by_key(|step| step.number);
    let bare = plan.texts(tg::PLAN_STEP).filter(|goal| !steps.iter().any(|step| step.goal == *goal));
    let bare: Vec<_> = bare.map(|goal| PlannedStep { goal: goal.to_owned(), ..PlannedStep::default() }).collect();
    steps.extend(bare);
    steps
}

fn planned_step(graph: &QuadIndex<'_>, node: Subject<'_>) -> PlannedStep {
    let needs = node.links(trellis::DEPENDS_ON_PLANNED).filter_map(|iri| number(graph.subject(iri)?));
    let mut depends_on: Vec<_> = needs.collect();
    depends_on.sort_unstable();
    PlannedStep {
        id: Some(node.iri.to_owned()),
        number: number(node),
        goal: node.text(trellis::GOAL).unwrap_or_default(),
        tool_hint: node.text(trellis::TOOL_HINT),
        depends_on,
        superseded_by: node.link(trellis::SUPERSEDED_BY),
    }
}
