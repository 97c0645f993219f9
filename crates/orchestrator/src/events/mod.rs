//! A run's stream as events for programs: one JSON object per durable event, with its sequence number, and
//! live text between them.
//!
//! What is not recorded is left out, never written as zero or null.

mod decisions;
mod ends;
mod steps;
mod teams;

pub use decisions::{AskedForm, DecisionMade, DecisionRequested, ExcludedOption, OptionSet};
pub use ends::SessionEnded;
pub use steps::{CallIntended, ObservationStep, ReplyStep, RoutingStep, StepCompleted, ToolAsked};
pub use teams::{AgentStarted, FanOut, FanOutGoal, FanOutJoin, FanOutMember};

use crate::hub::{Item, TextKind};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trellis_domain::record::{Accepted, Body, Record};
use trellis_domain::run::RunState;
use trellis_domain::told::Told;
use trellis_domain::{Caller, RunId, SessionId};
use utoipa::ToSchema;

/// The version of the events' shape; the first event of a stream carries it.
pub const SCHEMA: u32 = 1;

/// One event of a run. All but `chunk` are durable.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(tag = "type")]
pub enum RunEvent {
    #[serde(rename = "chunk")]
    Chunk(Chunk),
    #[serde(rename = "run.started")]
    RunStarted(Durable<RunStarted>),
    #[serde(rename = "agent.started")]
    AgentStarted(Durable<AgentStarted>),
    #[serde(rename = "call.intended")]
    CallIntended(Durable<CallIntended>),
    #[serde(rename = "input.required")]
    InputRequired(Durable<ToolAsked>),
    #[serde(rename = "step.completed")]
    StepCompleted(Durable<StepCompleted>),
    #[serde(rename = "fanout.started")]
    FanOutStarted(Durable<FanOut>),
    #[serde(rename = "fanout.joined")]
    FanOutJoined(Durable<FanOutJoin>),
    #[serde(rename = "decision.requested")]
    DecisionRequested(Durable<DecisionRequested>),
    #[serde(rename = "decision.made")]
    DecisionMade(Durable<DecisionMade>),
    #[serde(rename = "run.told")]
    RunTold(Durable<RunTold>),
    #[serde(rename = "agent.completed")]
    AgentCompleted(Durable<SessionEnded>),
    #[serde(rename = "run.completed")]
    RunCompleted(Durable<SessionEnded>),
    #[serde(rename = "run.failed")]
    RunFailed(Durable<SessionEnded>),
}

/// Text while it is written: a preview, which the event of its completed message replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Chunk {
    #[schema(value_type = String)]
    pub session_id: SessionId,
    #[schema(value_type = String)]
    pub message_id: Arc<str>,
    #[schema(inline)]
    pub chunk_type: TextKind,
    pub content: String,
}

/// An event that is on record, with what is told of its kind.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Durable<T> {
    /// Position among the run's events, gapless from 1
    pub seq: u64,
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// What it is called in the graph
    pub step_id: String,
    #[schema(format = DateTime)]
    pub at: String,
    /// Arrived after the session's end
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    #[serde(flatten)]
    pub details: T,
}

impl<T> Durable<T> {
    fn new(record: &Record, details: T) -> Self {
        let header = &record.header;
        Self {
            seq: header.seq,
            session_id: header.session.clone(),
            step_id: trellis_provenance::iri::message_id(&header.session, header.name.as_str(), 1),
            at: header.time.to_string(),
            late: header.late,
            details,
        }
    }
}

/// A question was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunStarted {
    /// The version of these events' shape
    pub schema: u32,
    #[schema(value_type = String)]
    pub run_id: RunId,
    pub question: String,
}

impl RunStarted {
    fn new(run: &RunId, accepted: &Accepted) -> Self {
        Self { schema: SCHEMA, run_id: run.clone(), question: accepted.question.text().to_owned() }
    }
}

/// Somebody told an agent something while it was at work. Models that are asked afterwards are told it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RunTold {
    pub message: String,
    /// Who said it: `name`, if it is known, and `surface`, the way in
    #[schema(value_type = Object)]
    pub told_by: Caller,
}

impl RunTold {
    fn new(told: &Told) -> Self {
        Self { message: told.text.text().to_owned(), told_by: told.by.clone() }
    }
}

impl RunEvent {
    /// The event of an item of this run's stream.
    pub fn of(run: &RunId, item: &Item) -> Self {
        match item {
            Item::Text { session, message_id, kind, text } => Self::Chunk(Chunk {
                session_id: session.clone(),
                message_id: Arc::clone(message_id),
                chunk_type: *kind,
                content: text.clone(),
            }),
            Item::Record(record) => Self::of_record(run, record),
        }
    }

    fn of_record(run: &RunId, record: &Record) -> Self {
        let is_root = record.header.session == *run;
        match &record.body {
            Body::Accepted(accepted) if is_root => {
                Self::RunStarted(Durable::new(record, RunStarted::new(run, accepted)))
            }
            Body::Accepted(accepted) => Self::AgentStarted(Durable::new(record, AgentStarted::new(accepted))),
            Body::Routed(routed) => Self::StepCompleted(Durable::new(record, StepCompleted::routing(routed))),
            Body::Replied(replied) => {
                Self::StepCompleted(Durable::new(record, StepCompleted::reply(&record.header, replied)))
            }
            Body::Intended(intended) => Self::CallIntended(Durable::new(record, CallIntended::new(intended))),
            Body::InputRequired(asked) => Self::InputRequired(Durable::new(record, ToolAsked::new(asked))),
            Body::Observed(observed) => Self::StepCompleted(Durable::new(record, StepCompleted::observation(observed))),
            Body::FannedOut(fan_out) => Self::FanOutStarted(Durable::new(record, FanOut::new(fan_out))),
            Body::Joined(joined) => Self::FanOutJoined(Durable::new(record, FanOutJoin::new(joined))),
            Body::Parked(parked) => Self::DecisionRequested(Durable::new(record, DecisionRequested::new(parked))),
            Body::Settled(settled) => Self::DecisionMade(Durable::new(record, DecisionMade::new(settled))),
            Body::Told(told) => Self::RunTold(Durable::new(record, RunTold::new(told))),
            Body::Ended(ended) => {
                let event = Durable::new(record, SessionEnded::new(is_root.then_some(run), ended));
                match ended.reason.run_state() {
                    _ if !is_root => Self::AgentCompleted(event),
                    RunState::Failed | RunState::Cancelled => Self::RunFailed(event),
                    RunState::Queued
                    | RunState::Running
                    | RunState::Waiting
                    | RunState::Answered
                    | RunState::AnsweredPartial
                    | RunState::Limit => Self::RunCompleted(event),
                }
            }
        }
    }

    /// The word for it, which its `type` says.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Chunk(_) => "chunk",
            Self::RunStarted(_) => "run.started",
            Self::AgentStarted(_) => "agent.started",
            Self::CallIntended(_) => "call.intended",
            Self::InputRequired(_) => "input.required",
            Self::StepCompleted(_) => "step.completed",
            Self::FanOutStarted(_) => "fanout.started",
            Self::FanOutJoined(_) => "fanout.joined",
            Self::DecisionRequested(_) => "decision.requested",
            Self::DecisionMade(_) => "decision.made",
            Self::RunTold(_) => "run.told",
            Self::AgentCompleted(_) => "agent.completed",
            Self::RunCompleted(_) => "run.completed",
            Self::RunFailed(_) => "run.failed",
        }
    }

    /// As it is sent and printed.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("events are always JSON")
    }
}
