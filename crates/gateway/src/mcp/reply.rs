//! What tools bring: a text for models and people, and the same as an object for programs.

use super::server::McpServer;
use super::words;
use crate::api::ApiError;
use crate::checks::Verdict;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};
use trellis_domain::run::{RunState, RunSummary};
use trellis_orchestrator::summary::{OpenQuestion, WholeRun};

/// So many questions are told in words; all of them are in the object.
const TOLD: usize = 8;

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
    let inside = &server.inside;
    let whole = inside.runs().whole(run).await?;
    let verdict = if whole.state.is_end() {
        Some(server.gateway.capacity().checks.of(inside.log(), inside.workspace(), run).await?)
    } else {
        None
    };
    let answer = whole.answer.as_deref().unwrap_or_default();
    let is_error = whole.state.is_end() && answer.is_empty();
    let text = in_words(&whole, answer, verdict.as_ref());
    Ok(ToolReply { text, value: value(&whole, verdict), is_error })
}

fn value(whole: &WholeRun, verdict: Option<Verdict>) -> Value {
    let (faults, not_checked) = match verdict {
        Some(Verdict::Checked(faults)) => (Some(faults), None),
        Some(Verdict::NotChecked(why)) => (None, Some(why)),
        None => (None, None),
    };
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
        "not_checked": not_checked,
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

fn in_words(whole: &WholeRun, answer: &str, verdict: Option<&Verdict>) -> String {
    let run = &whole.run_id;
    let reason = whole.reason.map_or("", |reason| reason.as_str());
    let text = match whole.state {
        RunState::Queued | RunState::Running => {
            return format!("Run {run} goes on. wait_for_run brings its answer, cancel_run ends it.");
        }
        RunState::Waiting => return waiting(whole),
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
    match verdict {
        Some(Verdict::Checked(faults)) => match faults.first() {
            Some(first) => format!("{text}\n\n(Its record is damaged: {first})"),
            None => text,
        },
        Some(Verdict::NotChecked(why)) => {
            format!("{text}\n\n(Its record was not checked: {why}. `trellis verify {run}` checks it.)")
        }
        None => text,
    }
}

/// What a run waits for, and how it is answered.
fn waiting(whole: &WholeRun) -> String {
    let (run, open) = (&whole.run_id, whole.waiting_for.as_slice());
    let several = open.len() > 1;
    let question = |open: &OpenQuestion| {
        let which =
            if several { format!(" (park {}, session_id {})", open.park, open.session_id) } else { String::new() };
        format!("{}\n\nOptions{which}: {}.", words::quoted(&open.question), open.options.join(", "))
    };
    let mut told: Vec<_> = open.iter().take(TOLD).map(question).collect();
    told.extend((open.len() > TOLD).then(|| format!("There are {} more questions.", open.len() - TOLD)));
    format!(
        "Run {run} waits until a person has answered:\n\n{}\n\nThey answer with `trellis run decide {run} CHOICE`, or tell \
         you, and you pass it on with the tool decide. wait_for_run brings what comes of it.",
        told.join("\n\n")
    )
}
