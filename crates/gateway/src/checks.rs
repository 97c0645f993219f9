//! Runs that are held against the log in passing, when somebody asks what came of them.
//!
//! That takes longer than a reply should, and concerns nobody but who asked: it has turns of its own, so that nobody else's
//! reply waits for it, and what was found of a run that has ended is remembered, however often it is asked for.

use crate::bounds;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinError;
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::audit::Audit;
use trellis_orchestrator::evidence::Evidence;
use trellis_orchestrator::ports::{JournalError, Log, LogError};

/// Most bytes of a run's record that is checked in passing: `trellis verify` takes any.
const CHECKED: usize = 16 << 20;
/// So many verdicts are remembered.
const REMEMBERED: usize = 1_024;
/// Most bytes of a verdict that is remembered.
const LONGEST: usize = 4 << 10;

/// What is known of the record of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Each record was looked for in the signed log, and derived again from those before it. This is wrong with them.
    Checked(Vec<String>),
    /// Why that was not done.
    NotChecked(String),
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error(transparent)]
    Store(#[from] JournalError),
    #[error(transparent)]
    Bug(#[from] JoinError),
}

/// One checked run, as it was: records that come behind its end make it another.
type Key = (Workspace, RunId, u64);

#[derive(Debug)]
pub(crate) struct Checks {
    turns: Arc<Semaphore>,
    verdicts: Mutex<Verdicts>,
}

#[derive(Debug, Default)]
struct Verdicts {
    known: HashMap<Key, Verdict>,
    oldest: VecDeque<Key>,
}

impl Default for Checks {
    fn default() -> Self {
        Self { turns: Arc::new(Semaphore::new(bounds::CHECKED_AT_ONCE)), verdicts: Mutex::default() }
    }
}

impl Checks {
    /// Waits for the turn to gather the evidence of a run.
    pub(crate) async fn turn(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.turns).acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Holds the record of a run that has ended against the log.
    pub(crate) async fn of(
        &self,
        log: &dyn Log,
        workspace: &Workspace,
        run: &RunSummary,
    ) -> Result<Verdict, CheckError> {
        let key = (workspace.clone(), run.run.clone(), run.seq);
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let turn = self.turn().await;
        // Whoever was before may have asked for the same.
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let verdict = match log.evidence(workspace, &run.run, CHECKED).await {
            // The turn ends when the work does, whoever waits for it.
            Ok(Some(evidence)) => {
                let audited = move || (verdict(&evidence), turn);
                tokio::task::spawn_blocking(audited).await?.0
            }
            Ok(None) => Verdict::NotChecked("the log knows nothing of it".to_owned()),
            Err(LogError::TooLarge(_)) => Verdict::NotChecked(format!(
                "it has more than {} MiB, too much to be checked in passing",
                CHECKED >> 20
            )),
            Err(LogError::Store(error)) => return Err(error.into()),
            Err(error @ LogError::Checkpoint(_)) => Verdict::NotChecked(error.to_string()),
        };
        self.verdicts.lock().remember(key, &verdict);
        Ok(verdict)
    }

    fn known(&self, key: &Key) -> Option<Verdict> {
        self.verdicts.lock().known.get(key).cloned()
    }
}

fn verdict(evidence: &Evidence) -> Verdict {
    let audited = Audit::of(evidence).0;
    match audited.replay.gaps.first() {
        // What was not derived again is not called right.
        Some(gap) if audited.faults.is_empty() => Verdict::NotChecked(gap.clone()),
        _ => Verdict::Checked(audited.faults),
    }
}

impl Verdicts {
    fn remember(&mut self, key: Key, verdict: &Verdict) {
        let size = match verdict {
            Verdict::Checked(faults) => faults.iter().map(|fault| fault.len() + size_of::<String>()).sum(),
            Verdict::NotChecked(why) => why.len(),
        };
        if size > LONGEST || self.known.insert(key.clone(), verdict.clone()).is_some() {
            return;
        }
        self.oldest.push_back(key);
        if self.oldest.len() > REMEMBERED
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
#[path = "checks_tests.rs"]
mod tests;
