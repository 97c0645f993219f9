//! Models that are asked for JSON by other services. Nothing of this belongs to a run, so nothing is recorded.

use super::model::Live;
use crate::call::Call;
use crate::error::{Code, ServiceError};
use serde_json::{Map, Value};
use std::time::Duration;
use trellis_orchestrator::ports::{PromptCall, PromptReply, ReplyContent};

/// What a model replied, and the value that it is.
pub(super) struct Told {
    pub(super) value: Value,
    pub(super) reply: PromptReply,
}

/// Asks with a prompt of the workspace, within the operator's limits.
pub(super) async fn ask<const N: usize>(
    call: &Call,
    id: &str,
    variables: [(&str, Value); N],
    schema: Value,
) -> Result<Told, ServiceError> {
    let inside = &call.inside;
    let limit = Duration::from_millis(inside.limits().model_timeout_ms);
    let asked = PromptCall {
        scope: call.scope(),
        settings: inside.config().pin(call.workspace()).await?,
        id: id.to_owned(),
        variables: variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>(),
        schema: Some(schema),
        timeout: Some(limit),
        ..PromptCall::default()
    };
    let mut unheard = Live::new(inside);
    let reply = tokio::time::timeout(limit, inside.prompter().ask(asked, &mut unheard)).await;
    let failed = |why: String| ServiceError::new(Code::Model, why);
    let reply = reply.map_err(|_| failed(format!("the model did not answer within {} s", limit.as_secs())))?;
    if unheard.is_too_long() {
        return Err(failed("the model's reply is longer than the operator allows".to_owned()));
    }
    let reply = reply.map_err(|error| failed(error.to_string()))?;
    let value = match &reply.content {
        ReplyContent::Object(value) => Some(value.clone()),
        ReplyContent::List(values) => Some(Value::Array(values.clone())),
        // A prompt of another hand may ask for more, or for less, than is needed.
        ReplyContent::Text | ReplyContent::Wrong { .. } => serde_json::from_str(reply.raw.trim()).ok(),
    };
    let value = value.ok_or_else(|| failed(format!("the reply to `{id}` is not the JSON that it asks for")))?;
    Ok(Told { value, reply })
}

/// Nothing that material can know, to mark it with.
pub(super) fn mark(call: &Call) -> Value {
    let mark = call.inside.world().fresh_id();
    Value::String(mark.chars().filter(char::is_ascii_alphanumeric).take(8).collect())
}
