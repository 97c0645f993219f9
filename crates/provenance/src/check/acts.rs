//! What follows from a choice did follow: plans, goals and rounds are as they were decided.

use super::Fault;
use super::choices::{not_followed, of_kind};
use crate::graph::{QuadIndex, Subject};
use crate::iri;
use crate::trace::DecisionTrace;
use crate::vocabulary::{prov, tg, trellis};
use std::collections::BTreeSet;
use trellis_domain::decision::DecisionKind;
use trellis_domain::decision::option::{AGAIN, ANSWER, KEEP, REVISE};

pub(super) fn faults(graph: &QuadIndex<'_>) -> Vec<Fault> {
    let mut faults: Vec<Fault> = graph.of_class(tg::class::STEP_RESULT).flat_map(|step| goal(graph, step)).collect();
    faults.extend(graph.of_class(tg::class::PLAN).flat_map(|plan| planned(graph, plan)));
    faults.extend(graph.of_class(tg::class::DECOMPOSITION).flat_map(|node| goals(graph, node)));
    for (class, other) in [(tg::class::PLAN, KEEP), (trellis::class::PLAN_REVIEW, REVISE)] {
        faults.extend(graph.of_class(class).flat_map(|plan| chose(graph, plan, DecisionKind::Replan, other)));
    }
    faults.extend(graph.of_class(trellis::class::REVIEW).flat_map(|review| rounds(graph, review)));
    let ends = graph.of_class(tg::class::SYNTHESIS);
    faults.extend(ends.flat_map(|end| chose(graph, end, DecisionKind::Round, AGAIN)));
    faults
}

/// A step was one of its plan's, with the number it has there.
fn goal(graph: &QuadIndex<'_>, step: Subject<'_>) -> Vec<Fault> {
    let plans = step.links(prov::WAS_DERIVED_FROM).filter_map(|plan| graph.subject(plan));
    let plan = plans.into_iter().find(|node| node.is(tg::class::PLAN));
    let planned = step.links(trellis::PLANNED).find_map(|planned| graph.subject(planned));
    let faults = [
        plan.and_then(|plan| disagrees(step, tg::PLAN_STEP, plan, tg::PLAN_STEP)),
        planned.and_then(|planned| disagrees(step, tg::PLAN_STEP, planned, trellis::GOAL)),
        planned.and_then(|planned| disagrees(step, tg::STEP_NUMBER, planned, tg::STEP_NUMBER)),
    ];
    faults.into_iter().flatten().collect()
}

/// What was planned step by step is what the plan says as a whole.
fn planned(graph: &QuadIndex<'_>, plan: Subject<'_>) -> Vec<Fault> {
    let steps = plan.links(trellis::PLANNED_STEP).filter_map(|step| graph.subject(step));
    steps.filter_map(|step| disagrees(step, trellis::GOAL, plan, tg::PLAN_STEP)).collect()
}

/// What a node says for one property must be among what another says for its own.
pub(super) fn disagrees(node: Subject<'_>, property: &str, other: Subject<'_>, others: &str) -> Option<Fault> {
    let value = node.text(property)?;
    (!other.texts(others).any(|known| known == value)).then(|| Fault::Disagreement {
        node: node.iri.to_owned(),
        property: property.to_owned(),
        value,
        other: other.iri.to_owned(),
    })
}

/// Exactly the goals that were chosen.
fn goals(graph: &QuadIndex<'_>, decomposition: Subject<'_>) -> Vec<Fault> {
    let goals: BTreeSet<String> = decomposition.texts(tg::SUBAGENT_GOAL).map(str::to_owned).collect();
    let choices = of_kind(graph, decomposition, DecisionKind::Goals).filter(|choice| !choice.chosen.is_empty());
    let compare = |choice: DecisionTrace| {
        let chosen: BTreeSet<String> = choice.chosen.iter().cloned().collect();
        let (node, decision) = (decomposition.iri.to_owned(), choice.id);
        let unchosen = goals.difference(&chosen).cloned();
        let unchosen = unchosen.map(|value| Fault::NotChosen { node: node.clone(), value, decision: decision.clone() });
        let undone = chosen.difference(&goals).cloned();
        let undone = undone.map(|chosen| Fault::NotFollowed { decision: decision.clone(), chosen, node: node.clone() });
        unchosen.chain(undone).collect::<Vec<_>>()
    };
    choices.flat_map(compare).collect()
}

/// A node whose choice was what it is not.
fn chose(graph: &QuadIndex<'_>, node: Subject<'_>, kind: DecisionKind, other: &str) -> Vec<Fault> {
    let choices = of_kind(graph, node, kind).filter(|choice| choice.chosen.iter().any(|chosen| chosen == other));
    choices.flat_map(|choice| not_followed(&choice, node)).collect()
}

/// Another round follows if and only if it was chosen; if the session ended before its answer, it may be missing.
fn rounds(graph: &QuadIndex<'_>, review: Subject<'_>) -> Vec<Fault> {
    let Some((session, round)) = iri::session_of(review.iri).zip(iri::number_of(review.iri, "review")) else {
        return Vec::new();
    };
    let followed = graph.subject(&format!("{}{session}/decompose/{}", iri::AGENT, round + 1)).is_some();
    let answered = graph.within(session).any(|node| node.is(tg::class::SYNTHESIS));
    match (followed, answered) {
        (true, _) => chose(graph, review, DecisionKind::Round, ANSWER),
        (false, true) => chose(graph, review, DecisionKind::Round, AGAIN),
        (false, false) => Vec::new(),
    }
}
