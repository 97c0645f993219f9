//! Tool calls by descriptor.

use super::{BoxFuture, CallLabels, ModelWish, ToolServers};
use crate::permits::{CallCapacity, Permit};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::config::{Settings, ToolItem};
use trellis_domain::input::{Form, GivenInput};
use trellis_domain::record::{Explained, ModelCall};
use trellis_domain::{Collection, Scope, Workspace};

#[derive(Debug, Clone)]
pub struct ToolCall {
    pub scope: Scope,
    pub collection: Collection,
    pub settings: Arc<Settings>,
    pub tool: Arc<ToolItem>,
    pub arguments: Map<String, Value>,
    /// The same for every repetition of this call.
    pub idempotency_key: String,
    /// IRI of the step that calls it: what the tool tells of its own steps hangs under this. None outside of any run.
    pub step: Option<String>,
    /// IRI of the document that its text will be, where the step has one.
    pub document: Option<String>,
    /// How long the tool may take, without the time that it waits for its turn at a model. Other tools than those that
    /// ask a model are stopped then.
    pub timeout: Duration,
    /// How long the reply of a model that the tool asks may be.
    pub max_reply_bytes: u64,
    /// None for a call outside of any run.
    pub labels: Option<CallLabels>,
    /// Room at the model that the tool asks, if it asks one; see [`ToolRunner::capacity`].
    pub permit: Permit,
    /// Whether the tool may ask a person for input.
    pub input: CallInput,
}

/// What a tool can be told of the person behind its call.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum CallInput {
    /// There is nobody to ask.
    #[default]
    Nobody,
    /// Somebody can be asked: then the tool is called again with the answer.
    Possible,
    /// It has asked, and this is the answer. It may ask again.
    Given(Box<GivenInput>),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolOutput {
    pub text: String,
    /// What the tool asked models.
    pub calls: Vec<ModelCall>,
    /// How it came to its result, step by step, if it tells.
    pub trace: Vec<Explained>,
    /// The tool has done nothing yet and asks for this, if there is somebody to ask; all else is empty then.
    pub asks: Option<Box<ToolQuestion>>,
}

/// What a tool asks for before it does what it was called for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolQuestion {
    pub forms: Vec<Form>,
    /// What it wants to be told again with the answers.
    pub state: Option<String>,
}

/// Why a tool brought nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ToolError {
    /// Written for the model, which is shown it and may correct itself.
    pub reason: String,
    /// What the tool asked models all the same.
    pub calls: Vec<ModelCall>,
}

impl ToolError {
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), calls: Vec::new() }
    }
}

pub trait ToolRunner: Send + Sync + std::fmt::Debug {
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Result<ToolOutput, ToolError>>;

    /// Why a workspace cannot call a tool here, if that is known before it does: then it is not offered.
    fn obstacle(&self, _workspace: &Workspace, _tool: &ToolItem, _settings: &Settings) -> Option<String> {
        None
    }

    /// The servers whose tools can be made configuration, if there may be some.
    fn servers(&self) -> Option<&dyn ToolServers> {
        None
    }

    /// Where a call of this tool has to wait for its turn, if it may have to: a tool may ask a model.
    fn capacity(&self, _tool: &ToolItem, _settings: &Settings, _wish: ModelWish<'_>) -> Option<Arc<CallCapacity>> {
        None
    }
}
