//! Choices as nodes of their own, inside the event of the node that they belong to.

use crate::iri;
use crate::node::Node;
use crate::vocabulary::{trellis, trellis::class};
use trellis_domain::SessionId;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::document::Document;

/// A choice with the names it has in the graph.
#[derive(Debug)]
pub(crate) struct PlacedDecision<'a> {
    pub(crate) decision: &'a Decision,
    pub(crate) iri: String,
    rationale: String,
    rejected: String,
}

/// Names the choices that belong to a node. Two of the same kind must not merge into one node, where
/// each would hide what the other offered.
pub(crate) fn place<'a>(session: &SessionId, node: &str, decisions: &'a [Decision]) -> Vec<PlacedDecision<'a>> {
    let occurrence = |index: usize| {
        let kind = decisions[index].kind;
        let earlier = decisions[..index].iter().filter(|decision| decision.kind == kind);
        u32::try_from(earlier.count() + 1).unwrap_or(u32::MAX)
    };
    let routing = iri::decision(&iri::pattern_decision(session), DecisionKind::Pattern, 1);
    let placed = decisions.iter().enumerate().map(|(index, decision)| {
        let iri = iri::decision(node, decision.kind, occurrence(index));
        // The specification has a name of its own for this one document.
        let rationale = if iri == routing { iri::routing_rationale(session) } else { iri::decision_rationale(&iri) };
        PlacedDecision { decision, rationale, rejected: iri::decision_rejected(&iri), iri }
    });
    placed.collect()
}

impl PlacedDecision<'_> {
    pub(crate) fn stored_rationale(&self) -> Option<(&str, &Document)> {
        stored(&self.rationale, self.decision.rationale.as_ref())
    }

    pub(crate) fn stored_rejected(&self) -> Option<(&str, &Document)> {
        stored(&self.rejected, self.decision.rejected.as_ref())
    }
}

fn stored<'a>(id: &'a str, document: Option<&'a Document>) -> Option<(&'a str, &'a Document)> {
    document.filter(|document| document.stored).map(|document| (id, document))
}

/// The nodes of choices, and the content of the documents they refer to. A choice never derives from
/// anything: readers that do not know it must not walk into it.
pub(super) fn decision_nodes(placed: &[PlacedDecision<'_>]) -> Vec<Node> {
    placed.iter().flat_map(|placed| std::iter::once(decision_node(placed)).chain(hashes(placed))).collect()
}

fn decision_node(placed: &PlacedDecision<'_>) -> Node {
    let decision = placed.decision;
    let excluded = decision.excluded.iter().map(|excluded| format!("{}: {}", excluded.name, excluded.reason));
    Node::new(&placed.iri)
        .types(&[class::DECISION])
        .label(format!("Decision: {}", decision.kind))
        .text(trellis::DECISION_KIND, decision.kind)
        .texts(trellis::OPTION, &decision.options)
        .texts(trellis::EXCLUDED_OPTION, excluded)
        .texts(trellis::CHOSEN, &decision.chosen)
        .links(trellis::OPTION_SOURCE, Some(decision.source.as_str()).filter(|source| !source.is_empty()))
        .text(trellis::CONFIG_VERSION, decision.config_version)
        .text(trellis::DECIDED_BY, decision.decided_by)
        .text(trellis::ENFORCEMENT, decision.enforcement)
        .texts(trellis::SIGNAL, &decision.signals)
        .links(trellis::RATIONALE, placed.stored_rationale().map(|(id, _)| id))
        .links(trellis::REJECTED_REPLY, placed.stored_rejected().map(|(id, _)| id))
}

/// A choice may refer to two documents, so each document carries its own hash. `tg:document` stays away:
/// the stock reader takes the last one of an event for the event's own.
fn hashes<'a>(placed: &'a PlacedDecision<'_>) -> impl Iterator<Item = Node> + 'a {
    let documents = [placed.stored_rationale(), placed.stored_rejected()];
    documents.into_iter().flatten().map(|(id, document)| Node::new(id).text(trellis::DOCUMENT_HASH, document.sha256))
}
