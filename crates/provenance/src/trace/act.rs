//! What a pattern did that no other step has a form for, read back from the graph.

use super::decision::{DecisionTrace, Word, decisions, word};
use super::parts::{Cost, DocumentLink, Mark, Thought, arguments, cost, document, mark, number, thoughts};
use crate::graph::{QuadIndex, Subject};
use crate::vocabulary::{rdfs, tg, trellis};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use trellis_domain::record::ReplyFormat;

/// One act in the pattern's own words. Readers show it without knowing the pattern.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PatternAct {
    pub id: String,
    /// The pattern's word for it, such as `critique`.
    pub act: String,
    pub label: Option<String>,
    /// The iteration or round that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    pub document: Option<DocumentLink>,
    pub error: Option<String>,
    /// What else the pattern says of it, by the names of its own properties.
    pub facts: BTreeMap<String, Vec<String>>,
    pub decisions: Vec<DecisionTrace>,
    pub thoughts: Vec<Thought>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<Word<ReplyFormat>>,
    #[serde(rename = "mended", skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
    pub cost: Cost,
    pub mark: Mark,
}

/// Literals of ours that any node may have, and that have members of their own above.
const COMMON: &[&str] = &[
    trellis::ACT,
    trellis::ARGUMENTS,
    trellis::ATTEMPT,
    trellis::CONVERSATION_ID,
    trellis::DOCUMENT_HASH,
    trellis::FAILED_ATTEMPT,
    trellis::LATE,
    trellis::MENDED,
    trellis::REPLY_FORMAT,
    trellis::SEQ,
    trellis::TOOL,
];

pub(super) fn is_act(node: Subject<'_>) -> bool {
    node.texts(trellis::ACT).next().is_some()
}

pub(super) fn act(graph: &QuadIndex<'_>, node: Subject<'_>) -> PatternAct {
    let own = node.literals().filter(|(property, _)| !COMMON.contains(property));
    let own = own.filter_map(|(property, texts)| Some((property.strip_prefix(trellis::NS)?, texts)));
    PatternAct {
        id: node.iri.to_owned(),
        act: node.text(trellis::ACT).unwrap_or_default(),
        label: node.text(rdfs::LABEL),
        number: number(node),
        tool: node.text(trellis::TOOL),
        arguments: node.text(trellis::ARGUMENTS).map(arguments),
        document: document(node),
        error: node.text(tg::TOOL_ERROR),
        facts: own.map(|(name, texts)| (name.to_owned(), texts)).collect(),
        decisions: decisions(graph, node),
        thoughts: thoughts(graph, node),
        format: word(node, trellis::REPLY_FORMAT),
        repairs: node.all_texts(trellis::MENDED),
        cost: cost(node),
        mark: mark(node),
    }
}
