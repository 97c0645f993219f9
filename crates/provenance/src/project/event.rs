//! One event of the graph, put together from its nodes.

use crate::documents::DocumentRef;
use crate::iri;
use crate::node::Node;
use crate::session::Session;
use crate::vocabulary::{rdf, tg, trellis};
use std::collections::BTreeSet;
use trellis_domain::SessionId;
use trellis_domain::rdf::Quad;
use trellis_domain::record::Header;

/// One provenance event: what a record adds to the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub seq: u64,
    pub session: SessionId,
    /// IRI of the node that the event is about.
    pub explain_id: String,
    /// What goes into the graph. A node's first parent is the one that the original would name.
    pub quads: Vec<Quad>,
    /// What goes along with the message: the same without the classes of accompanying nodes for which the stock
    /// reader would take the whole event.
    pub inline: Vec<Quad>,
}

/// An event and the documents that it refers to.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) event: Event,
    pub(crate) documents: Vec<DocumentRef>,
}

/// Puts an event together. What every node says is said here: the conversation it belongs to.
pub(super) fn draft(session: &Session, header: &Header, explain_id: String, mut nodes: Vec<Node>) -> Draft {
    if header.late {
        // Nothing follows from what is late, so the activity says that it is there.
        nodes.push(Node::new(iri::run(&session.id)).link(trellis::LATE_NODE, &explain_id));
    }
    // The stock reader takes the last document of an event for the event's own.
    nodes.sort_by_key(|node| node.iri() == explain_id || !node.says(tg::DOCUMENT));
    let conversation = session.conversation();
    let (mut quads, mut documents, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for node in nodes {
        let is_new = seen.insert(node.iri().to_owned());
        let (said, texts) = node.texts(trellis::CONVERSATION_ID, conversation.filter(|_| is_new)).into_parts();
        quads.extend(said);
        documents.extend(texts.into_iter().map(|text| DocumentRef::new(session, text)));
    }
    let inline = quads.iter().filter(|quad| !misleads(quad, &explain_id)).cloned().collect();
    let event = Event { seq: header.seq, session: header.session.clone(), explain_id, quads, inline };
    Draft { event, documents }
}

/// Whether the stock reader, which looks at the classes of all nodes of an event, would take it for something else.
fn misleads(quad: &Quad, explain_id: &str) -> bool {
    let is_of = |class: &str| quad.o.as_iri() == Some(class);
    let accompanies = quad.s.as_iri() != Some(explain_id);
    quad.p.as_iri() == Some(rdf::TYPE) && (is_of(tg::class::REFLECTION) || is_of(tg::class::STEP_RESULT) && accompanies)
}
