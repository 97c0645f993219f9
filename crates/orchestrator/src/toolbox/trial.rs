//! One call of a tool, outside of any run, to see what it brings.

use super::ListedTool;
use crate::perform::within;
use crate::permits::Permit;
use crate::ports::{CallInput, ToolCall, ToolRunner, World};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::config::{Settings, ToolEffect, ToolItem};
use trellis_domain::limits::Limits;
use trellis_domain::{Collection, Scope};

/// Who calls what, and with what.
#[derive(Debug)]
pub struct Trial<'a> {
    pub scope: Scope,
    pub settings: Arc<Settings>,
    pub name: &'a str,
    pub arguments: Map<String, Value>,
    /// Whether it is called though every call changes something more.
    pub may_be_unsafe: bool,
    pub limits: &'a Limits,
}

/// What a model would be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialOutcome {
    pub observation: String,
    /// The tool brought nothing, and the observation says why.
    pub failed: bool,
    pub ms: u64,
}

/// Why a tool was not called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    #[error("there is no tool `{0}`")]
    Unknown(String),
    #[error("`{name}` cannot be called here: {reason}")]
    NotHere { name: String, reason: String },
    #[error("`{0}` is unsafe: every call of it changes something, and this one would not be a rehearsal")]
    Unsafe(String),
}

/// The tool that models call so.
fn named<'s>(settings: &'s Settings, name: &str) -> Result<&'s Arc<ToolItem>, TrialError> {
    let named = settings.tools.values().find(|tool| tool.name == name);
    named.ok_or_else(|| TrialError::Unknown(name.chars().take(200).collect()))
}

/// Calls a tool once, within the operator's limits.
pub async fn try_tool(tools: &dyn ToolRunner, world: &dyn World, trial: Trial<'_>) -> Result<TrialOutcome, TrialError> {
    let Trial { scope, settings, name, arguments, may_be_unsafe, limits } = trial;
    let tool = Arc::clone(named(&settings, name)?);
    if let Some(reason) = ListedTool::of(&scope.workspace, &tool, &settings, tools).why_not {
        return Err(TrialError::NotHere { name: name.to_owned(), reason });
    }
    if tool.effect == ToolEffect::Unsafe && !may_be_unsafe {
        return Err(TrialError::Unsafe(name.to_owned()));
    }
    let timeout = Duration::from_millis(limits.tool_timeout_ms);
    let began = world.now();
    let call = ToolCall {
        scope,
        collection: Collection::default(),
        settings,
        tool,
        arguments,
        idempotency_key: world.fresh_id(),
        step: None,
        document: None,
        timeout,
        max_reply_bytes: limits.max_reply_bytes,
        labels: None,
        permit: Permit::default(),
        input: CallInput::Nobody,
    };
    let called = within(world, timeout, tools.call(call)).await;
    let ms = world.now().ms_since(began);
    let failure = |why: String| TrialOutcome { observation: format!("Error: {why}"), failed: true, ms };
    Ok(match called {
        Some(Ok(output)) => TrialOutcome { observation: output.text, failed: false, ms },
        Some(Err(error)) => failure(error.reason),
        None => failure(format!("the tool did not answer within {} s", timeout.as_secs())),
    })
}
