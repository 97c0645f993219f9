//! Cancelling a run: its end is committed like any other, and everything below it is wound up in the same commit.
//!
//! Calls in flight are let go at once: whoever waits for one is told to look at the record, in this process and, through
//! the stream, in all others. A worker that does not hear of it looks when it renews its claim, and what it brings
//! meanwhile is late.

use crate::claims::Claims;
use crate::handling::Handling;
use crate::orchestrator::{Orchestrator, TurnError};
use crate::ports::{Claiming, Commit, Outcome, SetAside, StreamNotice, TurnKey};
use std::time::Duration;
use trellis_domain::record::{Body, Name};
use trellis_domain::run::{RunState, Termination};
use trellis_domain::{Caller, RunId, Scope, SessionId, Workspace};
use trellis_patterns::Ending;

/// What became of the wish to cancel a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelling {
    Cancelled,
    /// It had ended before, like this.
    AlreadyEnded(RunState),
    Unknown,
}

/// To close a turn takes a moment.
const CLOSING: Duration = Duration::from_secs(30);

fn ending(by: Option<Caller>) -> Ending {
    Ending { by, ..Ending::failed(Termination::Cancelled, "the run was cancelled") }
}

impl Orchestrator {
    /// See [`RunService::cancel`](crate::RunService::cancel).
    pub(crate) async fn cancel(
        &self,
        workspace: &Workspace,
        run: &RunId,
        by: &Caller,
    ) -> Result<Cancelling, TurnError> {
        // A subagent's session is no run.
        let Some(summary) = self.ports.journal.run(workspace, run).await? else { return Ok(Cancelling::Unknown) };
        let error = match self.cancel_by_commit(workspace, run, by).await {
            Err(TurnError::Journal(error)) if error.is_unreadable() => error,
            cancelled => return cancelled,
        };
        if summary.state.is_end() {
            return Ok(Cancelling::AlreadyEnded(summary.state));
        }
        // Nothing can be added to records that cannot be read. Whoever cancels wants no more of it, and gets that.
        let reason = format!("cancelled by {by}; its records cannot be read: {error}");
        self.set_aside(workspace, run, run, reason, RunState::Cancelled).await?;
        Ok(Cancelling::Cancelled)
    }

    /// Closes the turns of a session that cannot be read, or of the run if it is the root.
    pub(crate) async fn set_aside(
        &self,
        workspace: &Workspace,
        run: &RunId,
        session: &SessionId,
        reason: String,
        state: RunState,
    ) -> Result<(), TurnError> {
        tracing::error!(%workspace, %run, %session, reason, "set aside");
        let (workspace, run, session) = (workspace.clone(), run.clone(), session.clone());
        let aside = SetAside { workspace, run, session, reason, state, time: self.ports.world.now() };
        Ok(self.ports.journal.set_aside(aside).await?)
    }

    async fn cancel_by_commit(&self, workspace: &Workspace, run: &RunId, by: &Caller) -> Result<Cancelling, TurnError> {
        loop {
            let Some(handling) = self.root(workspace, run).await? else { return Ok(Cancelling::Unknown) };
            if let Some(ended) = handling.session.ended() {
                return Ok(Cancelling::AlreadyEnded(ended.reason.run_state()));
            }
            let closing = Box::pin(self.ending(&handling, ending(Some(by.clone())))).await?;
            let now = self.ports.world.now();
            let records = closing.records.into_iter().map(|decided| handling.decided(decided, now)).collect();
            let commit = handling.commit(records, Vec::new(), Vec::new());
            let commit = Commit { seen_of_others: closing.seen_of_others, ..commit };
            // A conflict means that something happened meanwhile: look again.
            if let Outcome::Committed(committed) = self.ports.journal.commit(commit).await? {
                self.cancels.send();
                self.ports.hub.tell_others(workspace, || StreamNotice::Cancelled { run: run.clone() });
                self.after_commit(workspace, run, &committed).await;
                self.close_turns(workspace, run).await?;
                return Ok(Cancelling::Cancelled);
            }
        }
    }

    /// The root session of a run, as if it were being handled. It is no turn that this is done in.
    pub(crate) async fn root(&self, workspace: &Workspace, run: &RunId) -> Result<Option<Handling>, TurnError> {
        let scope = Scope { workspace: workspace.clone(), ..Scope::default() };
        let mut key = TurnKey { scope, run: run.clone(), session: run.clone(), name: Name::end() };
        let Some(session) = self.load_without_settings(&key).await? else { return Ok(None) };
        if let Some(first) = session.record(&Name::session()) {
            key.scope.flow = first.header.flow.clone();
        }
        Ok(Some(Handling::new(key, session, 1)))
    }

    /// Closes the turns of a run whose sessions have all ended, those that are not due yet among them. Turns in hand
    /// are closed by whoever holds them.
    async fn close_turns(&self, workspace: &Workspace, run: &RunId) -> Result<(), TurnError> {
        let journal = &self.ports.journal;
        for turn in journal.turns_of(workspace, run).await? {
            let held = Claims::new_claim(&self.claims, &turn.key);
            if !matches!(journal.claim(&held.claim, CLOSING).await?, Claiming::Claimed { .. }) {
                continue;
            }
            let closed = match self.load_without_settings(&turn.key).await? {
                Some(session) => self.end_with(&mut Handling::new(turn.key, session, 1), ending(None)).await,
                None => Ok(()),
            };
            journal.give_back(&held.claim).await?;
            closed?;
        }
        Ok(())
    }

    /// What comes of some work for a turn; None as soon as its run is cancelled, and then the work is dropped.
    pub(crate) async fn unless_cancelled<T>(
        &self,
        turn: &TurnKey,
        work: impl Future<Output = T>,
    ) -> Result<Option<T>, TurnError> {
        let mut cancels = self.cancels.listen();
        // By itself: nothing is begun for a run that is cancelled already, and work that is quick breaks off no look.
        if self.is_cancelled(turn).await? {
            return Ok(None);
        }
        let cancelled = async {
            loop {
                cancels.changed().await;
                if self.is_cancelled(turn).await? {
                    return Ok(());
                }
            }
        };
        tokio::select! {
            biased;
            looked = cancelled => looked.map(|()| None),
            outcome = work => Ok(Some(outcome)),
        }
    }

    async fn is_cancelled(&self, turn: &TurnKey) -> Result<bool, TurnError> {
        let end = self.patiently(|journal| journal.end(&turn.scope.workspace, &turn.run)).await?;
        Ok(end.is_some_and(|end| matches!(&end.body, Body::Ended(end) if end.reason == Termination::Cancelled)))
    }
}
