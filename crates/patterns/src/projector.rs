//! Records to acts, and acts to quads.

use crate::contract::Pattern;
use crate::describe::asking::Asking;
use crate::describe::described_session::{DescribedSession, Routing};
use crate::describe::{Describer, beginning, end, late, park, told};
use crate::fan_out::describe::{called, came_back};
use crate::react::{Iterations, React};
use crate::registry;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use trellis_domain::SessionId;
use trellis_domain::rdf::Quad;
use trellis_domain::record::{Body, Name, Record};
use trellis_provenance::{Act, DocumentRef, Draft, Event};

/// The graph of these records: sorted, each quad once, whatever order the records come in.
///
/// ```
/// use trellis_domain::rdf::Term;
/// use trellis_domain::record::Record;
/// use trellis_patterns::project;
/// use trellis_provenance::vocabulary::tg;
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

/// Every stored document of these records, in order of their sequence.
///
/// ```
/// use trellis_domain::record::Record;
///
/// assert!(trellis_patterns::documents::<Record>(&[]).is_empty());
/// ```
pub fn documents<R: Borrow<Record>>(records: &[R]) -> Vec<DocumentRef> {
    drafts(records).flat_map(|draft| draft.documents).collect()
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
/// use trellis_patterns::Projector;
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
    sessions: BTreeMap<SessionId, Described>,
}

/// A session and its pattern, as far as its records were described.
#[derive(Debug)]
struct Described {
    session: DescribedSession,
    own: Box<dyn Describer>,
    pattern: &'static dyn Pattern,
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

    /// The same, with the documents that each event refers to.
    pub fn drafts(&mut self, record: &Record) -> Vec<Draft> {
        let id = &record.header.session;
        let session = self.sessions.entry(id.clone()).or_insert_with(|| Described::new(id.clone()));
        if !session.session.notice(record) {
            return Vec::new();
        }
        let acts = session.acts(record);
        let told = record.body.as_observed().map(|observed| observed.trace.as_slice()).unwrap_or_default();
        let told = told.iter().map(|told| Draft::told(&record.header, told));
        let own = acts.into_iter().map(|act| act.into_draft(&record.header, session.session.conversation()));
        told.chain(own).collect()
    }
}

impl Described {
    fn new(id: SessionId) -> Self {
        Self { session: DescribedSession::new(id), own: Box::<Iterations>::default(), pattern: &React }
    }

    /// The acts of a record; none if its content appears with a later record, or not in the graph.
    fn acts(&mut self, record: &Record) -> Vec<Act> {
        let Self { session: described, own, pattern } = self;
        let header = &record.header;
        match &record.body {
            Body::Accepted(accepted) => {
                described.begin(accepted);
                vec![beginning::question(described, header, accepted)]
            }
            Body::Routed(routed) => {
                // The records of a pattern that nobody here knows are told as far as they can be.
                *pattern = registry::pattern(&routed.pattern).unwrap_or(&React);
                *own = pattern.describer();
                let routing = beginning::routing(described, header, routed);
                std::iter::once(routing).chain(own.begin(described, header)).collect()
            }
            Body::Replied(replied) => match Routing::of(&header.name) {
                Some(asked) if header.late => {
                    let asking = Asking::one(header, replied);
                    let first = |node: trellis_provenance::Node| node.derived_from(described.first_parents());
                    vec![late::reply(described, header, &asking, asked.name().as_str(), first)]
                }
                Some(asked) => {
                    described.routing.entry(asked).or_default().add(header, replied);
                    Vec::new()
                }
                None => own.describe(described, record),
            },
            Body::Intended(intended) => {
                described.intend(&header.name, intended);
                Vec::new()
            }
            Body::InputRequired(_) => {
                described.ask_for_input(&header.name);
                Vec::new()
            }
            Body::Observed(_) => {
                described.observe(&header.name);
                own.describe(described, record)
            }
            Body::FannedOut(fan_out) if fan_out.turn.is_some() => {
                described.call_agents(fan_out);
                let call = |outcome: &Name| pattern.place_of_call(&described.id, outcome).node;
                vec![called(described, header, fan_out, call)]
            }
            Body::Joined(joined) if described.was_called(joined.round) => came_back(described, header, joined),
            Body::FannedOut(_) | Body::Joined(_) => own.describe(described, record),
            Body::Parked(parked) => vec![park::question(described, header, parked)],
            Body::Settled(settled) => vec![park::answer(described, header, settled)],
            Body::Told(message) => vec![told::message(described, header, message)],
            Body::Ended(ended) => {
                let rest = own.end(described, ended);
                vec![end::end(described, header, ended, rest)]
            }
        }
    }
}

#[cfg(test)]
#[path = "describe/tests/mod.rs"]
mod tests;
