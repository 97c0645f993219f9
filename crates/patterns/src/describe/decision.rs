//! Choices as nodes of their own, inside the event of the node that they belong to.

use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::document::Document;
use trellis_domain::usage::Usage;
use trellis_provenance::iri;
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::trellis;

/// A choice with the names it has in the graph.
#[derive(Debug)]
pub(crate) struct PlacedDecision<'a> {
    pub(crate) decision: &'a Decision,
    pub(crate) iri: String,
    pub(crate) rationale: NamedDocument,
    /// The goal that the choice was made for.
    pub(crate) goal: Option<String>,
    /// What asking for the choice took, if the node it belongs to does not tell.
    pub(crate) cost: Option<Usage>,
    /// The calls for it that failed, if the node it belongs to does not tell.
    pub(crate) failures: Vec<String>,
}

/// Id and title of a document.
#[derive(Debug)]
pub(crate) struct NamedDocument {
    pub(crate) id: String,
    pub(crate) title: String,
}

/// Names the choices that belong to a node. Two of the same kind must not merge into one node, where
/// each would hide what the other offered.
pub(crate) fn place<'a>(node: &str, decisions: impl IntoIterator<Item = &'a Decision>) -> Vec<PlacedDecision<'a>> {
    let mut placed: Vec<PlacedDecision<'a>> = Vec::new();
    for decision in decisions {
        let kind = decision.kind;
        let earlier = placed.iter().filter(|placed| placed.decision.kind == kind).count();
        let iri = iri::decision(node, kind, u32::try_from(earlier + 1).unwrap_or(u32::MAX));
        let rationale = NamedDocument { id: iri::decision_rationale(&iri), title: format!("Rationale: {kind}") };
        placed.push(PlacedDecision { decision, iri, rationale, goal: None, cost: None, failures: Vec::new() });
    }
    placed
}

impl PlacedDecision<'_> {
    pub(crate) fn is(&self, kind: DecisionKind) -> bool {
        self.decision.kind == kind
    }

    fn stored_rationale(&self) -> Option<&Document> {
        self.decision.rationale.as_ref().filter(|document| document.stored)
    }

    /// The document with the reason, if there is one.
    pub(crate) fn rationale_id(&self) -> Option<&str> {
        self.stored_rationale().map(|_| self.rationale.id.as_str())
    }

    /// The choice itself, and the content of the documents it refers to. A choice never derives from
    /// anything: readers that do not know it must not walk into it.
    fn into_nodes(self) -> impl Iterator<Item = Node> {
        let rejected = self.decision.rejected.as_ref().filter(|document| document.stored);
        let rejected_id = iri::decision_rejected(&self.iri);
        let title = format!("Rejected reply: {}", self.decision.kind);
        let node = self.node().links(trellis::REJECTED_REPLY, rejected.map(|_| &rejected_id));
        let NamedDocument { id, title: rationale_title } = &self.rationale;
        let rationale = self.stored_rationale().map(|document| Node::pinned(id, rationale_title, document));
        let rejected = rejected.map(|document| Node::pinned(&rejected_id, title, document));
        [Some(node), rationale, rejected].into_iter().flatten()
    }

    fn node(&self) -> Node {
        Node::choice(&self.iri, self.decision)
            .links(trellis::FOR_GOAL, self.goal.as_ref())
            .links(trellis::RATIONALE, self.rationale_id())
            .texts(trellis::FAILED_ATTEMPT, &self.failures)
            .cost(self.cost.as_ref().unwrap_or(&Usage::default()))
    }
}

pub(crate) fn decision_nodes(placed: Vec<PlacedDecision<'_>>) -> Vec<Node> {
    placed.into_iter().flat_map(PlacedDecision::into_nodes).collect()
}
