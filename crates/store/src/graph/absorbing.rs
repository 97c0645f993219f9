//! How the view follows the journal.

use super::EmbeddedGraph;
use super::identity::identity_at;
use crate::keys::{self, prefix};
use crate::tables::read_failed;
use crate::view::{Cursor, RunQuads};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::watch;
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::ports::{GraphError, JournalError};
use trellis_patterns::project;

/// Runs that are absorbed into the view in one batch.
const BATCH: usize = 64;
/// From so many runs on, a second thread is worth its while.
const WORTH_SHARING: usize = 8;
/// So long runs are left to finish together: one batch costs less than many.
const GATHERING: Duration = Duration::from_millis(200);

pub(super) type RunPlaces = BTreeSet<(Workspace, RunId)>;

impl EmbeddedGraph {
    /// Takes finished runs into the view. How many; blocks until the view has caught up.
    pub fn catch_up(&self) -> Result<usize, GraphError> {
        let mut absorbed = 0;
        loop {
            match self.absorb_next()? {
                0 => return Ok(absorbed),
                more => absorbed += more,
            }
        }
    }

    /// Takes finished runs into the view for about that long. What fails now is tried again with the next run that
    /// finishes; a query does without.
    pub async fn catch_up_within(&self, time: Duration) {
        let absorb = async {
            loop {
                let graph = self.clone();
                match tokio::task::spawn_blocking(move || graph.absorb_next()).await {
                    Ok(Ok(0)) => return,
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => return tracing::error!(%error, "the graph view cannot follow the journal"),
                    Err(error) => return tracing::error!(%error, "the graph view cannot follow the journal"),
                }
            }
        };
        if tokio::time::timeout(time, absorb).await.is_err() {
            tracing::info!("the graph view has not caught up yet; a query says what it lacks");
        }
    }

    /// Takes runs into the view as they finish, until it is told to stop. It sleeps while there is nothing to do, and
    /// a failure is tried again with the next run that finishes. Wait for its end before the store is closed.
    pub async fn keep_up(&self, mut stop: watch::Receiver<bool>) {
        let finished = &self.journal.shared.finished;
        loop {
            let graph = self.clone();
            let absorbed = tokio::task::spawn_blocking(move || graph.absorb_next()).await;
            let more = match absorbed {
                Ok(Ok(absorbed)) => absorbed > 0,
                Ok(Err(error)) => {
                    tracing::error!(%error, "the graph view cannot follow the journal");
                    false
                }
                Err(error) => {
                    tracing::error!(%error, "the graph view cannot follow the journal");
                    false
                }
            };
            let next = async {
                if !more {
                    finished.notified().await;
                    tokio::time::sleep(GATHERING).await;
                }
            };
            tokio::select! {
                // Whoever could say stop is gone: that is the same.
                _ = stop.wait_for(|stop| *stop) => return,
                () = next => {}
            }
        }
    }

    /// How many finished runs the view lacks.
    pub fn lag(&self) -> Result<usize, GraphError> {
        Ok(self.finished_after(self.cursor()?, usize::MAX)?.0.len())
    }

    /// Forgets the view and derives it anew.
    pub fn rebuild(&self) -> Result<usize, GraphError> {
        self.forget()?;
        self.catch_up()
    }

    /// Projects a run anew, after something was taken out of its records: what it said before goes from the view, and
    /// from its files.
    pub fn renew(&self, workspace: &Workspace, run: &RunId) -> Result<(), GraphError> {
        let _alone = self.absorbing.lock();
        self.projections.forget(workspace, run);
        let view = self.view()?;
        let quads = self.said(workspace, run)?;
        view.absorb(&[quads], Cursor::START).and_then(|()| view.purge()).map_err(|error| self.failed(error.into()))
    }

    fn cursor(&self) -> Result<u64, GraphError> {
        Ok(self.view()?.cursor().map_err(|error| self.failed(error.into()))?.number)
    }

    /// Absorbs one batch. How many runs; none if the view has caught up.
    fn absorb_next(&self) -> Result<usize, GraphError> {
        let _alone = self.absorbing.lock();
        let (runs, last) = self.finished_after(self.cursor()?, BATCH)?;
        if runs.is_empty() {
            return Ok(0);
        }
        let listed: Vec<_> = runs.iter().collect();
        let (one, other) = listed.split_at(listed.len() / 2);
        // Reading and projecting is half of the work: two share it, if there is enough of it.
        let quads = if one.len() < WORTH_SHARING {
            self.all_said(&listed)
        } else {
            std::thread::scope(|scope| {
                let beside = scope.spawn(|| self.all_said(one));
                let mut quads = self.all_said(other);
                quads.extend(beside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                quads
            })
        };
        let missing = || JournalError::Damaged(format!("commit {last} is missing"));
        let identity = identity_at(&self.journal.tables, last)?.ok_or_else(missing)?;
        let absorbed = self.view()?.absorb(&quads, Cursor { number: last, identity });
        absorbed.map_err(|error| self.failed(error.into()))?;
        Ok(runs.len())
    }

    /// What these runs say. One that cannot be read must not keep all others out of the graph.
    fn all_said(&self, runs: &[&(Workspace, RunId)]) -> Vec<RunQuads> {
        let said = |(workspace, run): &&(Workspace, RunId)| {
            let said = self.said(workspace, run);
            said.inspect_err(|error| tracing::error!(%error, %run, "a run could not be projected")).ok()
        };
        runs.iter().filter_map(said).collect()
    }

    /// What a run says, for the view.
    pub(super) fn said(&self, workspace: &Workspace, run: &RunId) -> Result<RunQuads, JournalError> {
        let records = self.journal.tables.read().events(workspace, run, 0, usize::MAX)?;
        Ok(RunQuads { workspace: workspace.as_str().to_owned(), quads: project(&records) })
    }

    /// Finished runs behind a cursor, and the cursor behind them.
    pub(super) fn finished_after(&self, cursor: u64, limit: usize) -> Result<(RunPlaces, u64), JournalError> {
        let (runs, last) = self.finished(cursor + 1, u64::MAX, limit)?;
        Ok((runs, last.unwrap_or(cursor)))
    }

    /// Finished runs up to a cursor.
    pub(super) fn finished_until(&self, cursor: u64) -> Result<RunPlaces, JournalError> {
        self.finished(0, cursor, usize::MAX).map(|(runs, _)| runs)
    }

    /// The first finished runs of a part of their list, and where the last of them stands.
    fn finished(&self, from: u64, to: u64, limit: usize) -> Result<(RunPlaces, Option<u64>), JournalError> {
        let range = keys::numbered(prefix::FINISHED, from)..=keys::numbered(prefix::FINISHED, to);
        let (mut runs, mut last) = (RunPlaces::new(), None);
        let reader = self.journal.tables.read();
        for row in reader.index_range(range) {
            let (key, value) = row.into_inner().map_err(read_failed)?;
            runs.extend(keys::read_finished(&value));
            last = keys::number(&key).or(last);
            if runs.len() >= limit {
                break;
            }
        }
        Ok((runs, last))
    }
}
