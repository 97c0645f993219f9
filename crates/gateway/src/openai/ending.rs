//! What came of a run, as OpenAI's surfaces tell it.

use super::OpenAiError;
use crate::inside::Inside;
use serde::Serialize;
use std::sync::Arc;
use trellis_domain::RunId;
use trellis_domain::record::{Accepted, Record};
use trellis_domain::run::{RunState, RunSummary, Termination};
use trellis_domain::usage::Usage;
use trellis_orchestrator::summary::{OpenQuestion, WholeRun};
use utoipa::ToSchema;

/// A run with what is known of it, ended or not.
#[derive(Debug)]
pub(super) struct EndedRun {
    pub(super) summary: RunSummary,
    pub(super) whole: WholeRun,
    first: Arc<Record>,
}

/// An answer that a caller gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer<'r> {
    pub(super) text: &'r str,
    /// A limit ended the run: it is what there was by then.
    pub(super) cut: bool,
}

impl EndedRun {
    pub(super) async fn read(inside: &Inside, run: &RunId) -> Result<Self, OpenAiError> {
        let (runs, workspace) = (inside.runs(), inside.workspace());
        let missing = || OpenAiError::no_response(&response_id(run));
        let summary = runs.find(workspace, run).await?.ok_or_else(missing)?;
        let whole = runs.whole(&summary).await?;
        let first = runs.records(workspace, run, 0, 1).await?.records.into_iter().next().ok_or_else(missing)?;
        Ok(Self { summary, whole, first })
    }

    pub(super) fn run(&self) -> &RunId {
        &self.summary.run
    }

    /// What was asked, if the first record says so.
    pub(super) fn accepted(&self) -> Option<&Accepted> {
        self.first.body.as_accepted()
    }

    /// The answer, or why there is none. None while the run goes on.
    pub(super) fn answer(&self) -> Option<Result<Answer<'_>, OpenAiError>> {
        let text = self.whole.answer.as_deref().unwrap_or_default();
        let why = self.whole.error.as_deref().unwrap_or("no reason was recorded");
        let without = |code| Some(Err(OpenAiError::no_answer(self.run(), code, why)));
        match self.whole.state {
            RunState::Queued | RunState::Running | RunState::Waiting => None,
            RunState::Answered | RunState::AnsweredPartial => Some(Ok(Answer { text, cut: false })),
            RunState::Limit if !text.is_empty() => Some(Ok(Answer { text, cut: true })),
            RunState::Limit => without("run_limit"),
            RunState::Failed => without("run_failed"),
            RunState::Cancelled => Some(Err(OpenAiError::cancelled(self.run()))),
        }
    }

    /// Tokens, if a model reported any.
    pub(super) fn usage(&self) -> Option<&Usage> {
        Some(&self.summary.usage).filter(|usage| usage.in_token.is_some() || usage.out_token.is_some())
    }

    pub(super) fn about(&self, exchanges_left_out: usize) -> About {
        let whole = &self.whole;
        About {
            run_id: self.run().as_str().to_owned(),
            state: whole.state.as_str(),
            partial: matches!(whole.state, RunState::AnsweredPartial | RunState::Limit),
            reason: whole.reason.map(Termination::as_str),
            pattern: whole.pattern.clone(),
            task_type: whole.task_type.clone(),
            model: whole.model.clone(),
            left_out: whole.left_out.clone(),
            waiting_for: whole.waiting_for.clone(),
            exchanges_left_out,
        }
    }
}

/// What OpenAI's objects have no member for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiTrellis)]
pub(super) struct About {
    run_id: String,
    /// As in `/api/v1/runs/{id}`, such as `answered-partial`
    state: &'static str,
    /// The answer does without something that was planned, or a limit ended the run before it was done
    partial: bool,
    /// Why the run ended, such as `final-answer`; null while it has not
    #[schema(required)]
    reason: Option<&'static str>,
    pattern: String,
    task_type: String,
    /// The language model that was seen last
    #[schema(required)]
    model: Option<String>,
    /// What a limit did not let be done, in words
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    /// The questions to people that the run waits for
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting_for: Vec<OpenQuestion>,
    /// How many of the oldest exchanges of `messages` had no room
    #[serde(skip_serializing_if = "is_zero")]
    exchanges_left_out: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The id of a run as a response.
pub(super) fn response_id(run: &RunId) -> String {
    format!("resp_{run}")
}
