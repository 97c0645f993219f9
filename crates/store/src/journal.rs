//! The embedded journal.

use crate::keys;
use crate::request::{Reply, Request};
use crate::state::Shared;
use crate::tables::{Tables, read_failed};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use tokio::sync::{Semaphore, oneshot};
use trellis_domain::record::{Name, Record};
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, SessionId, Timestamp, Workspace};
use trellis_orchestrator::audit::Audit;
use trellis_orchestrator::ports::{
    BoxFuture, Commit, Journal, JournalError, OpenTurn, Outcome, RunFilter, RunPage, Service, SessionLog, SetAside,
    TurnKey,
};

/// Commits go to the committer's thread; reads come from memory, or from disk off the runtime.
#[derive(Debug, Clone)]
pub struct EmbeddedJournal {
    pub(crate) tables: Tables,
    pub(crate) shared: Arc<Shared>,
    pub(crate) requests: Sender<Request>,
}

impl EmbeddedJournal {
    pub(crate) async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, JournalError> {
        let (reply, answer) = oneshot::channel();
        self.requests.send(request(reply)).map_err(|_| JournalError::Closed)?;
        answer.await.map_err(|_| JournalError::Closed)?
    }

    async fn load_session(
        &self,
        workspace: &Workspace,
        session: &SessionId,
    ) -> Result<Option<SessionLog>, JournalError> {
        let place = (workspace.clone(), session.clone());
        if let Some(log) = self.shared.cached(&place) {
            return Ok(Some(log));
        }
        let tables = self.tables.clone();
        let records = off_the_runtime(move || tables.read().session(&place.0, &place.1)).await?;
        let version = records.iter().map(|record| record.header.version).max().unwrap_or(0);
        Ok((!records.is_empty()).then_some(SessionLog { version, records }))
    }
}

fn end_in(records: &[Arc<Record>]) -> Option<Arc<Record>> {
    // Only late outcomes come behind it.
    records.iter().rev().find(|record| record.header.name == Name::end()).cloned()
}

/// Reads under way at once: thousands of sessions must not mean hundreds of threads.
static READS: Semaphore = Semaphore::const_new(4);

/// Reads that may touch the disk do not hold up other sessions.
pub(crate) async fn off_the_runtime<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    let _place = READS.acquire().await.map_err(|_| JournalError::Closed)?;
    tokio::task::spawn_blocking(read).await.map_err(|error| JournalError::Read(error.to_string()))?
}

fn list_runs(
    tables: &Tables,
    workspace: &Workspace,
    filter: &RunFilter,
    cursor: Option<String>,
    limit: usize,
) -> Result<RunPage, JournalError> {
    let reader = tables.read();
    // A conversation has a list of its own: it must not cost more the more other runs there are.
    let list = match &filter.conversation {
        Some(conversation) => keys::conversation(workspace, conversation),
        None => keys::listed_in(workspace),
    };
    let from = match cursor.and_then(|run| RunId::new(&run).ok()) {
        Some(run) => match reader.run(workspace, &run)? {
            Some(summary) => keys::listed(&list, summary.started, &run),
            None => list.clone(),
        },
        None => list.clone(),
    };
    let mut page = RunPage::default();
    for row in reader.index_range(from..) {
        let key = row.key().map_err(read_failed)?;
        if !key.starts_with(&list) {
            break;
        }
        let Some(run) = keys::listed_run(&key, &list) else { continue };
        let Some(summary) = reader.run(workspace, &run)? else { continue };
        if !filter.matches(&summary) {
            continue;
        }
        if page.runs.len() == limit {
            page.next = Some(run.as_str().to_owned());
            break;
        }
        page.runs.push(summary);
    }
    Ok(page)
}

impl Journal for EmbeddedJournal {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, JournalError>> {
        Box::pin(self.ask(|reply| Request::Commit(Box::new(commit), reply)))
    }

