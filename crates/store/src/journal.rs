//! The embedded journal.

use crate::keys;
use crate::listing;
use crate::request::{Reply, Request};
use crate::state::Shared;
use crate::tables::{Tables, read_failed};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use trellis_domain::record::{Name, Record};
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, SessionId, Timestamp, Workspace};
use trellis_orchestrator::ports::{
    BoxFuture, Claim, Claiming, Commit, Journal, JournalError, OpenTurn, Outcome, RunFilter, RunPage, Service,
    SessionLog, SetAside, TurnKey,
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
        Ok((!records.is_empty()).then(|| SessionLog { version, records, ..SessionLog::default() }))
    }
}

fn end_in(records: &[Arc<Record>]) -> Option<Arc<Record>> {
    // Only late outcomes come behind it.
    records.iter().rev().find(|record| record.header.name == Name::end()).cloned()
}

/// Reads under way at once: thousands of sessions must not mean hundreds of threads.
static READS: Semaphore = Semaphore::const_new(4);

/// Lists and searches under way at once. They have places of their own, so that nobody who looks for a run holds up
/// those that are asked or answered.
static LISTS: Semaphore = Semaphore::const_new(2);

/// The same for what proves runs: it reads megabytes, and may be asked for by many.
static PROOFS: Semaphore = Semaphore::const_new(2);

pub(crate) async fn to_prove<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    in_place_of(&PROOFS, read).await
}

/// Reads that may touch the disk do not hold up other sessions.
pub(crate) async fn off_the_runtime<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    in_place_of(&READS, read).await
}

/// The place is free again once the reading has really ended, whoever waits for it.
async fn in_place_of<T: Send + 'static>(
    places: &'static Semaphore,
    read: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    let place = places.acquire().await.map_err(|_| JournalError::Closed)?;
    let read = move || {
        let _place = place;
        read()
    };
    tokio::task::spawn_blocking(read).await.map_err(|error| JournalError::Read(error.to_string()))?
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

    fn claim<'a>(&'a self, claim: &'a Claim, _: Duration) -> BoxFuture<'a, Result<Claiming, JournalError>> {
        Box::pin(self.claim_turn(claim))
    }

    fn renew<'a>(&'a self, claim: &'a Claim, _: Duration) -> BoxFuture<'a, Result<bool, JournalError>> {
        let held = self.shared.claims().get(&claim.turn) == Some(&claim.id);
        Box::pin(std::future::ready(Ok(held)))
    }

    fn give_back<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(self.give_turn_back(claim))
    }

    fn in_hand<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<HashSet<RunId>, JournalError>> {
        let claims = self.shared.claims();
        let here = claims.keys().filter(|turn| turn.scope.workspace == *workspace);
        let runs = here.map(|turn| turn.run.clone()).collect();
        Box::pin(std::future::ready(Ok(runs)))
    }

    fn keep_back<'a>(&'a self, turns: &'a [TurnKey]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(self.keep_turns_back(turns))
    }

    fn begin_trial<'a>(&'a self, turns: &'a [TurnKey], now: Timestamp) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(self.try_turns(turns, now))
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
        self.shared.served().service()
    }

    fn due_turns<'a>(
        &'a self,
        until: Timestamp,
        after: Option<&'a TurnKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<OpenTurn>, JournalError>> {
        let due = self.shared.due(until, after, limit);
        Box::pin(std::future::ready(Ok(due)))
    }

    fn turns_of<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<OpenTurn>, JournalError>> {
        let turns = self.shared.turns_of(workspace, run);
        Box::pin(std::future::ready(Ok(turns)))
    }

    fn open_runs(&self) -> BoxFuture<'_, Result<usize, JournalError>> {
        Box::pin(std::future::ready(Ok(self.shared.open_runs())))
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
        let (journal, workspace, filter) = (self.clone(), workspace.clone(), filter.clone());
        let cursor = cursor.map(str::to_owned);
        // A conversation is read whenever it goes on, and its list is its own.
        let places = if filter.conversation.is_some() { &READS } else { &LISTS };
        Box::pin(in_place_of(places, move || {
            listing::page(&journal.tables, &journal.shared, &workspace, &filter, cursor.as_deref(), limit)
        }))
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
    /// Why nothing can be written any more, once that is so. What is on disk is unknown then: whoever works here stops.
    pub async fn failed(&self) -> JournalError {
        let mut failures = self.shared.failures();
        match failures.wait_for(Option::is_some).await.map(|failure| failure.clone()) {
            Ok(Some(error)) => error,
            Ok(None) | Err(_) => JournalError::Closed,
        }
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
