//! Fan-outs, findings and reviews, read back from the graph.

use super::decision::{DecisionTrace, Word, decisions, word};
use super::goal::{GoalTrace, goals};
use super::order::{round, round_of_finding};
use super::parts::{Cost, DocumentLink, Mark, Thought, all_links, cost, document, mark, number, thoughts};
use crate::graph::{QuadIndex, Subject};
use crate::iri;
use crate::vocabulary::{prov, tg, trellis};
use serde::Serialize;
use trellis_domain::budget::Budget;
use trellis_domain::fan_out::JoinCause;
use trellis_domain::run::Termination;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decomposition {
    pub id: String,
    /// Counts from 1.
    pub round: u32,
    pub goals: Vec<GoalTrace>,
    pub correlation: Option<String>,
    /// IRIs of the findings that a later round reacts to.
    pub reviewed: Vec<String>,
    /// What had to be put right in the model's goals.
    #[serde(rename = "mended")]
    pub repairs: Vec<String>,
    pub fan_out: Option<FanOut>,
    pub decisions: Vec<DecisionTrace>,
    pub thoughts: Vec<Thought>,
    pub cost: Cost,
    pub mark: Mark,
}

/// How the subagents of one round were sent out, and come back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FanOut {
    pub id: String,
    pub correlation: Option<String>,
    pub expected: Option<u64>,
    pub deadline: Option<String>,
    /// What each of the subagents may spend; none if there were no budgets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Budget>,
    /// One document per goal, by index.
    pub goals: Vec<DocumentLink>,
    pub join: Option<Join>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Join {
    pub id: String,
    pub cause: Option<Word<JoinCause>>,
    /// For how long nobody served the store since the fan-out; none if somebody always did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage_ms: Option<u64>,
    /// IRIs of the findings.
    pub findings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    pub id: String,
    /// Counts from 0 over all rounds of the session.
    pub index: u32,
    pub round: u32,
    pub goal: String,
    pub correlation: Option<String>,
    /// IRI of the node that the subagent ended with.
    pub subagent_end: Option<String>,
    /// Why the subagent ended.
    pub status: Option<Word<Termination>>,
    pub document: Option<DocumentLink>,
    pub error: Option<String>,
    /// The answer's own word for how sure it is of this.
    pub confidence: Option<String>,
    pub mark: Mark,
}

/// A supervisor's judgement after a round.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Review {
    pub id: String,
    pub round: u32,
    pub reviewed: Vec<String>,
    pub error: Option<String>,
    pub decisions: Vec<DecisionTrace>,
    pub thoughts: Vec<Thought>,
    pub cost: Cost,
    pub mark: Mark,
}

pub(super) fn decomposition(graph: &QuadIndex<'_>, node: Subject<'_>) -> Decomposition {
    let fan_out_node = node.links(trellis::FAN_OUT).find_map(|iri| graph.subject(iri));
    Decomposition {
        id: node.iri.to_owned(),
        round: round(node.iri),
        goals: goals(graph, node),
        correlation: node.text(tg::CORRELATION_ID),
        reviewed: all_links(node, trellis::REVIEWED_FINDING),
        repairs: node.all_texts(trellis::MENDED),
        fan_out: fan_out_node.map(|fan_out_node| fan_out(graph, fan_out_node)),
        decisions: decisions(graph, node),
        thoughts: thoughts(graph, node),
        cost: cost(node),
        mark: mark(node),
    }
}

fn fan_out(graph: &QuadIndex<'_>, node: Subject<'_>) -> FanOut {
    let mut goals: Vec<&str> = node.links(tg::SUBAGENT_GOALS).collect();
    goals.sort_by_key(|goal| goal.rsplit('/').next().and_then(|index| index.parse::<u32>().ok()));
    let goal = |id: &str| DocumentLink {
        id: id.to_owned(),
        sha256: graph.subject(id).and_then(|goal| goal.text(trellis::DOCUMENT_HASH)),
    };
    let join = node.links(trellis::JOIN).find_map(|iri| graph.subject(iri)).map(|join| Join {
        id: join.iri.to_owned(),
        cause: word(join, trellis::JOIN_CAUSE),
        outage_ms: join.number(trellis::OUTAGE_MS),
        findings: all_links(join, trellis::JOINED),
    });
    FanOut {
        id: node.iri.to_owned(),
        correlation: node.text(tg::CORRELATION_ID),
        expected: node.number(tg::EXPECTED_SIBLINGS),
        deadline: node.text(trellis::DEADLINE),
        share: share(node),
        goals: goals.into_iter().map(goal).collect(),
        join,
    }
}

fn share(node: Subject<'_>) -> Option<Budget> {
    Some(Budget {
        model_calls: u32::try_from(node.number(trellis::SHARE_MODEL_CALLS)?).ok()?,
        tokens: node.number(trellis::SHARE_TOKENS)?,
        cost_micros: node.number(trellis::SHARE_COST_MICROS)?,
        agents: u32::try_from(node.number(trellis::SHARE_AGENTS)?).ok()?,
    })
}

pub(super) fn finding(node: Subject<'_>) -> Finding {
    let mut parents = node.links(prov::WAS_DERIVED_FROM);
    let of_another = |iri: &&str| iri::session_of(iri) != iri::session_of(node.iri);
    Finding {
        id: node.iri.to_owned(),
        index: number(node).or_else(|| iri::number_of(node.iri, "finding")).unwrap_or(0),
        round: round_of_finding(node),
        goal: node.text(tg::SUBAGENT_GOAL).unwrap_or_default(),
        correlation: node.text(tg::CORRELATION_ID),
        subagent_end: parents.find(of_another).map(str::to_owned),
        status: word(node, trellis::STATUS),
        document: document(node),
        error: node.text(tg::TOOL_ERROR),
        confidence: node.text(trellis::CONFIDENCE),
        mark: mark(node),
    }
}

pub(super) fn review(graph: &QuadIndex<'_>, node: Subject<'_>) -> Review {
    Review {
        id: node.iri.to_owned(),
        round: iri::number_of(node.iri, "review").unwrap_or(0),
        reviewed: all_links(node, trellis::REVIEWED_FINDING),
        error: node.text(tg::TOOL_ERROR),
        decisions: decisions(graph, node),
        thoughts: thoughts(graph, node),
        cost: cost(node),
        mark: mark(node),
    }
}
