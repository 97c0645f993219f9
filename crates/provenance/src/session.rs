//! The records of one session, looked up by what they mean.

use crate::iri;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use trellis_domain::record::{Accepted, Body, Header, Name, Reading, Record, Replied};
use trellis_domain::{ConversationId, SessionId};

/// One session's records in order of their sequence.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    pub(crate) id: &'a SessionId,
    pub(crate) records: Vec<&'a Record>,
    pub(crate) accepted: Option<&'a Accepted>,
    routed: bool,
    /// For each iteration that became a step, the node that what comes next derives from.
    last_nodes: BTreeMap<u32, String>,
    closing: Option<ClosingReply<'a>>,
}

/// The reply after which no iteration follows: its words belong to the conclusion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClosingReply<'a> {
    pub(crate) n: u32,
    pub(crate) header: &'a Header,
    pub(crate) reply: &'a Replied,
}

/// Sorts records into sessions. Any order is good enough, repeated records count once.
pub(crate) fn sessions<R: Borrow<Record>>(records: &[R]) -> Vec<Session<'_>> {
    let mut sorted: Vec<&Record> = records.iter().map(Borrow::borrow).collect();
    sorted.sort_by(|a, b| place(a).cmp(&place(b)));
    sorted.dedup_by(|a, b| place(a) == place(b));
    sorted.chunk_by(|a, b| a.header.session == b.header.session).map(Session::new).collect()
}

fn place(record: &Record) -> (&SessionId, u64, &Name) {
    (&record.header.session, record.header.seq, &record.header.name)
}

/// The iteration that a record with a name such as `i3` or `i3/observation` belongs to.
pub(crate) fn iteration(header: &Header) -> Option<u32> {
    let name = header.name.as_str();
    Name::new(name.strip_suffix("/observation").unwrap_or(name)).as_iteration()
}

/// Whether a reply with this reading is a step of its own. Otherwise it is part of the conclusion.
pub(crate) fn is_step(reading: &Reading) -> bool {
    match reading {
        Reading::Action { .. } | Reading::Unreadable { .. } => true,
        Reading::Answer { .. } | Reading::Failed { .. } => false,
    }
}

impl<'a> Session<'a> {
    fn new(records: &[&'a Record]) -> Self {
        let id = &records.first().expect("a chunk of records is never empty").header.session;
        let mut session = Self {
            id,
            records: records.to_vec(),
            accepted: None,
            routed: false,
            last_nodes: BTreeMap::new(),
            closing: None,
        };
        // Late records are kept, but nothing follows from them.
        for record in records.iter().filter(|record| !record.header.late) {
            session.take(record);
        }
        session
    }

    fn take(&mut self, record: &'a Record) {
        let Record { header, body } = record;
        match (body, iteration(header)) {
            (Body::Accepted(accepted), _) => self.accepted = Some(accepted),
            (Body::Routed(_), _) => self.routed = true,
            (Body::Replied(reply), Some(n)) if is_step(&reply.reading) => {
                self.last_nodes.insert(n, iri::iteration(self.id, n));
            }
            (Body::Replied(reply), Some(n)) => self.closing = Some(ClosingReply { n, header, reply }),
            (Body::Observed(_), Some(n)) => {
                self.last_nodes.insert(n, iri::observation(self.id, n));
            }
            (Body::Replied(_) | Body::Observed(_), None) | (Body::Ended(_), _) => {}
        }
    }

    pub(crate) fn conversation(&self) -> Option<&'a ConversationId> {
        self.accepted?.conversation.as_ref()
    }

    pub(crate) fn question(&self) -> &'a str {
        self.accepted.map_or("", |accepted| accepted.question.text())
    }

    pub(crate) fn closing(&self) -> Option<ClosingReply<'a>> {
        self.closing
    }

    /// The names of all models that were asked in time, by the session or by its tools.
    pub(crate) fn models(&self) -> impl Iterator<Item = &'a str> {
        self.records.iter().filter(|record| !record.header.late).filter_map(|record| match &record.body {
            Body::Replied(reply) => reply.model.as_deref(),
            Body::Observed(observed) => observed.usage.model.as_deref(),
            Body::Ended(ended) => ended.usage.model.as_deref(),
            Body::Accepted(_) | Body::Routed(_) => None,
        })
    }

    /// What iteration `n` derives from: the end of the step before it, else where the session began.
    pub(crate) fn parents_of_iteration(&self, n: u32) -> Vec<String> {
        self.parents(self.last_nodes.range(..n).next_back())
    }

    /// What the end of the session derives from.
    pub(crate) fn parents_of_conclusion(&self) -> Vec<String> {
        self.parents(self.last_nodes.last_key_value())
    }

    /// At the beginning the pattern decision comes first, because readers of the original's graph take
    /// the first parent, and the session second, because the stock walk does not go through pattern
    /// decisions. Later nodes have one parent, or that walk would list everything behind them twice.
    fn parents(&self, before: Option<(&u32, &String)>) -> Vec<String> {
        if let Some((_, node)) = before {
            return vec![node.clone()];
        }
        let decision = self.routed.then(|| iri::pattern_decision(self.id));
        decision.into_iter().chain([iri::session(self.id)]).collect()
    }
}
