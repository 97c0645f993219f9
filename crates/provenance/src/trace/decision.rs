//! Choices, read back from the graph.

use super::parts::{Cost, cost};
use crate::graph::{QuadIndex, Subject};
use crate::vocabulary::trellis;
use serde::Serialize;
use std::str::FromStr;
use trellis_domain::decision::{DecidedBy, DecisionKind, Enforcement, Excluded};

/// A word of a closed list, or one that we do not know: reading a trace loses nothing, and
/// [`check`](crate::check()) reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Word<T> {
    Known(T),
    Unknown(String),
}

impl<T> Word<T> {
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }
}

/// One choice with the set it was made from. The graph keeps no order: lists are sorted by text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DecisionTrace {
    pub id: String,
    pub kind: Option<Word<DecisionKind>>,
    pub options: Vec<String>,
    pub excluded: Vec<Excluded>,
    pub chosen: Vec<String>,
    pub source: Option<String>,
    pub config_version: Option<u64>,
    pub decided_by: Option<Word<DecidedBy>>,
    pub enforcement: Option<Word<Enforcement>>,
    pub signals: Vec<String>,
    /// Id of the document with the model's reason: a claim, not a fact.
    pub rationale: Option<String>,
    /// Id of the document with a reply that was outside the set.
    pub rejected: Option<String>,
    /// Id of the document with the goal that the choice was made for.
    pub goal: Option<String>,
    /// What asking for it took, if the node that it belongs to does not tell.
    pub cost: Cost,
}

/// The choices that belong to a node, by IRI.
pub(crate) fn decisions(graph: &QuadIndex<'_>, node: Subject<'_>) -> Vec<DecisionTrace> {
    node.links(trellis::DECISION).filter_map(|iri| graph.subject(iri)).map(decision).collect()
}

pub(crate) fn decision(node: Subject<'_>) -> DecisionTrace {
    DecisionTrace {
        id: node.iri.to_owned(),
        kind: word(node, trellis::DECISION_KIND),
        options: node.all_texts(trellis::OPTION),
        excluded: node.texts(trellis::EXCLUDED_OPTION).map(excluded).collect(),
        chosen: node.all_texts(trellis::CHOSEN),
        source: node.link(trellis::OPTION_SOURCE),
        config_version: node.number(trellis::CONFIG_VERSION),
        decided_by: word(node, trellis::DECIDED_BY),
        enforcement: word(node, trellis::ENFORCEMENT),
        signals: node.all_texts(trellis::SIGNAL),
        rationale: node.link(trellis::RATIONALE),
        rejected: node.link(trellis::REJECTED_REPLY),
        goal: node.link(trellis::FOR_GOAL),
        cost: cost(node),
    }
}

pub(crate) fn word<T: FromStr>(node: Subject<'_>, property: &str) -> Option<Word<T>> {
    let found = node.texts(property).next()?;
    Some(found.parse().map_or_else(|_| Word::Unknown(found.to_owned()), Word::Known))
}

/// Names hold no `: `, reasons may.
fn excluded(text: &str) -> Excluded {
    let (name, reason) = text.split_once(": ").unwrap_or((text, ""));
    Excluded { name: name.to_owned(), reason: reason.to_owned() }
}
