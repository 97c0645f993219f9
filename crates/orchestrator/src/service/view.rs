//! Runs as objects for programs.

use super::RunService;
use crate::ports::{JournalError, RunPage, UnreadableRun};
use crate::summary::{ListedRun, ListedRuns, OpenQuestion, Read, RunTrace, WholeRun};
use std::sync::Arc;
use trellis_domain::record::{Name, Record};
use trellis_domain::run::RunSummary;

impl RunService {
    /// A run with its whole question and how it ended, as far as it has.
    pub async fn whole(&self, run: &RunSummary) -> Result<WholeRun, JournalError> {
        let (first, end) = (self.first_record(run).await?, self.end(&run.workspace, &run.run).await?);
        let read = Read {
            first: first.as_deref(),
            end: end.as_ref().and_then(|end| end.body.as_ended()),
            waiting_for: self.open_questions(run).await?,
        };
        Ok(WholeRun::new(run, read, self.world.now()))
    }

    /// Every step of a run, read from its records.
    pub fn traced(&self, run: &RunSummary, records: &[Arc<Record>]) -> RunTrace {
        RunTrace::new(run, records, self.world.now())
    }

    /// All of a page. One run that cannot be read does not hide the others.
    pub(super) async fn listed(&self, page: RunPage) -> ListedRuns {
        let RunPage { runs, next, mut unreadable } = page;
        let mut all = Vec::with_capacity(runs.len());
        for run in runs {
            match self.is_truncated(&run).await {
                Ok(truncated) => all.push(ListedRun::new(&run, truncated, self.world.now())),
                Err(error) => unreadable.push(UnreadableRun { run: run.run, reason: error.to_string() }),
            }
        }
        ListedRuns { runs: all, next, unreadable }
    }

    /// Reads a record only if its question may be longer than what the list holds.
    async fn is_truncated(&self, run: &RunSummary) -> Result<bool, JournalError> {
        if !run.may_be_cut() {
            return Ok(false);
        }
        let first = self.first_record(run).await?;
        let accepted = first.as_ref().and_then(|record| record.body.as_accepted());
        Ok(accepted.is_some_and(|accepted| accepted.question.text() != run.question))
    }

    async fn first_record(&self, run: &RunSummary) -> Result<Option<Arc<Record>>, JournalError> {
        Ok(self.journal.events(&run.workspace, &run.run, 0, 1).await?.into_iter().next())
    }

    /// The questions to people that a run waits for.
    async fn open_questions(&self, run: &RunSummary) -> Result<Vec<OpenQuestion>, JournalError> {
        let mut questions = Vec::new();
        for (session, number) in &run.parked {
            let Some(log) = self.journal.load(&run.workspace, session).await? else { continue };
            let named = log.records.iter().filter(|record| record.header.name == Name::park(*number));
            let parked = named.filter_map(|record| record.body.as_parked());
            questions.extend(parked.map(|parked| OpenQuestion::new(session, parked)));
        }
        Ok(questions)
    }
}
