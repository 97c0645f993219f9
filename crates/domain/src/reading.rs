//! What a model's reply says, once read, as it is recorded.

use crate::document::Payload;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a reply says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Reading {
    /// ReAct: call a tool.
    Action { tool: String, arguments: Map<String, Value> },
    /// The answer itself: of a ReAct session, or a synthesis.
    Answer { answer: Payload },
    /// A name out of the set that was offered.
    Chosen { name: String },
    Plan {
        steps: Vec<PlannedStep>,
        /// What had to be put right.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mended: Vec<String>,
    },
    /// A plan step: one tool, or an answer without any.
    Step {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        arguments: Map<String, Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Payload>,
        /// The model says that the plan did not expect this.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        surprising: bool,
    },
    /// None means: keep the plan as it is.
    Revision {
        steps: Option<Vec<PlannedStep>>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mended: Vec<String>,
    },
    Goals {
        goals: Vec<GoalDraft>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mended: Vec<String>,
    },
    /// None means: enough is known, answer.
    Review {
        again: Option<Vec<GoalDraft>>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        mended: Vec<String>,
    },
    /// The reply could not be used; the reason is shown to the model.
    Unreadable { reason: String },
    /// There is no reply: the call failed for good.
    Failed { reason: String },
}

/// How the note ends that tells of something cut off by a limit.
const LEFT_OUT: &str = ", the rest was left out";

/// What is noted of a reply that named more than a limit allows.
pub fn left_out_note(named: &str, limit: impl std::fmt::Display) -> String {
    format!("{named} were named; the limit is {limit}{LEFT_OUT}")
}

impl Reading {
    /// The notes on what a limit cut off.
    ///
    /// ```
    /// use trellis_domain::reading::{Reading, left_out_note};
    ///
    /// let mended = vec!["entry 3 has no goal".to_owned(), left_out_note("20 goals", 8)];
    /// let reading = Reading::Goals { goals: Vec::new(), mended };
    /// let cut: Vec<_> = reading.left_out().collect();
    /// assert_eq!(cut, ["20 goals were named; the limit is 8, the rest was left out"]);
    /// ```
    pub fn left_out(&self) -> impl Iterator<Item = &str> {
        let mended = match self {
            Self::Plan { mended, .. }
            | Self::Revision { mended, .. }
            | Self::Goals { mended, .. }
            | Self::Review { mended, .. } => mended.as_slice(),
            Self::Action { .. }
            | Self::Answer { .. }
            | Self::Chosen { .. }
            | Self::Step { .. }
            | Self::Unreadable { .. }
            | Self::Failed { .. } => &[],
        };
        mended.iter().map(String::as_str).filter(|note| note.ends_with(LEFT_OUT))
    }
}

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

/// One goal for a subagent as the model wrote it, put right. Empty fields mean: as usual.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalDraft {
    pub goal: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pattern: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Vec<String>>,
    /// What the subagent needs to know of the whole task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub context: String,
}

/// A step or finding that an answer says it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Citation {
    pub index: u32,
    /// The model's own word for how sure it is: a claim, not a fact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<String>,
}
