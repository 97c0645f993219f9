//! Agents that were sent out, and how they were joined.

use super::OptionSet;
use serde::Serialize;
use trellis_domain::SessionId;
use trellis_domain::fan_out::{FannedOut, Goal, JoinCause, Joined, Member};
use trellis_domain::record::Accepted;
use trellis_domain::run::Termination;
use utoipa::ToSchema;

/// A subagent has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AgentStarted {
    pub goal: String,
    pub pattern: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub parent_session_id: Option<SessionId>,
    /// The fan-out that it belongs to
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub correlation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub index: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub siblings: Option<u32>,
}

impl AgentStarted {
    pub(super) fn new(accepted: &Accepted) -> Self {
        let parent = accepted.parent.as_ref();
        Self {
            goal: accepted.question.text().to_owned(),
            pattern: accepted.pattern.as_deref().unwrap_or_default().to_owned(),
            parent_session_id: parent.map(|parent| parent.session.clone()),
            correlation_id: parent.map(|parent| parent.correlation.clone()),
            index: parent.map(|parent| parent.index),
            siblings: parent.map(|parent| parent.siblings),
        }
    }
}

/// Subagents are sent out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FanOut {
    pub round: u32,
    pub correlation_id: String,
    /// Whoever has not ended by then is left out
    #[schema(format = DateTime)]
    pub deadline: String,
    pub goals: Vec<FanOutGoal>,
    pub option_sets: Vec<OptionSet>,
}

/// The task of one subagent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FanOutGoal {
    pub index: u32,
    #[schema(value_type = String)]
    pub session_id: SessionId,
    pub goal: String,
    pub pattern: String,
    /// Groups of tools; null for the usual one
    #[schema(required)]
    pub group: Option<Vec<String>>,
}

impl FanOut {
    pub(super) fn new(fan_out: &FannedOut) -> Self {
        let goal = |goal: &Goal| FanOutGoal {
            index: goal.index,
            session_id: goal.session.clone(),
            goal: goal.goal.clone(),
            pattern: goal.pattern.to_string(),
            group: goal.group.as_ref().map(|names| names.iter().map(ToString::to_string).collect()),
        };
        Self {
            round: fan_out.round,
            correlation_id: fan_out.correlation.clone(),
            deadline: fan_out.deadline.to_string(),
            goals: fan_out.goals.iter().map(goal).collect(),
            option_sets: OptionSet::all(&fan_out.decisions),
        }
    }
}

/// The findings of subagents were brought together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FanOutJoin {
    pub round: u32,
    pub correlation_id: String,
    /// `all-ended` or `deadline`
    #[schema(value_type = String)]
    pub cause: JoinCause,
    pub members: Vec<FanOutMember>,
}

/// How one subagent was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FanOutMember {
    pub index: u32,
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// Such as `final-answer`
    #[schema(value_type = String)]
    pub reason: Termination,
    #[schema(required)]
    pub error: Option<String>,
}

impl FanOutJoin {
    pub(super) fn new(joined: &Joined) -> Self {
        let member = |member: &Member| FanOutMember {
            index: member.index,
            session_id: member.session.clone(),
            reason: member.reason,
            error: member.error.clone(),
        };
        Self {
            round: joined.round,
            correlation_id: joined.correlation.clone(),
            cause: joined.cause,
            members: joined.members.iter().map(member).collect(),
        }
    }
}
