//! Fan-out and fan-in: what ties a supervisor to its subagents.

use crate::budget::Budget;
use crate::decision::{Decision, words};
use crate::document::Document;
use crate::name::Name;
use crate::run::Termination;
use crate::usage::Usage;
use crate::{GroupName, PatternName, RequestId, SessionId, TaskTypeName, Timestamp};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A supervisor sent out subagents. Committed together with their first turns, so it exists before any of them runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FannedOut {
    /// Counts from 1.
    pub round: u32,
    pub correlation: String,
    /// At this time the fan-in goes on with what is there.
    pub deadline: Timestamp,
    pub goals: Vec<Goal>,
    /// What each of them may spend. What it does not spend is there again after the join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Budget>,
    /// The goals, and each goal's pattern and group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// The turn that goes on with what they bring, where they were called like tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Name>,
    pub resume: Resume,
}

/// One subagent's task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// Counts from 0 over all rounds of the session, and is never used again.
    pub index: u32,
    pub session: SessionId,
    pub goal: String,
    pub pattern: PatternName,
    pub group: Option<Vec<GroupName>>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
    /// Its task type, if that is not its parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<TaskTypeName>,
    /// The call that it is the answer to: what it brings is recorded under this name as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Name>,
}

/// What is needed to build the synthesis request without the request that led here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// Names the caller's request, to which the answer goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<RequestId>,
    pub streaming: bool,
    pub state: String,
    pub group: Option<Vec<GroupName>>,
    pub framing: Arc<str>,
    /// How many steps the session's history had.
    pub history: u32,
}

/// Where a subagent's session hangs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub session: SessionId,
    pub correlation: String,
    pub round: u32,
    pub index: u32,
    pub siblings: u32,
    /// From the root of the run down to the parent; as many as the subagent is deep.
    pub ancestors: Vec<SessionId>,
    /// After this time nobody waits for the subagent any more.
    pub deadline: Timestamp,
}

words!(
    /// Why a fan-in went on.
    JoinCause {
        AllEnded,
        Deadline,
    }
);

/// The one join of a fan-out. Frozen: synthesis reads this and nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    pub round: u32,
    pub correlation: String,
    pub cause: JoinCause,
    /// In the order of the goals, one for each.
    pub members: Vec<Member>,
    /// For how long nobody served the store since the fan-out: its deadline was so much later.
    #[serde(default, skip_serializing_if = "crate::outage::is_zero")]
    pub outage_ms: u64,
}

/// Begins what is said of a subagent whose records cannot be read.
pub const UNREADABLE: &str = "its records cannot be read: ";

/// How one subagent ended, as the join found it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    pub index: u32,
    pub session: SessionId,
    pub goal: String,
    pub reason: Termination,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Document>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the subagent and everything below it cost.
    pub usage: Usage,
}

impl Member {
    /// Whether the subagent brought what it was sent for.
    pub fn is_missing(&self) -> bool {
        !self.reason.is_answer()
    }

    /// Whether its records could not be read when it was joined. They may tell another story, then or later.
    pub fn was_unreadable(&self) -> bool {
        let said = self.error.as_ref().is_some_and(|error| error.starts_with(UNREADABLE));
        said && self.reason == Termination::Error && self.answer.is_none() && self.usage.is_nothing()
    }
}
