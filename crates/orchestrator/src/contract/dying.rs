//! A journal whose process dies.

use crate::ports::{
    BoxFuture, Commit, Journal, JournalError, OpenTurn, Outcome, RunFilter, RunPage, Service, SessionLog, SetAside,
    TurnKey,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trellis_domain::record::Record;
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, SessionId, Timestamp, Workspace};

/// A journal whose process dies after some commits.
#[derive(Debug)]
pub(super) struct Dying {
    journal: Arc<dyn Journal>,
    left: AtomicUsize,
}

impl Dying {
    pub(super) fn after(commits: usize, journal: Arc<dyn Journal>) -> Self {
        Self { journal, left: AtomicUsize::new(commits) }
    }

    fn is_dead(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    fn alive<'a, T: Send + 'a>(
        &'a self,
        call: impl FnOnce(&'a dyn Journal) -> BoxFuture<'a, Result<T, JournalError>>,
    ) -> BoxFuture<'a, Result<T, JournalError>> {
        if self.is_dead() { Box::pin(std::future::ready(Err(JournalError::Closed))) } else { call(&*self.journal) }
    }
}

impl Journal for Dying {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, JournalError>> {
        let used = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match used {
            Ok(_) => self.journal.commit(commit),
            Err(_) => Box::pin(std::future::ready(Err(JournalError::Closed))),
        }
    }

    fn load<'a>(
        &'a self,
        workspace: &'a Workspace,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionLog>, JournalError>> {
        self.alive(|journal| journal.load(workspace, session))
    }

    fn end<'a>(
        &'a self,
        workspace: &'a Workspace,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<Record>>, JournalError>> {
        self.alive(|journal| journal.end(workspace, session))
    }

    fn is_open<'a>(&'a self, turn: &'a TurnKey) -> BoxFuture<'a, Result<bool, JournalError>> {
        self.alive(|journal| journal.is_open(turn))
    }

    fn begin<'a>(&'a self, turn: &'a TurnKey) -> BoxFuture<'a, Result<Option<u32>, JournalError>> {
        self.alive(|journal| journal.begin(turn))
    }

    fn release<'a>(&'a self, turn: &'a TurnKey) -> BoxFuture<'a, Result<(), JournalError>> {
        self.journal.release(turn)
    }

    fn keep_back<'a>(&'a self, turns: &'a [TurnKey]) -> BoxFuture<'a, Result<(), JournalError>> {
        self.alive(|journal| journal.keep_back(turns))
    }

    fn begin_trial<'a>(&'a self, turns: &'a [TurnKey], now: Timestamp) -> BoxFuture<'a, Result<(), JournalError>> {
        self.alive(|journal| journal.begin_trial(turns, now))
    }

    fn acquit<'a>(&'a self, turns: &'a [TurnKey]) -> BoxFuture<'a, Result<(), JournalError>> {
        self.alive(|journal| journal.acquit(turns))
    }

    fn set_aside(&self, aside: SetAside) -> BoxFuture<'_, Result<(), JournalError>> {
        self.alive(|journal| journal.set_aside(aside))
    }

    fn sign_of_life(&self, now: Timestamp) -> BoxFuture<'_, Result<(), JournalError>> {
        self.alive(|journal| journal.sign_of_life(now))
    }

    fn service(&self) -> Service {
        self.journal.service()
    }

    fn due_turns(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<OpenTurn>, JournalError>> {
        self.alive(|journal| journal.due_turns(now))
    }

    fn open_runs(&self) -> usize {
        self.journal.open_runs()
    }

    fn run<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<RunSummary>, JournalError>> {
        self.alive(|journal| journal.run(workspace, run))
    }

    fn runs<'a>(
        &'a self,
        workspace: &'a Workspace,
        filter: &'a RunFilter,
        cursor: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<RunPage, JournalError>> {
        self.alive(|journal| journal.runs(workspace, filter, cursor, limit))
    }

    fn with_prefix<'a>(
        &'a self,
        workspace: &'a Workspace,
        start: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, JournalError>> {
        self.alive(|journal| journal.with_prefix(workspace, start, limit))
    }

    fn events<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        // Readers outlive the writer: what is committed can be read.
        self.journal.events(workspace, run, after, limit)
    }
}
