//! Lists of runs and of their records, in pages.

use super::RunService;
use crate::hub::size_of_texts;
use crate::ports::{JournalError, RunFilter, RunPage, UnreadableRun};
use crate::schema::RunRecord;
use crate::summary::ListedRuns;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trellis_domain::record::Record;
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, Workspace};
use utoipa::ToSchema;

/// Records of a run, in order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Records)]
pub struct RecordPage {
    #[schema(value_type = Vec<RunRecord>)]
    pub records: Vec<Arc<Record>>,
    /// Ask for more with `after` this; null if these are the newest for now
    #[schema(required)]
    pub next: Option<u64>,
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

/// How many runs whose ids begin alike are looked at.
const LOOKED_AT: usize = 10_000;
/// How many records are read at a time.
const STEP: usize = 16;
/// A page of records ends after so many bytes of texts, whatever was asked for.
const FULL: usize = 4 << 20;

impl RunService {
    /// A page of runs, newest first, from behind the cursor on.
    pub async fn list(
        &self,
        workspace: &Workspace,
        filter: RunFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListedRuns, PageError> {
        let filter = self.with_state(workspace, filter).await?;
        if let Some(cursor) = cursor {
            let no_cursor = || PageError::NoCursor(cursor.to_owned());
            let run = RunId::new(cursor).map_err(|_| no_cursor())?;
            self.journal.run(workspace, &run).await?.ok_or_else(no_cursor)?;
        }
        let mut page = self.journal.runs(workspace, &filter, cursor, limit).await?;
        for run in &mut page.runs {
            run.state = filter.state_of(run);
        }
        Ok(self.listed(page).await)
    }

    /// The first runs whose ids begin so, sorted by id.
    pub async fn list_with_prefix(
        &self,
        workspace: &Workspace,
        prefix: &str,
        filter: RunFilter,
        limit: usize,
    ) -> Result<ListedRuns, JournalError> {
        let filter = self.with_state(workspace, filter).await?;
        let (mut runs, mut unreadable): (Vec<RunSummary>, Vec<UnreadableRun>) = Default::default();
        // Ids know nothing of filters, so many of them are looked at until enough fit.
        for run in self.with_prefix(workspace, prefix, LOOKED_AT).await? {
            let run = match self.journal.run(workspace, &run).await {
                Ok(found) => found.filter(|run| filter.matches(run)),
                Err(error) => {
                    unreadable.push(UnreadableRun { run, reason: error.to_string() });
                    continue;
                }
            };
            runs.extend(run.map(|run| RunSummary { state: filter.state_of(&run), ..run }));
            if runs.len() == limit {
                break;
            }
        }
        Ok(self.listed(RunPage { runs, next: None, unreadable }).await)
    }

    /// The first ids of runs that begin so, sorted.
    pub async fn with_prefix(
        &self,
        workspace: &Workspace,
        prefix: &str,
        limit: usize,
    ) -> Result<Vec<RunId>, JournalError> {
        self.journal.with_prefix(workspace, prefix, limit).await
    }

    async fn with_state(&self, workspace: &Workspace, filter: RunFilter) -> Result<RunFilter, JournalError> {
        Ok(RunFilter { in_hand: self.journal.in_hand(workspace).await?, ..filter })
    }

    /// A page of a run's records after that sequence number. One with long texts ends before its limit.
    pub async fn records(
        &self,
        workspace: &Workspace,
        run: &RunId,
        after: u64,
        limit: usize,
    ) -> Result<RecordPage, JournalError> {
        let (mut records, mut size, mut last): (Vec<Arc<Record>>, _, _) = (Vec::new(), 0, after);
        while records.len() < limit && size < FULL {
            let some = self.journal.events(workspace, run, last, STEP.min(limit - records.len())).await?;
            let Some(newest) = some.last() else { break };
            last = newest.header.seq;
            size += some.iter().map(|record| size_of_texts(record)).sum::<usize>();
            records.extend(some);
        }
        // The run may have gone on meanwhile: then there is more, too.
        let more = !self.journal.events(workspace, run, last, 1).await?.is_empty();
        let next = records.last().map(|record| record.header.seq).filter(|_| more);
        Ok(RecordPage { records, next })
    }

    /// All records of a run.
    pub async fn all_records(&self, workspace: &Workspace, run: &RunId) -> Result<Vec<Arc<Record>>, JournalError> {
        self.journal.events(workspace, run, 0, usize::MAX).await
    }

    /// All records of a run; None if their texts have more bytes than this.
    pub async fn records_within(
        &self,
        workspace: &Workspace,
        run: &RunId,
        bytes: usize,
    ) -> Result<Option<Vec<Arc<Record>>>, JournalError> {
        const AT_ONCE: usize = 64;
        let (mut records, mut size): (Vec<Arc<Record>>, _) = (Vec::new(), 0);
        loop {
            let last = records.last().map_or(0, |record| record.header.seq);
            let some = self.journal.events(workspace, run, last, AT_ONCE).await?;
            if some.is_empty() {
                return Ok(Some(records));
            }
            size += some.iter().map(|record| size_of_texts(record)).sum::<usize>();
            if size > bytes {
                return Ok(None);
            }
            records.extend(some);
        }
    }
}
