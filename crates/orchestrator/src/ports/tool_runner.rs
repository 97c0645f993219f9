//! Tool calls by descriptor.

use super::{BoxFuture, CallLabels};
use serde_json::{Map, Value};
use std::sync::Arc;
use trellis_domain::config::{Settings, ToolItem};
use trellis_domain::usage::Usage;
use trellis_domain::{Collection, Scope};

#[derive(Debug, Clone)]
pub struct ToolCall {
    pub scope: Scope,
    pub collection: Collection,
    pub settings: Arc<Settings>,
    pub tool: Arc<ToolItem>,
    pub arguments: Map<String, Value>,
    /// The same for every repetition of this call.
    pub idempotency_key: String,
    /// None for a call outside of any run.
    pub labels: Option<CallLabels>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    pub text: String,
    /// What the tool spent on models.
    pub usage: Usage,
}

/// Written for the model, which is shown it and may correct itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

pub trait ToolRunner: Send + Sync + std::fmt::Debug {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;
}
