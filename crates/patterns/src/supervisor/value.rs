//! What the replies of a supervisor decide, as it is recorded.

use serde::{Deserialize, Serialize};
use trellis_domain::record::Reading;

/// One goal for a subagent as the model wrote it, put right.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalDraft {
    pub goal: String,
    /// Empty means: as usual.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pattern: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Vec<String>>,
    /// What the subagent needs to know of the whole task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
}

/// What a decomposition or a review decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goals {
    /// None means: enough is known, answer.
    pub goals: Option<Vec<GoalDraft>>,
}

impl Goals {
    pub(super) fn of(reading: &Reading) -> Option<Self> {
        reading.decision()
    }
}
