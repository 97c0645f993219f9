//! Lists of runs, newest first.

use crate::batch::searched;
use crate::database::Database;
use crate::error::damaged;
use tokio_postgres::types::ToSql;
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::{ConversationId, PatternName, RunId, TaskTypeName, Timestamp, Workspace};
use trellis_orchestrator::ports::{JournalError, RunFilter, RunPage, UnreadableRun};

/// A page of runs. It begins with the run that the cursor names.
pub(crate) async fn page(
    database: &Database,
    workspace: &Workspace,
    filter: &RunFilter,
    cursor: Option<&str>,
    limit: usize,
) -> Result<RunPage, JournalError> {
    let in_hand: Vec<&str> = filter.in_hand.iter().map(RunId::as_str).collect();
    let state = filter.state.map(RunState::as_str);
    let pattern = filter.pattern.as_ref().map(PatternName::as_str);
    let conversation = filter.conversation.as_ref().map(ConversationId::as_str);
    let task_type = filter.task_type.as_ref().map(part_of_summary);
    let since = filter.since.map(Timestamp::as_micros);
    let text = filter.search.as_ref().map(|text| searched(text));
    // An id never has what no text of a database may hold.
    let cursor = cursor.map(|cursor| cursor.replace('\0', " "));
    let one_more = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut conditions = vec!["workspace = $1".to_owned()];
    let workspace = workspace.as_str();
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&workspace, &one_more];
    let mut also = |condition: &str, parameter| {
        parameters.push(parameter);
        conditions.push(condition.replace('?', &format!("${}", parameters.len())));
    };
    match filter.state {
        None => {}
        // What workers have in hand is running, even if nothing of it is recorded yet.
        Some(RunState::Running) => {
            also("(state = 'running' OR (state = 'queued' AND run = ANY (?::text[])))", &in_hand);
        }
        Some(RunState::Queued) => also("state = 'queued' AND NOT run = ANY (?::text[])", &in_hand),
        Some(_) => also("state = ?", &state),
    }
    if pattern.is_some() {
        also("pattern = ?", &pattern);
    }
    if task_type.is_some() {
        also("position(?::bytea IN summary) > 0", &task_type);
    }
    if since.is_some() {
        also("started >= ?", &since);
    }
    if conversation.is_some() {
        also("conversation = ?", &conversation);
    }
    if text.is_some() {
        also("strpos(searched, ?) > 0", &text);
    }
    if cursor.is_some() {
        also("(started, run) <= (SELECT c.started, c.run FROM runs c WHERE c.workspace = $1 AND c.run = ?)", &cursor);
    }
    let query = format!(
        "SELECT run, summary FROM runs WHERE {} ORDER BY started DESC, run DESC LIMIT $2",
        conditions.join(" AND ")
    );
    let rows = database.query(&query, &parameters).await?;
    let mut page = RunPage::default();
    for (at, row) in rows.iter().enumerate() {
        let run: &str = row.get(0);
        if at == limit {
            page.next = Some(run.to_owned());
            break;
        }
        match serde_json::from_slice::<RunSummary>(row.get(1)) {
            Ok(summary) => page.runs.push(summary),
            Err(error) => {
                let run = RunId::new(run).map_err(damaged)?;
                page.unreadable.push(UnreadableRun { run, reason: error.to_string() });
            }
        }
    }
    Ok(page)
}

/// What a summary with this task type has in it, and no other: a text in JSON has no quotes that are not escaped.
fn part_of_summary(task_type: &TaskTypeName) -> Vec<u8> {
    format!("\"task_type\":{}", serde_json::json!(task_type)).into_bytes()
}
