//! One run, and what came of it.

use super::{Asker, ConfiguredBy};
use crate::events::AskedForm;
use crate::schema::State;
use serde::Serialize;
use serde_json::{Map, Value};
use trellis_domain::document::Document;
use trellis_domain::park::Parked;
use trellis_domain::record::{Ended, Name, Record};
use trellis_domain::run::{RunState, RunSummary, Termination};
use trellis_domain::{Caller, ConversationId, RunId, SessionId, Timestamp};
use utoipa::ToSchema;

/// A run and how it ended, as far as it has.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct WholeRun {
    #[schema(value_type = String)]
    pub run_id: RunId,
    #[schema(value_type = State)]
    pub state: RunState,
    pub question: String,
    pub pattern: String,
    pub task_type: String,
    #[schema(required, value_type = Option<String>)]
    pub conversation_id: Option<ConversationId>,
    #[schema(format = DateTime)]
    pub started: String,
    pub ms: u64,
    #[schema(required)]
    pub in_token: Option<u64>,
    #[schema(required)]
    pub out_token: Option<u64>,
    /// The number of the newest event
    pub seq: u64,
    /// Who asked: `name`, if it is known, and `surface`, the way in; absent in runs that are older
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub asked_by: Option<Caller>,
    /// Together with `asked_by`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub workspace: Option<String>,
    /// The request that the run answers; together with `asked_by`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub request_id: Option<String>,
    /// The configuration that the run began with
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub configured: Option<ConfiguredBy>,
    /// The questions to people that the run waits for, while its state is `waiting`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<OpenQuestion>,
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// Why it ended, such as `final-answer`; null while it has not
    #[schema(required, value_type = Option<String>)]
    pub reason: Option<Termination>,
    #[schema(required)]
    pub answer: Option<String>,
    #[schema(required)]
    pub error: Option<String>,
    /// The model seen last
    #[schema(required)]
    pub model: Option<String>,
    pub model_calls: u32,
    pub tool_calls: u32,
    /// What a limit did not let be done, in words
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Steps or findings that the answer does without
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u32>,
    /// Who cancelled the run, in the same form as `asked_by`; only in runs that were cancelled
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub cancelled_by: Option<Caller>,
}

/// What is read of a run beside its summary.
#[derive(Debug, Default)]
pub(crate) struct Read<'a> {
    pub(crate) first: Option<&'a Record>,
    pub(crate) end: Option<&'a Ended>,
    pub(crate) waiting_for: Vec<OpenQuestion>,
}

impl WholeRun {
    pub(crate) fn new(run: &RunSummary, read: Read<'_>, now: Timestamp) -> Self {
        let accepted = read.first.and_then(|record| record.body.as_accepted());
        let whole = accepted.filter(|_| run.may_be_cut()).map(|accepted| accepted.question.text());
        let asker = Asker::of(read.first);
        let outcome = RunOutcome::new(run, read.end, now);
        Self {
            run_id: outcome.run_id,
            state: outcome.state,
            question: whole.unwrap_or(&run.question).to_owned(),
            pattern: outcome.pattern,
            task_type: outcome.task_type,
            conversation_id: outcome.conversation_id,
            started: run.started.to_string(),
            ms: outcome.ms,
            in_token: outcome.in_token,
            out_token: outcome.out_token,
            seq: run.seq,
            asked_by: asker.by,
            workspace: asker.workspace,
            request_id: asker.request_id,
            configured: asker.configured,
            waiting_for: read.waiting_for,
            session_id: outcome.session_id,
            reason: outcome.reason,
            answer: outcome.answer,
            error: outcome.error,
            model: outcome.model,
            model_calls: outcome.model_calls,
            tool_calls: outcome.tool_calls,
            left_out: outcome.left_out,
            missing: outcome.missing,
            cancelled_by: outcome.cancelled_by,
        }
    }
}

/// A question to a person that a run waits for.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct OpenQuestion {
    /// The name of the question within its session, such as `park/1`
    pub park: String,
    pub question: String,
    pub options: Vec<String>,
    /// The tool that would be called
    #[schema(required)]
    pub tool: Option<String>,
    /// What it would be called with
    #[schema(required, value_type = Option<Object>)]
    pub arguments: Option<Map<String, Value>>,
    /// What the tool asks for, if it is the tool that asks
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forms: Vec<AskedForm>,
    /// Who may answer, by name; null if everybody may who may ask
    #[schema(required)]
    pub who: Option<Vec<String>>,
    #[schema(format = DateTime)]
    pub expires: String,
    /// The option that is taken then
    pub otherwise: String,
    #[schema(value_type = String)]
    pub session_id: SessionId,
}

impl OpenQuestion {
    pub(crate) fn new(session: &SessionId, parked: &Parked) -> Self {
        Self {
            park: Name::park(parked.number).as_str().to_owned(),
            question: parked.question.text().to_owned(),
            options: parked.offered.options.clone(),
            tool: parked.tool.as_ref().map(ToString::to_string),
            arguments: parked.tool.as_ref().map(|_| parked.arguments.clone()),
            forms: AskedForm::all(parked),
            who: parked.who.clone(),
            expires: parked.expires.to_string(),
            otherwise: parked.otherwise.clone(),
            session_id: session.clone(),
        }
    }
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunOutcome {
    pub run_id: RunId,
    pub session_id: SessionId,
    pub state: RunState,
    pub reason: Option<Termination>,
    pub answer: Option<String>,
    pub error: Option<String>,
    pub pattern: String,
    pub task_type: String,
    pub conversation_id: Option<ConversationId>,
    pub in_token: Option<u64>,
    pub out_token: Option<u64>,
    pub model: Option<String>,
    pub model_calls: u32,
    pub tool_calls: u32,
    pub ms: u64,
    /// What a limit did not let be done, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Numbers of steps or findings that the answer does without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<Caller>,
}

impl RunOutcome {
    pub fn new(run: &RunSummary, ended: Option<&Ended>, now: Timestamp) -> Self {
        let answer = ended.and_then(|ended| ended.answer.as_ref());
        Self {
            run_id: run.run.clone(),
            session_id: run.run.clone(),
            state: run.state,
            reason: ended.map(|ended| ended.reason),
            answer: answer.map(Document::text).map(str::to_owned),
            error: ended.and_then(|ended| ended.error.clone()),
            pattern: run.pattern.as_deref().unwrap_or_default().to_owned(),
            task_type: run.task_type.as_deref().unwrap_or_default().to_owned(),
            conversation_id: run.conversation.clone(),
            in_token: run.usage.in_token,
            out_token: run.usage.out_token,
            model: run.usage.model.clone(),
            model_calls: run.usage.model_calls,
            tool_calls: run.usage.tool_calls,
            ms: run.ms(now),
            left_out: ended.map(|ended| ended.left_out.clone()).unwrap_or_default(),
            missing: ended.map(|ended| ended.missing.clone()).unwrap_or_default(),
            cancelled_by: ended.and_then(|ended| ended.by.clone()),
        }
    }
}
