//! Reading the steps of a session.

use super::Step;
use super::act::{act, is_act};
use super::decision::{DecisionTrace, Word, decisions, word};
use super::end::{conclusion, synthesis};
use super::order::{is_step, iteration};
use super::parts::{Cost, DocumentLink, Mark, Thought, arguments, cost, document, mark, thought, thoughts};
use super::plan::{late_result, plan, plan_review, step_result};
use super::supervisor::{decomposition, finding, review};
use crate::graph::{QuadIndex, Subject};
use crate::iri;
use crate::vocabulary::{tg, trellis};
use serde::Serialize;
use serde_json::Value;
use trellis_domain::record::ReplyFormat;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Routing {
    pub id: String,
    pub pattern: Option<String>,
    pub task_type: Option<String>,
    /// The limits in force, as JSON.
    pub limits: Option<Value>,
    /// Where a model was asked for a choice, the choice tells what that took.
    pub decisions: Vec<DecisionTrace>,
    pub mark: Mark,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    pub id: String,
    pub n: u32,
    pub tool: String,
    /// The arguments as JSON; as plain text if they are none.
    pub arguments: Value,
    pub candidates: Vec<String>,
    pub decisions: Vec<DecisionTrace>,
    pub thought: Option<Thought>,
    /// How the model said what it wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Word<ReplyFormat>>,
    /// What had to be put right in the reply.
    #[serde(rename = "mended", skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
    pub cost: Cost,
    pub mark: Mark,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Observation {
    pub id: String,
    pub n: u32,
    pub document: Option<DocumentLink>,
    pub error: Option<String>,
    pub tool_ms: Option<u64>,
    /// What the tool spent on models of its own.
    pub cost: Cost,
    /// The state that holds afterwards, if it changed.
    pub state: Option<String>,
    pub idempotency_key: Option<String>,
    pub mark: Mark,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LateReply {
    pub id: String,
    /// The iteration; 0 if it was none.
    pub n: u32,
    /// The name of its record, such as `step/3`.
    pub name: String,
    pub error: Option<String>,
    pub decisions: Vec<DecisionTrace>,
    pub thought: Option<Thought>,
    pub cost: Cost,
    pub mark: Mark,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnusedReply {
    pub id: String,
    /// The name of its record, such as `decompose`.
    pub name: String,
    pub error: Option<String>,
    pub decisions: Vec<DecisionTrace>,
    pub thoughts: Vec<Thought>,
    pub cost: Cost,
    pub mark: Mark,
}

pub(super) fn step(graph: &QuadIndex<'_>, node: Subject<'_>) -> Option<Step> {
    let step = if is_act(node) {
        Step::PatternAct(act(graph, node))
    } else if node.is(tg::class::PATTERN_DECISION) {
        Step::Routing(routing(graph, node))
    } else if node.is(tg::class::ANALYSIS) {
        Step::Analysis(analysis(graph, node))
    } else if node.is(tg::class::OBSERVATION) {
        Step::Observation(observation(node))
    } else if node.is(tg::class::PLAN) {
        Step::Plan(plan(graph, node))
    } else if node.is(trellis::class::PLAN_REVIEW) {
        Step::PlanReview(plan_review(graph, node))
    } else if is_step(node) {
        Step::StepResult(step_result(graph, node))
    } else if node.is(tg::class::DECOMPOSITION) {
        Step::Decomposition(decomposition(graph, node))
    } else if node.is(tg::class::FINDING) {
        Step::Finding(finding(node))
    } else if node.is(trellis::class::REVIEW) {
        Step::Review(review(graph, node))
    } else if node.is(trellis::class::UNUSED_REPLY) {
        Step::UnusedReply(unused_reply(graph, node))
    } else if node.is(trellis::class::LATE_REPLY) {
        Step::LateReply(late_reply(graph, node))
    } else if node.is(trellis::class::LATE_RESULT) {
        Step::LateResult(late_result(node))
    } else if node.is(tg::class::CONCLUSION) {
        Step::Conclusion(conclusion(graph, node))
    } else if node.is(tg::class::SYNTHESIS) {
        Step::Synthesis(synthesis(graph, node))
    } else {
        return None;
    };
    Some(step)
}

fn routing(graph: &QuadIndex<'_>, node: Subject<'_>) -> Routing {
    Routing {
        id: node.iri.to_owned(),
        pattern: node.text(tg::PATTERN),
        task_type: node.text(tg::TASK_TYPE),
        limits: node.text(trellis::LIMITS).map(arguments),
        decisions: decisions(graph, node),
        mark: mark(node),
    }
}

fn analysis(graph: &QuadIndex<'_>, node: Subject<'_>) -> Analysis {
    Analysis {
        id: node.iri.to_owned(),
        n: iteration(node),
        tool: node.text(tg::ACTION).unwrap_or_default(),
        arguments: node.text(tg::ARGUMENTS).map_or(Value::Null, arguments),
        candidates: node.all_texts(tg::TOOL_CANDIDATE),
        decisions: decisions(graph, node),
        thought: thought(graph, node),
        format: word(node, trellis::REPLY_FORMAT),
        repairs: node.all_texts(trellis::MENDED),
        cost: cost(node),
        mark: mark(node),
    }
}

fn observation(node: Subject<'_>) -> Observation {
    Observation {
        id: node.iri.to_owned(),
        n: iteration(node),
        document: document(node),
        error: node.text(tg::TOOL_ERROR),
        tool_ms: node.number(tg::TOOL_DURATION_MS),
        cost: cost(node),
        state: node.text(trellis::STATE),
        idempotency_key: node.text(trellis::IDEMPOTENCY_KEY),
        mark: mark(node),
    }
}

/// The name of the record behind a node that has the record's name.
fn name(node: Subject<'_>) -> String {
    iri::path_of(node.iri).unwrap_or_default().to_owned()
}

fn late_reply(graph: &QuadIndex<'_>, node: Subject<'_>) -> LateReply {
    LateReply {
        id: node.iri.to_owned(),
        n: iri::iteration_of(node.iri).unwrap_or(0),
        name: name(node),
        error: node.text(tg::TOOL_ERROR),
        decisions: decisions(graph, node),
        thought: thought(graph, node),
        cost: cost(node),
        mark: mark(node),
    }
}

fn unused_reply(graph: &QuadIndex<'_>, node: Subject<'_>) -> UnusedReply {
    UnusedReply {
        id: node.iri.to_owned(),
        name: name(node),
        error: node.text(tg::TOOL_ERROR),
        decisions: decisions(graph, node),
        thoughts: thoughts(graph, node),
        cost: cost(node),
        mark: mark(node),
    }
}
