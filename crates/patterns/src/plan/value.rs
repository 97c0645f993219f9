//! What the replies of planner and steps decide, as it is recorded.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trellis_domain::record::Reading;

/// The goal of the only step where no plan could be had.
pub const DIRECT_STEP: &str = "Answer the question directly";

/// One step of a plan as the model wrote it, put right.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedStep {
    pub goal: String,
    /// Advice, not an order.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_hint: String,
    /// Numbers of steps, counted from 0 over all plans of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<u32>,
}

impl PlannedStep {
    pub(super) fn direct() -> Self {
        Self { goal: DIRECT_STEP.to_owned(), ..Self::default() }
    }
}

/// What a planner decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanDecision {
    /// None means: keep the plan as it is.
    pub steps: Option<Vec<PlannedStep>>,
}

impl PlanDecision {
    pub(super) fn of(reading: &Reading) -> Option<Self> {
        reading.decision()
    }
}

/// What a step says besides its call or its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepAside {
    /// The model says that the plan did not expect this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surprising: bool,
}

impl StepAside {
    /// Nothing is written if there is nothing to say.
    pub(super) fn written(self) -> Value {
        if self.surprising { serde_json::to_value(self).unwrap_or_default() } else { Value::Null }
    }

    pub(super) fn of(reading: &Reading) -> Self {
        match reading {
            Reading::Acted { value, .. } | Reading::Answered { value, .. } => {
                Self::deserialize(value).unwrap_or_default()
            }
            Reading::Decided { .. } | Reading::Unusable { .. } | Reading::Failed { .. } => Self::default(),
        }
    }
}
