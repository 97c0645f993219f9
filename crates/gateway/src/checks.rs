//! Runs that are held against the log in passing, when somebody asks what came of them.
//!
//! That takes longer than a reply should, and concerns nobody but who asked: it has turns of its own, so that nobody else's
//! reply waits for it, and what was found of a run that has ended is remembered, however often it is asked for.

use crate::bounds;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinError;
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::audit::Audit;
use trellis_orchestrator::documents::{Entered, Gate};
use trellis_orchestrator::evidence::Evidence;
use trellis_orchestrator::ports::{JournalError, Log, LogError};

/// Most bytes of a run's record that is checked in passing: `trellis verify` takes any.
const CHECKED: usize = 16 << 20;
/// An answer does not wait longer for its check.
const PATIENCE: Duration = Duration::from_secs(10);
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

/// One checked run, as it was: records that come behind its end make it another, and so does an erasure, of whatever.
type Key = (Workspace, RunId, u64, u64);

#[derive(Debug)]
pub(crate) struct Checks {
    turns: Gate,
    verdicts: Mutex<Verdicts>,
}

#[derive(Debug, Default)]
struct Verdicts {
    known: HashMap<Key, Verdict>,
    oldest: VecDeque<Key>,
}

impl Default for Checks {
    fn default() -> Self {
        let turns = Gate::new(bounds::CHECKED_AT_ONCE, bounds::CHECKED_OF_ONE_WORKSPACE, PATIENCE);
        Self { turns, verdicts: Mutex::default() }
    }
}

impl Checks {
    /// Waits for the turn to gather the evidence of a run; none if it did not come in time.
    pub(crate) async fn turn(&self, workspace: &Workspace) -> Option<Entered> {
        self.turns.enter(workspace).await
    }

    /// Holds the record of a run that has ended against the log.
    pub(crate) async fn of(
        &self,
        log: &Arc<dyn Log>,
        workspace: &Workspace,
        run: &RunSummary,
    ) -> Result<Verdict, CheckError> {
        let key = (workspace.clone(), run.run.clone(), run.seq, log.erasures().await?);
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let Some(turn) = self.turn(workspace).await else {
            // Not remembered: the next time there may be a turn.
            return Ok(Verdict::NotChecked("many other runs are being checked".to_owned()));
        };
        // Whoever was before may have asked for the same.
        if let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let verdict = match gathered(Arc::clone(log), (workspace, &run.run), CHECKED, turn).await? {
            Ok((Some(evidence), turn)) => {
                let audited = move || (verdict(&evidence), turn);
                tokio::task::spawn_blocking(audited).await?.0
            }
            Ok((None, _)) => Verdict::NotChecked("the log knows nothing of it".to_owned()),
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

/// What proves a run. Whoever asked may leave: the turn ends when the work does, so that nobody has more of them.
pub(crate) async fn gathered(
    log: Arc<dyn Log>,
    (workspace, run): (&Workspace, &RunId),
    most: usize,
    turn: Entered,
) -> Result<Result<(Option<Evidence>, Entered), LogError>, JoinError> {
    let (workspace, run) = (workspace.clone(), run.clone());
    let gathering = tokio::spawn(async move { Ok((log.evidence(&workspace, &run, most).await?, turn)) });
    match gathering.await {
        // A fault of ours is answered as everywhere else.
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        gathered => gathered,
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
