//! Ends of sessions, read back from the graph.

use super::decision::{DecisionTrace, Word, decisions, word};
use super::parts::{Cost, DocumentLink, Mark, Thought, all_links, cost, document, mark, thought, thoughts};
use crate::graph::{QuadIndex, Subject};
use crate::vocabulary::{tg, trellis};
use serde::Serialize;
use trellis_domain::record::ReplyFormat;
use trellis_domain::run::Termination;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conclusion {
    pub id: String,
    pub reason: Option<Word<Termination>>,
    pub document: Option<DocumentLink>,
    pub error: Option<String>,
    /// The task type's words on when to stop.
    pub criteria: Option<String>,
    /// For how long nobody served the store while the session was open; none if somebody always did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage_ms: Option<u64>,
    /// What a limit did not let be done, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The tools of calls of which nobody knows whether they were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncertain: Vec<String>,
    pub decisions: Vec<DecisionTrace>,
    pub thought: Option<Thought>,
    /// How the model said that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Word<ReplyFormat>>,
    /// What had to be put right in the last reply.
    #[serde(rename = "mended", skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
    pub cost: Cost,
    pub mark: Mark,
}

/// The end of a plan or of a supervisor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Synthesis {
    pub id: String,
    pub reason: Option<Word<Termination>>,
    pub document: Option<DocumentLink>,
    pub error: Option<String>,
    /// The task type's words on when to stop.
    pub criteria: Option<String>,
    /// For how long nobody served the store while the session was open; none if somebody always did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage_ms: Option<u64>,
    /// What a limit did not let be done, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The tools of calls of which nobody knows whether they were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncertain: Vec<String>,
    /// One per round of a supervisor.
    pub correlations: Vec<String>,
    /// IRIs of the steps or findings that the answer says it rests on.
    pub cites: Vec<String>,
    /// IRIs of the steps or findings that it has to do without.
    pub missing: Vec<String>,
    pub decisions: Vec<DecisionTrace>,
    pub thoughts: Vec<Thought>,
    pub cost: Cost,
    pub mark: Mark,
}

pub(super) fn conclusion(graph: &QuadIndex<'_>, node: Subject<'_>) -> Conclusion {
    Conclusion {
        id: node.iri.to_owned(),
        reason: word(node, tg::TERMINATION_REASON),
        document: document(node),
        error: node.text(tg::TOOL_ERROR),
        criteria: node.text(trellis::TERMINATION_CRITERIA),
        outage_ms: node.number(trellis::OUTAGE_MS),
        left_out: node.all_texts(trellis::LEFT_OUT),
        uncertain: node.all_texts(trellis::UNCERTAIN_CALL),
        decisions: decisions(graph, node),
        thought: thought(graph, node),
        format: word(node, trellis::REPLY_FORMAT),
        repairs: node.all_texts(trellis::MENDED),
        cost: cost(node),
        mark: mark(node),
    }
}

pub(super) fn synthesis(graph: &QuadIndex<'_>, node: Subject<'_>) -> Synthesis {
    let missing = [trellis::MISSING_STEP, trellis::MISSING_FINDING].map(|property| all_links(node, property));
    Synthesis {
        id: node.iri.to_owned(),
        reason: word(node, tg::TERMINATION_REASON),
        document: document(node),
        error: node.text(tg::TOOL_ERROR),
        criteria: node.text(trellis::TERMINATION_CRITERIA),
        outage_ms: node.number(trellis::OUTAGE_MS),
        left_out: node.all_texts(trellis::LEFT_OUT),
        uncertain: node.all_texts(trellis::UNCERTAIN_CALL),
        correlations: node.all_texts(tg::CORRELATION_ID),
        cites: all_links(node, trellis::CITES),
        missing: missing.concat(),
        decisions: decisions(graph, node),
        thoughts: thoughts(graph, node),
        cost: cost(node),
        mark: mark(node),
    }
}
