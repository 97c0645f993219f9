//! What later events need to know of a session's earlier records.

mod plan;
mod rounds;

pub(crate) use plan::{PlanState, PlannedNode};
pub(crate) use rounds::Rounds;

use crate::asking::{Asking, Question};
use crate::iri;
use std::collections::{BTreeMap, BTreeSet};
use trellis_domain::document::Payload;
use trellis_domain::fan_out::Parent;
use trellis_domain::record::{Accepted, Body, Header, Name, Reading, Record, Replied};
use trellis_domain::{ConversationId, SessionId};

/// One session, as far as its records were projected. Late records leave no trace here.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// The sequence number of the newest record.
    newest: Option<u64>,
    beginning: Option<Beginning>,
    pub(crate) routed: bool,
    models: BTreeSet<String>,
    /// Replies that no node tells of yet.
    pub(crate) pending: BTreeMap<Question, Asking>,
    /// What the next iteration derives from, if it is not the first.
    pub(crate) last: Option<String>,
    /// The ReAct reply after which no iteration follows: its words belong to the conclusion.
    pub(crate) closing: Option<Asking>,
    pub(crate) plan: PlanState,
    pub(crate) rounds: Rounds,
}

#[derive(Debug)]
struct Beginning {
    question: Payload,
    conversation: Option<ConversationId>,
    parent: Option<Parent>,
}

/// The iteration that a record with a name such as `i3` or `i3/observation` belongs to.
pub(crate) fn iteration(header: &Header) -> Option<u32> {
    let name = header.name.as_str();
    Name::new(name.strip_suffix("/observation").unwrap_or(name)).as_iteration()
}

/// The plan step that a record with the name `step/3/result` belongs to.
pub(crate) fn step_result(header: &Header) -> Option<u32> {
    header.name.as_str().strip_prefix("step/")?.strip_suffix("/result")?.parse().ok()
}

/// Whether a ReAct reply with this reading is a step of its own. Otherwise it is part of the conclusion.
pub(crate) fn is_step(reading: &Reading) -> bool {
    match reading {
        Reading::Action { .. } | Reading::Unreadable { .. } => true,
        Reading::Answer { .. }
        | Reading::Failed { .. }
        | Reading::Chosen { .. }
        | Reading::Plan { .. }
        | Reading::Step { .. }
        | Reading::Revision { .. }
        | Reading::Goals { .. }
        | Reading::Review { .. } => false,
    }
}

impl Session {
    pub(crate) fn new(id: SessionId) -> Self {
        Self {
            id,
            newest: None,
            beginning: None,
            routed: false,
            models: BTreeSet::new(),
            pending: BTreeMap::new(),
            last: None,
            closing: None,
            plan: PlanState::default(),
            rounds: Rounds::default(),
        }
    }

    /// Whether the record is news. Repeated ones count once.
    pub(crate) fn notice(&mut self, record: &Record) -> bool {
        let Record { header, body } = record;
        if self.newest.is_some_and(|newest| header.seq <= newest) {
            return false;
        }
        self.newest = Some(header.seq);
        if !header.late {
            self.models.extend(model(body).map(str::to_owned));
        }
        true
    }

    pub(crate) fn begin(&mut self, accepted: &Accepted) {
        self.beginning = Some(Beginning {
            question: accepted.question.clone(),
            conversation: accepted.conversation.clone(),
            parent: accepted.parent.clone(),
        });
    }

    /// Keeps a reply until a node tells of it.
    pub(crate) fn keep(&mut self, question: Question, header: &Header, replied: &Replied) {
        self.pending.entry(question).or_default().add(header, replied);
    }

    pub(crate) fn conversation(&self) -> Option<&ConversationId> {
        self.beginning.as_ref()?.conversation.as_ref()
    }

    pub(crate) fn question(&self) -> &str {
        self.beginning.as_ref().map_or("", |beginning| beginning.question.text())
    }

    /// The fan-out that began the session.
    pub(crate) fn parent(&self) -> Option<&Parent> {
        self.beginning.as_ref()?.parent.as_ref()
    }

    /// The names of all models that were asked in time, by the session or by its tools.
    pub(crate) fn models(&self) -> impl Iterator<Item = &str> {
        self.models.iter().map(String::as_str)
    }

    /// Where a session's first act hangs. The pattern decision comes first, because readers of the original's graph
    /// take the first parent, and the session second, because the stock walk does not go through pattern decisions.
    /// Later nodes have one parent, or that walk would list everything behind them twice.
    pub(crate) fn first_parents(&self) -> Vec<String> {
        let decision = self.routed.then(|| iri::pattern_decision(&self.id));
        decision.into_iter().chain([iri::session(&self.id)]).collect()
    }

    /// What an iteration, or an end after the iterations so far, derives from.
    pub(crate) fn parents_of_next(&self) -> Vec<String> {
        self.last.clone().map_or_else(|| self.first_parents(), |node| vec![node])
    }
}

fn model(body: &Body) -> Option<&str> {
    match body {
        Body::Replied(reply) => reply.model.as_deref(),
        Body::Observed(observed) => observed.usage.model.as_deref(),
        Body::Ended(ended) => ended.usage.model.as_deref(),
        Body::Accepted(_) | Body::Routed(_) | Body::FannedOut(_) | Body::Joined(_) => None,
    }
}
