//! What a plan wants done, step by step.

use super::steps::{PlannedNode, PlannedSteps};
use trellis_provenance::iri;
use trellis_provenance::node::{Node, first_chars};
use trellis_provenance::vocabulary::{prov, tg, trellis};

/// The steps of a plan as it was made. They travel with it and never derive from it: readers that do not know them must
/// not walk into them.
pub(super) fn planned_steps(steps: &PlannedSteps, plan: &str) -> Vec<Node> {
    steps.brought_by(plan).map(|(i, planned)| planned_step(steps, plan, i, planned)).collect()
}

fn planned_step(steps: &PlannedSteps, plan: &str, i: u32, PlannedNode { step, .. }: &PlannedNode) -> Node {
    let needs = step.depends_on.iter().filter_map(|needed| steps.planned_iri(*needed));
    Node::new(iri::planned_step(plan, i))
        .types(&[prov::class::ENTITY, trellis::class::PLANNED_STEP])
        .label(format!("Planned step: {}", first_chars(&step.goal, 60)))
        .text(tg::STEP_NUMBER, i)
        .text(trellis::GOAL, &step.goal)
        .texts(trellis::TOOL_HINT, Some(&step.tool_hint).filter(|hint| !hint.is_empty()))
        .links(trellis::DEPENDS_ON_PLANNED, needs)
}

/// What is said of the steps that a plan takes the place of, wherever they were planned.
pub(super) fn superseded_steps(steps: &PlannedSteps, superseded: &[u32], plan: &str) -> Vec<Node> {
    let old = superseded.iter().filter_map(|i| steps.planned_iri(*i));
    old.map(|old| Node::new(old).link(trellis::SUPERSEDED_BY, plan)).collect()
}
