//! What tools bring: a text for models and people, and the same as an object for programs.

use super::server::McpServer;
use crate::api::ApiError;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};
use trellis_domain::run::{RunState, RunSummary};
use trellis_orchestrator::audit::Audit;
use trellis_orchestrator::summary::WholeRun;

/// Runs with more records are not checked in passing: `trellis verify` does it.
const CHECKED_RECORDS: u64 = 2_000;

/// What a tool brought.
#[derive(Debug)]
pub(super) struct ToolReply {
    pub(super) text: String,
    pub(super) value: Value,
    pub(super) is_error: bool,
}

impl From<ToolReply> for CallToolResult {
    fn from(reply: ToolReply) -> Self {
        let mut result = Self::success(vec![ContentBlock::text(reply.text)]);
        result.structured_content = Some(reply.value);
        result.is_error = Some(reply.is_error);
        result
    }
}

/// What is wrong with a call is told in its result: a model reads it there and nowhere else.
pub(super) fn refusal(error: ApiError) -> CallToolResult {
    let (_, _, message, _) = error.into_parts();
    CallToolResult::error(vec![ContentBlock::text(message)])
}

/// What came of a run, as far as something has.
pub(super) async fn outcome(server: &McpServer, run: &RunSummary) -> Result<ToolReply, ApiError> {
    let whole = server.inside.runs().whole(run).await?;
    let faults = if whole.state.is_end() { check(server, run).await? } else { None };
    let answer = whole.answer.as_deref().unwrap_or_default();
    let is_error = whole.state.is_end() && answer.is_empty();
    let text = in_words(&whole, answer, faults.as_deref());
    Ok(ToolReply { text, value: value(&whole, faults), is_error })
}

/// What is wrong with the record of a run that has ended: each record is looked for in the signed log, and derived again from
/// those before it. None if that was not done.
async fn check(server: &McpServer, run: &RunSummary) -> Result<Option<Vec<String>>, ApiError> {
    if run.seq > CHECKED_RECORDS {
        return Ok(None);
    }
    let _turn = server.gateway.capacity().make().await;
    let inside = &server.inside;
    let Some(evidence) = inside.log().evidence(inside.workspace(), &run.run).await? else { return Ok(None) };
    let audited = tokio::task::spawn_blocking(move || Audit::of(&evidence).0).await.map_err(ApiError::internal)?;
    // What was not derived again is not called right.
    let is_whole = audited.replay.gaps.is_empty() || !audited.faults.is_empty();
    Ok(is_whole.then_some(audited.faults))
}

fn value(whole: &WholeRun, faults: Option<Vec<String>>) -> Value {
    let partial = matches!(whole.state, RunState::AnsweredPartial | RunState::Limit);
    json!({
        "run_id": whole.run_id,
        "state": whole.state,
        "ended": whole.state.is_end(),
        "answer": whole.answer,
        "reason": whole.reason,
        "error": whole.error,
        "partial": partial,
        "left_out": whole.left_out,
        "verified": faults.as_ref().map(Vec::is_empty),
        "faults": faults.unwrap_or_default(),
        "pattern": whole.pattern,
        "task_type": whole.task_type,
        "conversation_id": whole.conversation_id,
        "waiting_for": whole.waiting_for,
        "model": whole.model,
        "model_calls": whole.model_calls,
        "tool_calls": whole.tool_calls,
        "ms": whole.ms,
    })
}

fn in_words(whole: &WholeRun, answer: &str, faults: Option<&[String]>) -> String {
    let run = &whole.run_id;
    let reason = whole.reason.map_or("", |reason| reason.as_str());
    let text = match whole.state {
        RunState::Queued | RunState::Running => {
            return format!("Run {run} goes on. wait_for_run brings its answer, cancel_run ends it.");
        }
        RunState::Waiting => {
            let question = whole.waiting_for.first().map_or("", |open| &open.question);
            return format!(
                "Run {run} waits until a person has answered: {question} (`trellis run decide {run}`). wait_for_run brings \
                 what comes of it."
            );
        }
        RunState::Cancelled => return format!("Run {run} was cancelled."),
        RunState::Answered => format!("{answer}\n\n(run {run}: {reason})"),
        RunState::AnsweredPartial | RunState::Limit if !answer.is_empty() => {
            format!("{answer}\n\n(run {run} answered only a part: {reason})")
        }
        RunState::AnsweredPartial | RunState::Limit | RunState::Failed => {
            let why = whole.error.as_deref().unwrap_or("no reason was recorded");
            format!("Run {run} ended without an answer ({reason}): {why}")
        }
    };
    match faults {
        Some([first, ..]) => format!("{text}\n\n(Its record is damaged: {first})"),
        Some([]) | None => text,
    }
}
