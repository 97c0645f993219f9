//! The order in which the steps of a session are read.

use super::act::is_act;
use super::parts::number;
use crate::graph::{QuadIndex, Subject};
use crate::iri;
use crate::vocabulary::{prov, tg, trellis};

/// Phase; number of the iteration, plan or round; what came of it; number of the result.
pub(super) type StepOrder = (u8, u32, u8, u32);

const BEGINNING: u8 = 0;
const ACTS: u8 = 1;
const UNUSED: u8 = 2;
const LATE: u8 = 3;
const END: u8 = 4;

/// Where a step stands. Numbers decide, not names: `i10` comes after `i9`.
pub(super) fn place(graph: &QuadIndex<'_>, node: Subject<'_>) -> StepOrder {
    let result = number(node).unwrap_or(0);
    if is_act(node) {
        // Behind what it is about: an iteration with its observation, or a round with its findings.
        (ACTS, result, 3, 0)
    } else if node.is(tg::class::PATTERN_DECISION) {
        (BEGINNING, 0, 0, 0)
    } else if node.is(tg::class::CONCLUSION) || node.is(tg::class::SYNTHESIS) {
        (END, 0, 0, 0)
    } else if node.is(trellis::class::UNUSED_REPLY) {
        (UNUSED, 0, 0, 0)
    } else if is_step(node) {
        (ACTS, plan_of(node), 1, result)
    } else if node.is(trellis::class::LATE_RESULT) {
        let step = node.links(prov::WAS_DERIVED_FROM).next().and_then(|step| graph.subject(step));
        (ACTS, step.map_or(0, plan_of), 1, step.and_then(number).unwrap_or(0))
    } else if node.is(tg::class::FINDING) {
        (ACTS, round_of_finding(node), 1, result)
    } else if node.is(tg::class::OBSERVATION) {
        (ACTS, iteration(node), 2, call(node))
    } else if node.is(trellis::class::REVIEW) {
        (ACTS, iri::number_of(node.iri, "review").unwrap_or(0), 2, 0)
    } else if node.is(tg::class::PLAN) || node.is(trellis::class::PLAN_REVIEW) {
        (ACTS, plan_number(node.iri), 0, 0)
    } else if node.is(tg::class::DECOMPOSITION) {
        (ACTS, round(node.iri), 0, 0)
    } else if iri::iteration_of(node.iri).is_some() {
        (ACTS, iteration(node), 1, call(node))
    } else {
        (LATE, 0, 0, 0)
    }
}

/// A plan step, whether it has a result or not.
pub(super) fn is_step(node: Subject<'_>) -> bool {
    node.is(tg::class::STEP_RESULT) || node.is(trellis::class::UNFINISHED_STEP)
}

/// Which of the calls of an iteration a node belongs to; 0 for the first.
fn call(node: Subject<'_>) -> u32 {
    let mut path = iri::path_of(node.iri).unwrap_or_default().split('/').skip(1);
    path.next().filter(|word| *word == "call").and(path.next()).and_then(|call| call.parse().ok()).unwrap_or(0)
}

/// The iteration's number; some foreign graphs have it in the IRI only.
pub(super) fn iteration(node: Subject<'_>) -> u32 {
    number(node).or_else(|| iri::iteration_of(node.iri)).unwrap_or(0)
}

/// The first plan is 0, revision `k` is `k`.
pub(super) fn plan_number(plan: &str) -> u32 {
    iri::number_of(plan, "plan").unwrap_or(0)
}

fn plan_of(step: Subject<'_>) -> u32 {
    step.links(prov::WAS_DERIVED_FROM).next().map_or(0, plan_number)
}

/// The first decomposition is 1.
pub(super) fn round(decomposition: &str) -> u32 {
    iri::number_of(decomposition, "decompose").unwrap_or(1)
}

/// The round whose decomposition a finding derives from.
pub(super) fn round_of_finding(finding: Subject<'_>) -> u32 {
    let own = |iri: &&str| iri::session_of(iri) == iri::session_of(finding.iri);
    finding.links(prov::WAS_DERIVED_FROM).find(own).map_or(1, round)
}
