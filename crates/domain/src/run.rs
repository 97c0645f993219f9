//! The states of a run and the reasons why it ends.

use crate::decision::words;
use crate::named::empty_is_none;
use crate::usage::Usage;
use crate::{ConversationId, PatternName, RunId, SessionId, TaskTypeName, Timestamp, Workspace};
use serde::{Deserialize, Serialize};

words!(
    /// Where a run stands. The last five are ends.
    RunState {
        Queued,
        Running,
        Waiting,
        Answered,
        AnsweredPartial,
        Limit,
        Failed,
        Cancelled,
    }
);

impl RunState {
    pub const fn is_end(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::Waiting => false,
            Self::Answered | Self::AnsweredPartial | Self::Limit | Self::Failed | Self::Cancelled => true,
        }
    }
}

words!(
    /// Why a session ended.
    Termination {
        FinalAnswer,
        /// An answer without anything from tools: all calls failed.
        AnswerPartial,
        PlanComplete,
        PlanPartial,
        SubagentsComplete,
        SubagentsPartial,
        MaxIterations,
        Limit,
        Timeout,
        Cancelled,
        Error,
    }
);

impl Termination {
    /// The state of a run whose root session ended so.
    pub const fn run_state(self) -> RunState {
        match self {
            Self::FinalAnswer | Self::PlanComplete | Self::SubagentsComplete => RunState::Answered,
            Self::AnswerPartial | Self::PlanPartial | Self::SubagentsPartial => RunState::AnsweredPartial,
            Self::MaxIterations | Self::Limit | Self::Timeout => RunState::Limit,
            Self::Cancelled => RunState::Cancelled,
            Self::Error => RunState::Failed,
        }
    }

    /// Ended with an answer, if only a partial one, and not at a limit or with an error.
    pub const fn is_answer(self) -> bool {
        match self.run_state() {
            RunState::Answered | RunState::AnsweredPartial => true,
            RunState::Queued
            | RunState::Running
            | RunState::Waiting
            | RunState::Limit
            | RunState::Failed
            | RunState::Cancelled => false,
        }
    }

    /// Whether a session that ended so ended in a synthesis; any other end is a conclusion.
    pub const fn is_synthesis(self) -> bool {
        match self {
            Self::PlanComplete | Self::PlanPartial | Self::SubagentsComplete | Self::SubagentsPartial => true,
            Self::FinalAnswer
            | Self::AnswerPartial
            | Self::MaxIterations
            | Self::Limit
            | Self::Timeout
            | Self::Cancelled
            | Self::Error => false,
        }
    }
}

/// One line of the list of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    pub workspace: Workspace,
    pub run: RunId,
    pub state: RunState,
    /// The question, cut to a line's length.
    pub question: String,
    /// Both are unknown until the run is routed, if the caller named none.
    #[serde(with = "empty_is_none")]
    pub pattern: Option<PatternName>,
    #[serde(with = "empty_is_none")]
    pub task_type: Option<TaskTypeName>,
    pub conversation: Option<ConversationId>,
    pub started: Timestamp,
    pub ended: Option<Timestamp>,
    /// The newest sequence number of the run's events.
    pub seq: u64,
    pub usage: Usage,
    /// Questions to people that nobody has answered yet, by session and number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parked: Vec<(SessionId, u32)>,
    /// The rules by which its cost is counted; 0 of runs from before that was told here.
    #[serde(default, skip_serializing_if = "is_untold")]
    pub revision: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_untold(revision: &u32) -> bool {
    *revision == 0
}

impl RunSummary {
    /// The rules since which they are told here. Before, they made no difference to what a run costs.
    pub const REVISIONS_SINCE: u32 = 6;
    /// Longest question text kept in a summary, in characters.
    pub const QUESTION_CHARS: usize = 300;

    /// Whether the question may be longer than what is kept of it here.
    pub fn may_be_cut(&self) -> bool {
        self.question.chars().count() >= Self::QUESTION_CHARS
    }

    /// Run time so far, or in all.
    pub fn ms(&self, now: Timestamp) -> u64 {
        self.ended.unwrap_or(now).ms_since(self.started)
    }
}
