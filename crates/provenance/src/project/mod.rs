//! Records to quads.
//!
//! Each record that means something to a reader becomes one event under the IRI of its main node.
//! Nodes that only the specification or only we know travel inside the event of the node they belong
//! to, so that readers which know neither see a complete graph all the same.

mod beginning;
mod conclusion;
pub(crate) mod decision;
pub(crate) mod iteration;

use crate::node::Node;
use crate::session::{Session, sessions};
use crate::vocabulary::{rdf, tg, trellis};
use std::borrow::Borrow;
use trellis_domain::SessionId;
use trellis_domain::document::Document;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::record::{Body, Header, Record};

/// One provenance event: what a record adds to the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub seq: u64,
    pub session: SessionId,
    /// IRI of the node that the event is about.
    pub explain_id: String,
    /// What goes into the graph. A node's first parent is the one that the original would name.
    pub quads: Vec<Quad>,
    /// What goes along with the message: the same without the class `tg:Reflection`, which would hide
    /// the event's own node from the stock reader.
    pub inline: Vec<Quad>,
}

/// The graph of these records: sorted, each quad once, whatever order the records come in.
///
/// ```
/// use trellis_domain::rdf::Term;
/// use trellis_domain::record::Record;
/// use trellis_provenance::{project, vocabulary::tg};
///
/// # let hash = trellis_domain::Hash::ZERO.to_string();
/// # let header = serde_json::json!({
/// #     "format": 1, "workspace": "default", "flow": "default", "run": "8f2c1a", "session": "8f2c1a",
/// #     "name": "session", "seq": 1, "version": 1, "causes": [], "parents": [], "content": hash,
/// #     "config": hash, "attempt": 1, "time": 0,
/// # });
/// # let body = serde_json::json!({
/// #     "event": "accepted", "question": "why?", "request": hash, "group": null, "state": "",
/// #     "collection": "default", "streaming": false,
/// # });
/// # let stored = format!("{header}\n{body}");
/// let accepted = Record::from_bytes(stored.as_bytes())?;
/// let quads = project(&[accepted]);
/// let query = quads.iter().find(|quad| quad.p == Term::iri(tg::QUERY)).expect("a question was accepted");
/// assert_eq!(query.s, Term::iri("urn:trustgraph:agent:8f2c1a"));
/// assert_eq!(query.o, Term::literal("why?"));
/// # Ok::<(), trellis_domain::record::UnreadableRecord>(())
/// ```
pub fn project<R: Borrow<Record>>(records: &[R]) -> Vec<Quad> {
    let mut quads: Vec<Quad> = events(records).into_iter().flat_map(|event| event.quads).collect();
    quads.sort_unstable();
    quads.dedup();
    quads
}

/// The events of these records, in order of their sequence. What comes later never changes an event.
pub fn events<R: Borrow<Record>>(records: &[R]) -> Vec<Event> {
    let sessions = sessions(records);
    let mut events: Vec<Event> = sessions.iter().flat_map(session_events).collect();
    events.sort_by(|a, b| (a.seq, &a.session).cmp(&(b.seq, &b.session)));
    events
}

fn session_events<'a>(session: &'a Session<'_>) -> impl Iterator<Item = Event> + 'a {
    session.records.iter().filter_map(|record| event(session, record))
}

/// A record's event; none if the record's content appears with a later record, or not in the graph.
fn event(session: &Session<'_>, record: &Record) -> Option<Event> {
    let header = &record.header;
    let (explain_id, nodes) = match &record.body {
        Body::Accepted(accepted) => beginning::question(session, header, accepted),
        Body::Routed(routed) => beginning::routing(session, header, routed),
        Body::Replied(replied) => iteration::reply(session, header, replied)?,
        Body::Observed(observed) => iteration::observation(session, header, observed)?,
        Body::Ended(ended) => conclusion::conclusion(session, header, ended),
    };
    Some(new_event(header, explain_id, nodes))
}

fn new_event(header: &Header, explain_id: String, nodes: Vec<Node>) -> Event {
    let quads: Vec<Quad> = nodes.into_iter().flat_map(Node::into_quads).collect();
    let reflection = (Term::iri(rdf::TYPE), Term::iri(tg::class::REFLECTION));
    let inline = quads.iter().filter(|quad| (&quad.p, &quad.o) != (&reflection.0, &reflection.1)).cloned().collect();
    Event { seq: header.seq, session: header.session.clone(), explain_id, quads, inline }
}

/// A stored thought, as a node of the same name as its document.
fn thought(iri: &str, parent: &str, message_id: &str, document: &Document) -> Node {
    let streamed_under_another_name = (message_id != iri).then_some(message_id);
    Node::new(iri)
        .types(&[tg::class::REFLECTION, tg::class::THOUGHT])
        .label("Thought")
        .derived_from([parent])
        .document(iri, Some(document))
        .texts(trellis::MESSAGE_ID, streamed_under_another_name)
}

#[cfg(test)]
#[path = "../project_tests.rs"]
mod tests;
