//! Records to quads.
//!
//! Each record that means something to a reader becomes one event under the IRI of its main node; a join becomes one
//! per finding. Nodes that only the specification or only we know travel inside the event of the node they belong
//! to, so that readers which know neither see a complete graph all the same.

mod asked;
mod beginning;
mod completion;
mod decision;
mod decomposition;
mod end;
mod event;
mod finding;
mod iteration;
mod late;
mod leftovers;
mod plan;
mod planned;
mod review;
mod step;

pub use event::Event;

use crate::asking::Question;
use crate::node::Node;
use crate::session::{Session, iteration as iteration_of, step_result};
use event::{Draft, draft};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use trellis_domain::SessionId;
use trellis_domain::rdf::Quad;
use trellis_domain::record::{Body, Header, Name, Observed, Record, Replied};

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
    drafts(records).map(|draft| draft.event).collect()
}

/// The events of these records with the documents that they refer to, whatever order the records come in.
pub(crate) fn drafts<R: Borrow<Record>>(records: &[R]) -> impl Iterator<Item = Draft> {
    let mut sorted: Vec<&Record> = records.iter().map(Borrow::borrow).collect();
    sorted.sort_by(|a, b| place(a).cmp(&place(b)));
    let mut projector = Projector::new();
    sorted.into_iter().flat_map(move |record| projector.drafts(record))
}

fn place(record: &Record) -> (u64, &SessionId, &Name) {
    (record.header.seq, &record.header.session, &record.header.name)
}

/// Projects records one by one, as they are committed. It keeps no more of them than later events need.
///
/// ```
/// use trellis_provenance::Projector;
///
/// let mut projector = Projector::new();
/// # let records: Vec<trellis_domain::record::Record> = Vec::new();
/// for record in &records {
///     for event in projector.apply(record) {
///         println!("{}", event.explain_id);
///     }
/// }
/// ```
#[derive(Debug, Default)]
pub struct Projector {
    sessions: BTreeMap<SessionId, Session>,
}

impl Projector {
    pub fn new() -> Self {
        Self::default()
    }

    /// What the next record adds. The records of a session come in the order of their sequence; one that was there
    /// before adds nothing.
    pub fn apply(&mut self, record: &Record) -> Vec<Event> {
        self.drafts(record).into_iter().map(|draft| draft.event).collect()
    }

    fn drafts(&mut self, record: &Record) -> Vec<Draft> {
        let id = &record.header.session;
        let session = self.sessions.entry(id.clone()).or_insert_with(|| Session::new(id.clone()));
        if !session.notice(record) {
            return Vec::new();
        }
        let about = about(session, record);
        about.into_iter().map(|(explain_id, nodes)| draft(session, &record.header, explain_id, nodes)).collect()
    }
}

/// The main nodes of a record, each with what travels along; none if the record's content appears with a later
/// record, or not in the graph.
fn about(session: &mut Session, Record { header, body }: &Record) -> Vec<(String, Vec<Node>)> {
    match body {
        Body::Accepted(accepted) => {
            session.begin(accepted);
            vec![beginning::question(session, header, accepted)]
        }
        Body::Routed(routed) => vec![beginning::routing(session, header, routed)],
        Body::Replied(replied) => reply(session, header, replied).into_iter().collect(),
        Body::Observed(observed) => observation(session, header, observed).into_iter().collect(),
        Body::FannedOut(fan_out) => vec![decomposition::decomposition(session, header, fan_out)],
        Body::Joined(joined) => finding::findings(session, header, joined),
        Body::Ended(ended) => vec![end::end(session, header, ended)],
    }
}

fn reply(session: &mut Session, header: &Header, replied: &Replied) -> Option<(String, Vec<Node>)> {
    if let Some(n) = iteration_of(header) {
        return iteration::reply(session, header, n, replied);
    }
    let question = Question::of(&header.name)?;
    if header.late {
        return Some(late::reply(session, header, question, replied));
    }
    session.keep(question, header, replied);
    match question {
        Question::Plan(k) => plan::settled(session, header, k),
        Question::Step(i) => step::answered(session, header, i),
        Question::TaskType | Question::Pattern | Question::Decompose | Question::Review(_) | Question::Synthesis => {
            None
        }
    }
}

fn observation(session: &mut Session, header: &Header, observed: &Observed) -> Option<(String, Vec<Node>)> {
    match (iteration_of(header), step_result(header)) {
        (Some(n), _) => Some(iteration::observation(session, header, n, observed)),
        (None, Some(i)) if header.late => Some(late::step_result(session, header, i, observed)),
        (None, Some(i)) => step::observed(session, header, i, observed),
        (None, None) => None,
    }
}

#[cfg(test)]
#[path = "../project_tests.rs"]
mod tests;
