//! Acts: what a record means to a reader, and the event of the graph that each becomes.

use crate::documents::DocumentRef;
use crate::iri;
use crate::node::Node;
use crate::vocabulary::{prov, rdf, tg, trellis};
use std::collections::BTreeSet;
use trellis_domain::rdf::Quad;
use trellis_domain::record::{Explained, Header};
use trellis_domain::{ConversationId, SessionId};

/// One provenance event: what a record adds to the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub seq: u64,
    pub session: SessionId,
    /// IRI of the node that the event is about.
    pub explain_id: String,
    /// What goes into the graph. A node's first parent is the one that the original would name.
    pub quads: Vec<Quad>,
}

impl Event {
    /// What goes along with the message: the same without the classes and documents of accompanying nodes that the
    /// stock reader would take for the event's own.
    pub fn into_inline(mut self) -> Vec<Quad> {
        self.quads.retain(|quad| !misleads(quad, &self.explain_id));
        self.quads
    }
}

/// One act of an agent, as the pattern that it belongs to describes it.
#[derive(Debug)]
pub struct Act {
    /// IRI of the node that it is about.
    pub id: String,
    /// The main node first, then those that travel with it.
    pub nodes: Vec<Node>,
}

/// An event and the documents that it refers to.
#[derive(Debug)]
pub struct Draft {
    pub event: Event,
    pub documents: Vec<DocumentRef>,
}

impl Draft {
    /// What a tool tells of a step of its own, unchanged.
    pub fn told(header: &Header, told: &Explained) -> Self {
        let Explained { id, quads } = told.clone();
        let event = Event { seq: header.seq, session: header.session.clone(), explain_id: id, quads };
        Self { event, documents: Vec::new() }
    }
}

impl Act {
    /// Puts the event together. What every node says is said here: the conversation it belongs to; and what every main node
    /// says: the place and time of its record in the run.
    pub fn into_draft(self, header: &Header, conversation: Option<&ConversationId>) -> Draft {
        let Self { id: explain_id, mut nodes } = self;
        if header.late {
            // Nothing follows from what is late, so the activity says that it is there.
            nodes.push(Node::new(iri::run(&header.session)).link(trellis::LATE_NODE, &explain_id));
        }
        // What the nodes say now, and what is said of each below.
        let room = nodes.iter().map(Node::statements).sum::<usize>() + nodes.len() + 2;
        let (mut quads, mut documents, mut seen) = (Vec::with_capacity(room), Vec::new(), BTreeSet::new());
        for node in nodes {
            let is_new = seen.insert(node.iri().to_owned());
            let is_main = is_new && node.iri() == explain_id;
            let (said, texts) = node
                .texts(prov::GENERATED_AT_TIME, is_main.then_some(header.time))
                .texts(trellis::SEQ, is_main.then_some(header.seq))
                .texts(trellis::CONVERSATION_ID, conversation.filter(|_| is_new))
                .into_parts();
            quads.extend(said);
            documents.extend(texts.into_iter().map(|text| DocumentRef::new(header, conversation, text)));
        }
        let event = Event { seq: header.seq, session: header.session.clone(), explain_id, quads };
        Draft { event, documents }
    }
}

/// Whether the stock reader, which looks at all nodes of an event alike, would take it for something else, or a thought
/// for its answer. A thought's document has the name of its node, so nothing is lost.
fn misleads(quad: &Quad, explain_id: &str) -> bool {
    let is_of = |class: &str| quad.o.as_iri() == Some(class);
    let accompanies = quad.s.as_iri() != Some(explain_id);
    match quad.p.as_iri() {
        Some(rdf::TYPE) => is_of(tg::class::REFLECTION) || is_of(tg::class::STEP_RESULT) && accompanies,
        Some(tg::DOCUMENT) => accompanies,
        Some(_) | None => false,
    }
}
