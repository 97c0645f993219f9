//! Plans and their steps, read back from the graph.

use super::decision::{DecisionTrace, decisions};
use super::order::plan_number;
use super::parts::{
    Cost, DocumentLink, Mark, Thought, all_links, arguments, cost, document, flag, mark, number, thoughts,
};
use super::planned::{PlannedStep, planned_steps};
use crate::graph::{QuadIndex, Subject};
use crate::iri;
use crate::vocabulary::{prov, tg, trellis};
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    pub id: String,
    /// The first plan is 0, revision `k` is `k`.
    pub number: u32,
    pub steps: Vec<PlannedStep>,
    /// The model's reason for changing the plan: a claim, not a fact.
    pub replan_reason: Option<String>,
    /// Goals of earlier plans that this one replaces.
    pub superseded: Vec<String>,
    /// What had to be put right in the model's plan.
    #[serde(rename = "mended")]
    pub repairs: Vec<String>,
    /// Why the model's plan could not be used, if it could not.
    pub error: Option<String>,
    pub decisions: Vec<DecisionTrace>,
    pub thoughts: Vec<Thought>,
    pub cost: Cost,
    pub mark: Mark,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanReview {
    pub id: String,
    pub number: u32,
    /// IRI of the plan that stays in force.
    pub plan: Option<String>,
    pub error: Option<String>,
    pub decisions: Vec<DecisionTrace>,
    pub thoughts: Vec<Thought>,
    pub cost: Cost,
    pub mark: Mark,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepResult {
    pub id: String,
    /// Counts from 0 over all plans of the session.
    pub number: u32,
    pub goal: String,
    /// IRI of the plan in force when the step ran.
    pub plan: Option<String>,
    /// IRI of the node that tells what was planned.
    pub planned: Option<String>,
    /// IRIs of the steps whose results it needed.
    pub depends_on: Vec<String>,
    pub tool: Option<String>,
    pub arguments: Option<Value>,
    pub document: Option<DocumentLink>,
    pub error: Option<String>,
    pub tool_ms: Option<u64>,
    pub state: Option<String>,
    pub idempotency_key: Option<String>,
    /// The model says that the plan did not expect this.
    pub surprising: bool,
    /// The session ended before the step did, or before it was begun.
    pub unfinished: bool,
    /// The answer's own word for how sure it is of this.
    pub confidence: Option<String>,
    pub decisions: Vec<DecisionTrace>,
    pub thoughts: Vec<Thought>,
    pub cost: Cost,
    pub mark: Mark,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LateResult {
    pub id: String,
    /// IRI of the step.
    pub of: Option<String>,
    pub document: Option<DocumentLink>,
    pub error: Option<String>,
    pub tool_ms: Option<u64>,
    pub state: Option<String>,
    pub idempotency_key: Option<String>,
    pub cost: Cost,
    pub mark: Mark,
}

pub(super) fn plan(graph: &QuadIndex<'_>, node: Subject<'_>) -> Plan {
    Plan {
        id: node.iri.to_owned(),
        number: plan_number(node.iri),
        steps: planned_steps(graph, node),
        replan_reason: node.text(trellis::REPLAN_REASON),
        superseded: node.all_texts(trellis::SUPERSEDED_STEP),
        repairs: node.all_texts(trellis::MENDED),
        error: node.text(tg::TOOL_ERROR),
        decisions: decisions(graph, node),
        thoughts: thoughts(graph, node),
        cost: cost(node),
        mark: mark(node),
    }
}

pub(super) fn plan_review(graph: &QuadIndex<'_>, node: Subject<'_>) -> PlanReview {
    PlanReview {
        id: node.iri.to_owned(),
        number: plan_number(node.iri),
        plan: node.link(prov::WAS_DERIVED_FROM),
        error: node.text(tg::TOOL_ERROR),
        decisions: decisions(graph, node),
        thoughts: thoughts(graph, node),
        cost: cost(node),
        mark: mark(node),
    }
}

pub(super) fn step_result(graph: &QuadIndex<'_>, node: Subject<'_>) -> StepResult {
    StepResult {
        id: node.iri.to_owned(),
        number: number(node).or_else(|| iri::number_of(node.iri, "step")).unwrap_or(0),
        goal: node.text(tg::PLAN_STEP).unwrap_or_default(),
        plan: node.link(prov::WAS_DERIVED_FROM),
        planned: node.link(trellis::PLANNED),
        depends_on: all_links(node, trellis::DEPENDS_ON_STEP),
        tool: node.text(trellis::TOOL),
        arguments: node.text(trellis::ARGUMENTS).map(arguments),
        document: document(node),
        error: node.text(tg::TOOL_ERROR),
        tool_ms: node.number(tg::TOOL_DURATION_MS),
        state: node.text(trellis::STATE),
        idempotency_key: node.text(trellis::IDEMPOTENCY_KEY),
        surprising: flag(node, trellis::SURPRISING),
        unfinished: flag(node, trellis::UNFINISHED),
        confidence: node.text(trellis::CONFIDENCE),
        decisions: decisions(graph, node),
        thoughts: thoughts(graph, node),
        cost: cost(node),
        mark: mark(node),
    }
}

pub(super) fn late_result(node: Subject<'_>) -> LateResult {
    LateResult {
        id: node.iri.to_owned(),
        of: node.link(prov::WAS_DERIVED_FROM),
        document: document(node),
        error: node.text(tg::TOOL_ERROR),
        tool_ms: node.number(tg::TOOL_DURATION_MS),
        state: node.text(trellis::STATE),
        idempotency_key: node.text(trellis::IDEMPOTENCY_KEY),
        cost: cost(node),
        mark: mark(node),
    }
}