    fn load<'a>(
        &'a self,
        workspace: &'a Workspace,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionLog>, JournalError>> {
        Box::pin(self.load_session(workspace, session))
    }

    fn end<'a>(
        &'a self,
        workspace: &'a Workspace,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<Record>>, JournalError>> {
        let place = (workspace.clone(), session.clone());
        if let Some(end) = self.shared.look(&place, |log| end_in(&log.records)) {
            return Box::pin(std::future::ready(Ok(end)));
        }
        let tables = self.tables.clone();
        Box::pin(off_the_runtime(move || Ok(end_in(&tables.read().session(&place.0, &place.1)?))))
    }

    fn is_open<'a>(&'a self, turn: &'a TurnKey) -> BoxFuture<'a, Result<bool, JournalError>> {
        let open = self.shared.turns().contains_key(turn);
        Box::pin(std::future::ready(Ok(open)))
    }

    fn begin<'a>(&'a self, turn: &'a TurnKey) -> BoxFuture<'a, Result<Option<u32>, JournalError>> {
        Box::pin(self.begin_turn(turn))
    }

    fn release<'a>(&'a self, turn: &'a TurnKey) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(self.release_turn(turn))
    }

    fn acquit<'a>(&'a self, turns: &'a [TurnKey]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(self.acquit_turns(turns))
    }

    fn set_aside(&self, aside: SetAside) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(self.set_turns_aside(aside))
    }

    fn sign_of_life(&self, now: Timestamp) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(self.note_sign_of_life(now))
    }

    fn service(&self) -> Service {
        self.shared.served().told()
    }

    fn due_turns(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<OpenTurn>, JournalError>> {
        let due = self.shared.due(now);
        Box::pin(std::future::ready(Ok(due)))
    }

    fn open_runs(&self) -> usize {
        self.shared.open_runs()
    }

    fn run<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<RunSummary>, JournalError>> {
        let (tables, workspace, run) = (self.tables.clone(), workspace.clone(), run.clone());
        Box::pin(off_the_runtime(move || tables.read().run(&workspace, &run)))
    }

    fn runs<'a>(
        &'a self,
        workspace: &'a Workspace,
        filter: &'a RunFilter,
        cursor: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<RunPage, JournalError>> {
        let (tables, workspace, filter) = (self.tables.clone(), workspace.clone(), filter.clone());
        let cursor = cursor.map(str::to_owned);
        Box::pin(off_the_runtime(move || list_runs(&tables, &workspace, &filter, cursor, limit)))
    }

    fn with_prefix<'a>(
        &'a self,
        workspace: &'a Workspace,
        start: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, JournalError>> {
        let mut prefix = keys::runs(workspace);
        let skipped = prefix.len();
        prefix.extend_from_slice(start.as_bytes());
        let tables = self.tables.clone();
        Box::pin(off_the_runtime(move || {
            let rows = tables.read().index_prefix(&prefix).take(limit);
            let run = |key: &[u8]| RunId::new(std::str::from_utf8(key.get(skipped..key.len() - 1)?).ok()?).ok();
            let keys = rows.map(|row| row.key().map_err(read_failed)).collect::<Result<Vec<_>, _>>()?;
            Ok(keys.iter().filter_map(|key| run(key)).collect())
        }))
    }

    fn events<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        let place = (workspace.clone(), run.clone());
        if let Some(events) = self.shared.events(&place, after, limit) {
            return Box::pin(std::future::ready(Ok(events)));
        }
        let tables = self.tables.clone();
        Box::pin(off_the_runtime(move || tables.read().events(&place.0, &place.1, after, limit)))
    }
}

impl EmbeddedJournal {
    /// Reads a run's records as they are stored: contents against hashes, links against contents, numbers
    /// without gap.
    pub async fn audit(&self, workspace: &Workspace, run: &RunId) -> Result<Audit, JournalError> {
        let (tables, workspace, run) = (self.tables.clone(), workspace.clone(), run.clone());
        off_the_runtime(move || crate::audit::audit(&tables, &workspace, &run)).await
    }
}
