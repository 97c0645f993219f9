//! What the replies of a supervisor decide, as it is recorded.

use crate::fan_out::GoalDraft;
use serde::{Deserialize, Serialize};
use trellis_domain::record::Reading;

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
