//! Every document is there and is what it was.

use super::Fault;
use crate::graph::{QuadIndex, Subject};
use crate::iri;
use crate::vocabulary::{tg, trellis};
use trellis_domain::Hash;

/// Only agent nodes: the documents of a tool's own trace lie where the tool keeps them.
pub(super) fn faults(graph: &QuadIndex<'_>, document: &dyn Fn(&str) -> Option<String>) -> Vec<Fault> {
    let nodes = graph.subjects().filter(|node| iri::session_of(node.iri).is_some());
    let references = nodes.flat_map(|node| references(graph, node));
    references.filter_map(|reference| reference.fault(document)).collect()
}

struct Reference<'g> {
    node: &'g str,
    document: &'g str,
    hash: Option<String>,
}

/// A node with `tg:document` says itself what the content hashes to. The documents of a choice and of a fan-out, and a
/// history that was brought along, each say it for themselves.
fn references<'g>(graph: &'g QuadIndex<'_>, node: Subject<'g>) -> Vec<Reference<'g>> {
    let own = node.links(tg::DOCUMENT).map(|document| (document, Some(node)));
    let of_choices = [trellis::RATIONALE, trellis::REJECTED_REPLY, tg::SUBAGENT_GOALS, trellis::FOR_GOAL];
    let properties = of_choices.into_iter().chain([trellis::BROUGHT_HISTORY]);
    let pinned = properties.flat_map(|property| node.links(property));
    let all = own.chain(pinned.map(|document| (document, graph.subject(document))));
    all.map(|(document, pinned_by)| Reference {
        node: node.iri,
        document,
        hash: pinned_by.and_then(|subject| subject.text(trellis::DOCUMENT_HASH)),
    })
    .collect()
}

impl Reference<'_> {
    fn fault(&self, document: &dyn Fn(&str) -> Option<String>) -> Option<Fault> {
        let (node, id) = (self.node.to_owned(), self.document.to_owned());
        let Some(text) = document(self.document) else {
            return Some(Fault::DocumentMissing { node, document: id });
        };
        match &self.hash {
            None => Some(Fault::DocumentNotPinned { node, document: id }),
            Some(hash) if *hash == Hash::of(&text).to_string() => None,
            Some(_) => Some(Fault::DocumentChanged { node, document: id }),
        }
    }
}
