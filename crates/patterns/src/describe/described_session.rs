//! What later events need to know of a session's earlier records.

use super::asking::Asking;
use crate::taken_up;
use std::collections::{BTreeMap, BTreeSet};
use trellis_domain::document::Payload;
use trellis_domain::fan_out::{FannedOut, Member, Parent};
use trellis_domain::message::PlanStep;
use trellis_domain::record::{Accepted, Body, Intended, Name, Record};
use trellis_domain::{ConversationId, SessionId, ToolName};
use trellis_provenance::iri;

/// One session, as far as its records were described, whatever its pattern is. Late records leave no trace here.
#[derive(Debug)]
pub struct DescribedSession {
    pub(crate) id: SessionId,
    /// The sequence number of the newest record.
    newest: Option<u64>,
    beginning: Option<Beginning>,
    pub(crate) routed: bool,
    models: BTreeSet<String>,
    /// Replies of the router that no node tells of yet.
    pub(crate) routing: BTreeMap<Routing, Asking>,
    /// Calls of which nobody knows yet whether they were made, by the name of their outcome.
    intended: BTreeMap<Name, ToolName>,
    /// The findings that calls of agents were answered with, by the name of the call's outcome.
    findings: BTreeMap<Name, String>,
    /// The rounds in which agents were called like tools.
    called: BTreeSet<u32>,
}

/// What a model is asked before a pattern is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Routing {
    TaskType,
    Pattern,
}

impl Routing {
    /// What a reply of this name is a reply to.
    pub(crate) fn of(name: &Name) -> Option<Self> {
        [Self::TaskType, Self::Pattern].into_iter().find(|asked| asked.name() == name.first_asking())
    }

    pub(crate) fn name(self) -> Name {
        match self {
            Self::TaskType => Name::route_task_type(),
            Self::Pattern => Name::route_pattern(),
        }
    }
}

#[derive(Debug)]
struct Beginning {
    question: Payload,
    conversation: Option<ConversationId>,
    parent: Option<Parent>,
    /// What others have begun, if the session can go on with it.
    plan: Vec<PlanStep>,
    findings: Vec<Member>,
}

impl DescribedSession {
    pub(crate) fn new(id: SessionId) -> Self {
        Self {
            id,
            newest: None,
            beginning: None,
            routed: false,
            models: BTreeSet::new(),
            routing: BTreeMap::new(),
            intended: BTreeMap::new(),
            findings: BTreeMap::new(),
            called: BTreeSet::new(),
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
            plan: taken_up::plan(accepted).to_vec(),
            findings: taken_up::findings(&self.id, accepted),
        });
    }

    pub(crate) fn intend(&mut self, name: &Name, intended: &Intended) {
        let about = name.as_intent().map(|(about, _)| about);
        self.intended.extend(about.map(|about| (about, intended.tool.clone())));
    }

    /// A tool that asks for input has not done anything yet, so nothing is uncertain about its call.
    pub(crate) fn ask_for_input(&mut self, name: &Name) {
        if let Some((about, _)) = name.as_input() {
            self.intended.remove(&about);
        }
    }

    pub(crate) fn observe(&mut self, name: &Name) {
        self.intended.remove(name);
    }

    /// The tools of calls that were about to be made and of which nothing is known.
    pub(crate) fn uncertain(&self) -> impl Iterator<Item = &ToolName> {
        self.intended.values()
    }

    /// Agents were called like tools.
    pub(crate) fn call_agents(&mut self, fan_out: &FannedOut) {
        let of_calls = fan_out.goals.iter().filter_map(|goal| Some((goal.call.clone()?, goal.index)));
        self.findings.extend(of_calls.map(|(call, index)| (call, iri::finding(&self.id, index))));
        self.called.insert(fan_out.round);
    }

    /// Whether the agents of a round were called like tools.
    pub(crate) fn was_called(&self, round: u32) -> bool {
        self.called.contains(&round)
    }

    /// What the agent brought whose answer is recorded under this name.
    pub(crate) fn finding_of(&self, outcome: &Name) -> Option<&String> {
        self.findings.get(outcome)
    }

    pub(crate) fn conversation(&self) -> Option<&ConversationId> {
        self.beginning.as_ref()?.conversation.as_ref()
    }

    pub(crate) fn question(&self) -> &str {
        self.beginning.as_ref().map_or("", |beginning| beginning.question.text())
    }

    /// The plan of others that a session of plans goes on with.
    pub(crate) fn plan_begun(&self) -> &[PlanStep] {
        self.beginning.as_ref().map(|beginning| beginning.plan.as_slice()).unwrap_or_default()
    }

    /// The findings of others that a supervisor goes on with.
    pub(crate) fn found_before(&self) -> &[Member] {
        self.beginning.as_ref().map(|beginning| beginning.findings.as_slice()).unwrap_or_default()
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
}

fn model(body: &Body) -> Option<&str> {
    match body {
        Body::Replied(reply) => reply.model.as_deref(),
        Body::Observed(observed) => observed.usage.model.as_deref(),
        Body::Ended(ended) => ended.usage.model.as_deref(),
        Body::Accepted(_)
        | Body::Routed(_)
        | Body::FannedOut(_)
        | Body::Joined(_)
        | Body::Intended(_)
        | Body::InputRequired(_)
        | Body::Parked(_)
        | Body::Settled(_)
        | Body::Told(_) => None,
    }
}
