//! How a run or one of its agents ended.

use crate::schema::State;
use serde::Serialize;
use trellis_domain::document::Document;
use trellis_domain::record::Ended;
use trellis_domain::run::{RunState, Termination};
use trellis_domain::{Caller, RunId};
use utoipa::ToSchema;

/// A run or one of its agents has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SessionEnded {
    /// Left out for agents below the run's own
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub run_id: Option<RunId>,
    #[schema(value_type = State)]
    pub state: RunState,
    /// Such as `final-answer`
    #[schema(value_type = String)]
    pub reason: Termination,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
    /// Steps or findings that the answer does without
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u32>,
    /// What a limit did not let be done, in words
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Who cancelled the run: `name`, if it is known, and `surface`, the way in
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub cancelled_by: Option<Caller>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub in_token: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub out_token: Option<u64>,
    /// The model seen last
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub model: Option<String>,
    pub model_calls: u32,
    pub tool_calls: u32,
    pub model_ms: u64,
    pub tool_ms: u64,
}

impl SessionEnded {
    pub(super) fn new(run: Option<&RunId>, ended: &Ended) -> Self {
        let usage = ended.total();
        Self {
            run_id: run.cloned(),
            state: ended.reason.run_state(),
            reason: ended.reason,
            answer: ended.answer.as_ref().map(Document::text).map(str::to_owned),
            error: ended.error.clone(),
            missing: ended.missing.clone(),
            left_out: ended.left_out.clone(),
            cancelled_by: ended.by.clone(),
            in_token: usage.in_token,
            out_token: usage.out_token,
            model: usage.model.clone(),
            model_calls: usage.model_calls,
            tool_calls: usage.tool_calls,
            model_ms: usage.model_ms,
            tool_ms: usage.tool_ms,
        }
    }
}
