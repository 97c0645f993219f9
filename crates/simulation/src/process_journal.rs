//! One process's way to the shared journal: slow, unreliable, and the place where the process dies.

use crate::breakage::{Breakage, as_if_committed, mistaken};
use crate::fault_source::FaultSource;
use crate::process_life::ProcessLife;
use crate::recorder::Recorder;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::record::{Body, Name};
use trellis_domain::{SessionId, Timestamp, Workspace};
use trellis_orchestrator::contract::layer::{JournalFuture, Layer};
use trellis_orchestrator::memory::{MemoryJournal, VirtualWorld};
use trellis_orchestrator::ports::{Claim, Commit, Journal, JournalError, OpenTurn, Outcome, SessionLog, TurnKey};

#[derive(Debug)]
pub(crate) struct ProcessJournal {
    pub(crate) process: usize,
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) world: Arc<VirtualWorld>,
    pub(crate) life: Arc<ProcessLife>,
    pub(crate) fault_source: Arc<FaultSource>,
    pub(crate) recorder: Arc<Recorder>,
    pub(crate) breakage: Option<Breakage>,
}

impl ProcessJournal {
    fn breaks(&self, breakage: Breakage) -> bool {
        self.breakage == Some(breakage)
    }

    /// The commit as it happens, and what is seen of it.
    async fn really(&self, commit: Commit) -> Result<Outcome, JournalError> {
        let outcome = self.journal.commit(commit).await?;
        if let Outcome::Committed(committed) = &outcome {
            self.recorder.committed(&committed.records, self.world.passed());
        }
        Ok(outcome)
    }

    async fn commit_mistakenly(&self, commit: Commit) -> Result<Outcome, JournalError> {
        let commit = match self.breakage {
            None => commit,
            Some(breakage) => mistaken(breakage, self.process, commit, &*self.journal, &self.recorder).await,
        };
        let is_reply =
            |commit: &Commit| matches!(commit.records[..], [ref one] if matches!(one.body, Body::Replied(_)));
        if self.breaks(Breakage::ActedOnBeforeItIsRecorded) && is_reply(&commit) && commit.close.is_empty() {
            let fabricated = as_if_committed(&commit);
            let (journal, recorder, world) =
                (Arc::clone(&self.journal), Arc::clone(&self.recorder), Arc::clone(&self.world));
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(200)).await;
                if let Ok(Outcome::Committed(committed)) = journal.commit(commit).await {
                    recorder.committed(&committed.records, world.passed());
                }
            });
            return Ok(fabricated);
        }
        if self.breaks(Breakage::StaleHead) {
            let fabricated = as_if_committed(&commit);
            let is_outcome = commit.close.is_empty() && commit.open.is_empty();
            return match self.really(commit).await? {
                Outcome::Conflict if is_outcome => Ok(fabricated),
                outcome @ (Outcome::Committed(_) | Outcome::Conflict) => Ok(outcome),
            };
        }
        self.really(commit).await
    }
}

impl Layer for ProcessJournal {
    fn journal(&self) -> &dyn Journal {
        &*self.journal
    }

    fn pass<'a, T: Send + 'a>(&'a self, _: &'static str, call: JournalFuture<'a, T>) -> JournalFuture<'a, T> {
        let unavailable = || Err(JournalError::Unavailable("simulated".to_owned()));
        Box::pin(async move {
            self.life.pass().await;
            let takes = self.fault_source.takes(|faults| faults.store_takes_ms);
            if !takes.is_zero() {
                tokio::time::sleep(takes).await;
            }
            let fails = self.fault_source.strikes(|faults| faults.store_fails);
            if fails {
                self.recorder.count("calls that the store did not answer");
            }
            if fails && self.fault_source.chance().one_in(2) {
                return unavailable();
            }
            let result = call.await;
            // It may have happened, and only the answer is lost.
            self.life.pass().await;
            if fails { unavailable() } else { result }
        })
    }

    fn asked_to_commit(&self, commit: &Commit) {
        if commit.records.iter().any(|record| record.session == commit.run && record.name == Name::end()) {
            self.recorder.ends(&commit.scope.workspace, &commit.run);
        }
    }

    fn commit(&self, commit: Commit) -> JournalFuture<'_, Outcome> {
        Box::pin(async move {
            let outcome = self.commit_mistakenly(commit).await?;
            match &outcome {
                Outcome::Committed(committed) => self.recorder.promised(&committed.records),
                Outcome::Conflict => self.recorder.count("commits that conflicted"),
            }
            Ok(outcome)
        })
    }

    fn load<'a>(&'a self, workspace: &'a Workspace, session: &'a SessionId) -> JournalFuture<'a, Option<SessionLog>> {
        Box::pin(async move {
            let log = self.journal.load(workspace, session).await?;
            if let Some(log) = &log {
                self.recorder.loaded(self.process, workspace, session, log.version);
            }
            Ok(log)
        })
    }

    fn renew<'a>(&'a self, claim: &'a Claim, life: Duration) -> JournalFuture<'a, bool> {
        if self.breaks(Breakage::ClaimsNotRenewed) {
            return Box::pin(std::future::ready(Ok(true)));
        }
        Box::pin(async move {
            let kept = self.journal.renew(claim, life).await?;
            self.recorder.count(if kept { "claims renewed" } else { "claims lost" });
            Ok(kept)
        })
    }

    fn due_turns<'a>(
        &'a self,
        until: Timestamp,
        after: Option<&'a TurnKey>,
        limit: usize,
    ) -> JournalFuture<'a, Vec<OpenTurn>> {
        if self.breaks(Breakage::TurnsOnlyInTheQueue) {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        }
        self.journal.due_turns(until, after, limit)
    }
}
