//! Every step of a run.

use super::{Asker, ConfiguredBy, OpenQuestion, end_of};
use crate::schema::State;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::record::{Name, Record};
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::usage::Usage;
use trellis_domain::{Caller, ConversationId, RunId, SessionId, Timestamp};
use trellis_patterns::{documents, project};
use trellis_provenance::{SessionTrace, trace};
use utoipa::ToSchema;

/// Every step of a run, with the texts that they refer to.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RunTrace {
    #[schema(value_type = String)]
    pub run_id: RunId,
    #[schema(value_type = State)]
    pub state: RunState,
    pub task_type: String,
    pub pattern: String,
    #[schema(required, value_type = Option<String>)]
    pub conversation_id: Option<ConversationId>,
    pub ms: u64,
    #[schema(value_type = Object)]
    pub usage: Usage,
    /// The sessions of the run, the root first; each has its `steps`
    #[schema(value_type = Vec<BTreeMap<String, serde_json::Value>>)]
    pub sessions: Vec<SessionTrace>,
    /// Texts by the ids that steps refer to
    pub documents: BTreeMap<String, String>,
    /// The questions to people that the run waits for, while its state is `waiting`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting_for: Vec<OpenQuestion>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<u32>,
    /// Who cancelled the run, in the same form as `asked_by`; only in runs that were cancelled
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub cancelled_by: Option<Caller>,
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
}

impl RunTrace {
    /// Read from the graph of the run, with the texts that the graph refers to.
    pub fn new(run: &RunSummary, records: &[Arc<Record>], now: Timestamp) -> Self {
        let ended = end_of(records, &run.run);
        let asker = Asker::of(records.first().map(AsRef::as_ref));
        Self {
            run_id: run.run.clone(),
            state: run.state,
            task_type: run.task_type.as_deref().unwrap_or_default().to_owned(),
            pattern: run.pattern.as_deref().unwrap_or_default().to_owned(),
            conversation_id: run.conversation.clone(),
            ms: run.ms(now),
            usage: run.usage.clone(),
            sessions: trace(&project(records)).sessions,
            documents: texts(records),
            waiting_for: open_questions(run, records),
            left_out: ended.map(|ended| ended.left_out.clone()).unwrap_or_default(),
            missing: ended.map(|ended| ended.missing.clone()).unwrap_or_default(),
            cancelled_by: ended.and_then(|ended| ended.by.clone()),
            asked_by: asker.by,
            workspace: asker.workspace,
            request_id: asker.request_id,
            configured: asker.configured,
        }
    }
}

/// What a run waits for, as the records of its sessions say it.
fn open_questions(run: &RunSummary, records: &[Arc<Record>]) -> Vec<OpenQuestion> {
    let asked = |(session, number): &(SessionId, u32)| {
        let is_it =
            |record: &&Arc<Record>| record.header.session == *session && record.header.name == Name::park(*number);
        let parked = records.iter().find(is_it)?.body.as_parked()?;
        Some(OpenQuestion::new(session, parked))
    };
    run.parked.iter().filter_map(asked).collect()
}

/// The stored documents of a run, by id.
pub fn texts(records: &[Arc<Record>]) -> BTreeMap<String, String> {
    documents(records).into_iter().map(|document| (document.id, document.text.text().to_owned())).collect()
}
