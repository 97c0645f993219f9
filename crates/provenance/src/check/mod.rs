//! Structural checks: what must hold in the graph of one run.

mod acts;
mod choices;
mod documents;
mod structure;
mod subagents;

use crate::graph::QuadIndex;
use trellis_domain::rdf::Quad;

/// Something in a graph that cannot be right, or, for [`Fault::NoEnd`], is not finished.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Fault {
    #[error("no agent session begins the run: none is without a parent")]
    NoRoot,
    #[error("several agent sessions have no parent: {}", roots.join(", "))]
    SeveralRoots { roots: Vec<String> },
    /// The only fault of a run that is still going on.
    #[error("{session} has no end: neither conclusion nor synthesis")]
    NoEnd { session: String },
    #[error("{session} has several ends: {}", ends.join(", "))]
    SeveralEnds { session: String, ends: Vec<String> },
    #[error("{node} refers with {property} to {target}, which is not in the graph")]
    Dangling { node: String, property: String, target: String },
    #[error("{node} derives from itself, directly or through others")]
    Cycle { node: String },
    #[error("{node} is followed by other steps but has no observation")]
    NoObservation { node: String },
    #[error("{decision} chose {chosen:?}, which was not among its options")]
    ChosenNotOffered { decision: String, chosen: String },
    #[error("{node} says {value:?}, which was not among the options of {decision}")]
    NotOffered { node: String, value: String, decision: String },
    #[error("{node} says {value:?}, but {decision} chose something else")]
    NotChosen { node: String, value: String, decision: String },
    #[error("{node} says {value:?}, but no decision was made about it")]
    NotDecided { node: String, value: String },
    #[error("{decision} chose {chosen:?}, but {node} does otherwise")]
    NotFollowed { decision: String, chosen: String, node: String },
    #[error("{node} says {value:?} for {property}, but {other} does not")]
    Disagreement { node: String, property: String, value: String, other: String },
    #[error("{node} expects {expected} {what}, but there are {found}")]
    Count { node: String, what: String, expected: u64, found: u64 },
    #[error("{node} has the unknown word {word:?} for {property}")]
    UnknownWord { node: String, property: String, word: String },
    #[error("{node} refers to the document {document}, which is missing")]
    DocumentMissing { node: String, document: String },
    #[error("{node} refers to the document {document} without saying what its content hashes to")]
    DocumentNotPinned { node: String, document: String },
    #[error("{node} refers to the document {document}, whose content is not what was recorded")]
    DocumentChanged { node: String, document: String },
}

impl Fault {
    /// What it is about; none if it is the run as a whole.
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::NoRoot | Self::SeveralRoots { .. } => None,
            Self::NoEnd { session } | Self::SeveralEnds { session, .. } => Some(session),
            Self::ChosenNotOffered { decision, .. } => Some(decision),
            Self::Dangling { node, .. }
            | Self::Cycle { node }
            | Self::NoObservation { node }
            | Self::NotOffered { node, .. }
            | Self::NotChosen { node, .. }
            | Self::NotDecided { node, .. }
            | Self::NotFollowed { node, .. }
            | Self::Disagreement { node, .. }
            | Self::Count { node, .. }
            | Self::UnknownWord { node, .. }
            | Self::DocumentMissing { node, .. }
            | Self::DocumentNotPinned { node, .. }
            | Self::DocumentChanged { node, .. } => Some(node),
        }
    }
}

/// Checks the graph of one run against its documents; finds nothing in a graph that is in order.
///
/// ```
/// use trellis_provenance::{Fault, check};
///
/// assert_eq!(check(&[], &|_| None), [Fault::NoRoot]);
/// ```
pub fn check(quads: &[Quad], document: &dyn Fn(&str) -> Option<String>) -> Vec<Fault> {
    let graph = QuadIndex::new(quads);
    let mut faults = structure::faults(&graph);
    faults.extend(choices::faults(&graph));
    faults.extend(acts::faults(&graph));
    faults.extend(subagents::faults(&graph));
    faults.extend(documents::faults(&graph, document));
    faults.sort();
    faults.dedup();
    faults
}
