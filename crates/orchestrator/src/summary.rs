//! Runs and changes of the configuration as JSON: the same objects for the command line and for programs that ask over HTTP.

use crate::events::asked;
use crate::ports::{HistoryEntry, Journal, JournalError, RunFilter, RunPage, UnreadableRun};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::document::Document;
use trellis_domain::record::{Ended, Name, Record};
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::{Caller, ConversationId, RunId, Timestamp, Workspace};
use trellis_patterns::{documents, project};
use trellis_provenance::trace;

/// One run of the list of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    pub run_id: RunId,
    pub state: RunState,
    /// At most [`RunSummary::QUESTION_CHARS`] of it.
    pub question: String,
    pub pattern: String,
    pub task_type: String,
    pub conversation_id: Option<ConversationId>,
    pub started: String,
    /// Run time so far, or in all.
    pub ms: u64,
    pub in_token: Option<u64>,
    pub out_token: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub question_truncated: bool,
}

impl Listed {
    fn new(run: &RunSummary, now: Timestamp) -> Self {
        Self {
            run_id: run.run.clone(),
            state: run.state,
            question: run.question.clone(),
            pattern: run.pattern.clone(),
            task_type: run.task_type.clone(),
            conversation_id: run.conversation.clone(),
            started: run.started.to_string(),
            ms: run.ms(now),
            in_token: run.usage.in_token,
            out_token: run.usage.out_token,
            question_truncated: false,
        }
    }
}

/// Why there is no page of runs.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// A cursor that leads nowhere must not look like the first page.
    #[error("`{0}` is no cursor; use the `next` of an earlier list")]
    NoCursor(String),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A page of runs, newest first, from behind the cursor on.
pub async fn page(
    journal: &dyn Journal,
    workspace: &Workspace,
    filter: &RunFilter,
    cursor: Option<&str>,
    limit: usize,
) -> Result<RunPage, PageError> {
    if let Some(cursor) = cursor {
        let no_cursor = || PageError::NoCursor(cursor.to_owned());
        let run = RunId::new(cursor).map_err(|_| no_cursor())?;
        journal.run(workspace, &run).await?.ok_or_else(no_cursor)?;
    }
    let mut page = journal.runs(workspace, filter, cursor, limit).await?;
    for run in &mut page.runs {
        run.state = filter.state_of(run);
    }
    Ok(page)
}

/// A page as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedPage {
    pub runs: Vec<Listed>,
    pub next: Option<String>,
    /// Runs in between that cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<UnreadableRun>,
}

impl ListedPage {
    /// Adds the page after this one. Where to go on, if there is more.
    pub fn add(&mut self, page: Self) -> Option<String> {
        self.runs.extend(page.runs);
        self.unreadable.extend(page.unreadable);
        self.next.clone_from(&page.next);
        page.next
    }
}

/// All of a page. One run that cannot be read does not hide the others.
pub async fn all_listed(journal: &dyn Journal, page: RunPage, now: Timestamp) -> ListedPage {
    let RunPage { runs, next, mut unreadable } = page;
    let mut all = Vec::with_capacity(runs.len());
    for run in runs {
        match listed(journal, &run, now).await {
            Ok(listed) => all.push(listed),
            Err(error) => unreadable.push(UnreadableRun { run: run.run, reason: error.to_string() }),
        }
    }
    ListedPage { runs: all, next, unreadable }
}

/// Reads a record only if its question may be longer than what the list holds.
async fn listed(journal: &dyn Journal, run: &RunSummary, now: Timestamp) -> Result<Listed, JournalError> {
    let question_truncated = question(journal, run).await?.is_some_and(|whole| whole != run.question);
    Ok(Listed { question_truncated, ..Listed::new(run, now) })
}

/// The whole question of a run, if its summary may have only the beginning of it.
async fn question(journal: &dyn Journal, run: &RunSummary) -> Result<Option<String>, JournalError> {
    if run.question.chars().count() < RunSummary::QUESTION_CHARS {
        return Ok(None);
    }
    let first = journal.events(&run.workspace, &run.run, 0, 1).await?;
    let accepted = first.first().and_then(|record| record.body.as_accepted());
    Ok(accepted.map(|accepted| accepted.question.text().to_owned()))
}

/// One run with its whole question and how it ended, as far as it has.
pub async fn whole(journal: &dyn Journal, run: &RunSummary, now: Timestamp) -> Result<Value, JournalError> {
    let mut object = json!(Listed::new(run, now));
    if let Some(whole) = question(journal, run).await? {
        object["question"] = json!(whole);
    }
    object["seq"] = json!(run.seq);
    let first = journal.events(&run.workspace, &run.run, 0, 1).await?;
    put_asker(&mut object, first.first().map(AsRef::as_ref));
    let questions = open_questions(journal, run).await?;
    if !questions.is_empty() {
        object["waiting_for"] = json!(questions);
    }
    let end = journal.end(&run.workspace, &run.run).await?;
    let outcome = outcome(run, end.as_ref().and_then(|end| end.body.as_ended()), now);
    if let (Value::Object(object), Value::Object(outcome)) = (&mut object, outcome) {
        object.extend(outcome);
    }
    Ok(object)
}

