//! Nodes that travel inside the act of another.

use super::asked::described;
use super::asking::Asking;
use super::decision::place;
use super::described_session::DescribedSession;
use trellis_domain::record::Name;
use trellis_provenance::iri;
use trellis_provenance::node::Node;
use trellis_provenance::vocabulary::{prov, trellis};

/// Nodes that travel with another, which points at some of them.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    pub(crate) iris: Vec<String>,
    pub(crate) nodes: Vec<Node>,
}

impl Inside {
    /// Takes in a node that is pointed at, followed by what belongs to it.
    pub(crate) fn add(&mut self, nodes: Vec<Node>) {
        self.iris.extend(nodes.first().map(|node| node.iri().to_owned()));
        self.nodes.extend(nodes);
    }
}

/// A reply that nothing came of, because the session ended.
pub(crate) fn unused(session: &DescribedSession, name: &Name, asking: &Asking) -> Vec<Node> {
    let iri = iri::named(&session.id, name);
    let main = Node::new(&iri)
        .types(&[prov::class::ENTITY, trellis::class::UNUSED_REPLY])
        .label("Unused Reply")
        .link(prov::WAS_INFLUENCED_BY, iri::session(&session.id))
        .error(asking.problem())
        .marks(asking.attempt(), false);
    described(session, main, Some(asking), place(&iri, asking.decisions()), name.as_str())
}
