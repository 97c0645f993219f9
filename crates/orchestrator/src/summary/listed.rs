//! The list of runs.

use crate::ports::UnreadableRun;
use crate::schema::State;
use serde::{Deserialize, Serialize};
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::{ConversationId, RunId, Timestamp};
use utoipa::ToSchema;

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListedRun {
    #[schema(value_type = String)]
    pub run_id: RunId,
    #[schema(value_type = State)]
    pub state: RunState,
    /// At most 300 characters of it
    pub question: String,
    /// Empty until it is chosen
    pub pattern: String,
    /// Empty until it is chosen
    pub task_type: String,
    #[schema(required, value_type = Option<String>)]
    pub conversation_id: Option<ConversationId>,
    #[schema(format = DateTime)]
    pub started: String,
    /// How long it took, or has taken so far
    pub ms: u64,
    #[schema(required)]
    pub in_token: Option<u64>,
    #[schema(required)]
    pub out_token: Option<u64>,
    /// True if the question is longer than what is told here
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub question_truncated: bool,
}

impl ListedRun {
    pub(crate) fn new(run: &RunSummary, question_truncated: bool, now: Timestamp) -> Self {
        Self {
            run_id: run.run.clone(),
            state: run.state,
            question: run.question.clone(),
            pattern: run.pattern.as_deref().unwrap_or_default().to_owned(),
            task_type: run.task_type.as_deref().unwrap_or_default().to_owned(),
            conversation_id: run.conversation.clone(),
            started: run.started.to_string(),
            ms: run.ms(now),
            in_token: run.usage.in_token,
            out_token: run.usage.out_token,
            question_truncated,
        }
    }
}

/// A page of the list of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Runs)]
pub struct ListedRuns {
    pub runs: Vec<ListedRun>,
    /// The cursor of the next page; null on the last one
    #[schema(required)]
    pub next: Option<String>,
    /// Runs in between that are damaged
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableRun>,
}

impl ListedRuns {
    /// Adds the page after this one. Where to go on, if there is more.
    pub fn add(&mut self, page: Self) -> Option<String> {
        self.runs.extend(page.runs);
        self.unreadable.extend(page.unreadable);
        self.next.clone_from(&page.next);
        page.next
    }
}