/// The questions to people that a run waits for.
pub async fn open_questions(journal: &dyn Journal, run: &RunSummary) -> Result<Vec<Value>, JournalError> {
    let mut questions = Vec::new();
    for (session, number) in &run.parked {
        let Some(log) = journal.load(&run.workspace, session).await? else { continue };
        let named = log.records.iter().filter(|record| record.header.name == Name::park(*number));
        questions.extend(named.filter_map(|record| record.body.as_parked()).map(|parked| {
            let mut question = asked(parked);
            question["session_id"] = json!(session.as_str());
            question
        }));
    }
    Ok(questions)
}

/// What came of a run.
pub fn outcome(run: &RunSummary, ended: Option<&Ended>, now: Timestamp) -> Value {
    let mut object = json!({
        "run_id": run.run.as_str(),
        "session_id": run.run.as_str(),
        "state": run.state,
        "reason": ended.map(|ended| ended.reason),
        "answer": ended.and_then(|ended| ended.answer.as_ref()).map(Document::text),
        "error": ended.and_then(|ended| ended.error.as_ref()),
        "pattern": run.pattern,
        "task_type": run.task_type,
        "conversation_id": run.conversation.as_ref().map(ConversationId::as_str),
        "in_token": run.usage.in_token,
        "out_token": run.usage.out_token,
        "model": run.usage.model,
        "model_calls": run.usage.model_calls,
        "tool_calls": run.usage.tool_calls,
        "ms": run.ms(now),
    });
    put_missing(&mut object, ended);
    put_canceller(&mut object, ended);
    object
}

/// Every step of a run, read from its graph, with the texts that the graph refers to.
pub fn traced(run: &RunSummary, records: &[Arc<Record>], now: Timestamp) -> Value {
    let mut object = json!({
        "run_id": run.run.as_str(), "state": run.state, "task_type": run.task_type, "pattern": run.pattern,
        "conversation_id": run.conversation.as_ref().map(ConversationId::as_str),
        "ms": run.ms(now), "usage": run.usage,
        "sessions": trace(&project(records)).sessions, "documents": texts(records),
    });
    put_missing(&mut object, end_of(records, &run.run));
    put_canceller(&mut object, end_of(records, &run.run));
    put_asker(&mut object, records.first().map(AsRef::as_ref));
    object
}

/// Who asked, where and with which request, if the first record of the run says so.
fn put_asker(object: &mut Value, first: Option<&Record>) {
    let Some((record, accepted)) = first.and_then(|record| Some((record, record.body.as_accepted()?))) else { return };
    if let Some(by) = &accepted.by {
        object["asked_by"] = json!(by);
        object["workspace"] = json!(record.header.workspace.as_str());
        object["request_id"] = json!(accepted.request_id);
    }
    if let Some(configured) = &accepted.configured {
        object["configured"] =
            json!({"version": configured.version, "time": configured.time.to_string(), "by": configured.by});
    }
}

/// Who cancelled it, if its end says so.
fn put_canceller(object: &mut Value, ended: Option<&Ended>) {
    if let Some(by) = ended.and_then(|ended| ended.by.as_ref()) {
        object["cancelled_by"] = json!(by);
    }
}

/// The stored documents of a run, by id.
pub fn texts(records: &[Arc<Record>]) -> BTreeMap<String, String> {
    documents(records).into_iter().map(|document| (document.id, document.text.text().to_owned())).collect()
}

/// The end of the run itself, not of a subagent.
pub fn end_of<'a>(records: &'a [Arc<Record>], run: &RunId) -> Option<&'a Ended> {
    let mut own = records.iter().filter(|record| record.header.session == *run);
    own.find_map(|record| record.body.as_ended())
}

/// What an answer does without, if it does without something: numbers of steps or findings, and in words what a limit
/// did not let be done.
pub fn put_missing(object: &mut Value, ended: Option<&Ended>) {
    let left_out = ended.map(|ended| ended.left_out.as_slice()).unwrap_or_default();
    if !left_out.is_empty() {
        object["left_out"] = json!(left_out);
    }
    let missing = ended.map(|ended| ended.missing.as_slice()).unwrap_or_default();
    if !missing.is_empty() {
        object["missing"] = json!(missing);
    }
}

/// One change of one configuration item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub version: u64,
    pub time: String,
    pub deleted: bool,
    pub value: Option<String>,
    /// Who made it, as far as that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
}

impl From<HistoryEntry> for Change {
    fn from(entry: HistoryEntry) -> Self {
        let HistoryEntry { version, time, value, by } = entry;
        Self { version, time: time.to_string(), deleted: value.is_none(), value, by }
    }
}
