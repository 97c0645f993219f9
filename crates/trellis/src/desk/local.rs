//! What commands need, from the open data folder.

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::person;
use std::sync::Arc;
use trellis_domain::RunId;
use trellis_domain::config::StoredItem;
use trellis_domain::record::Record;
use trellis_orchestrator::evidence::Evidence;
use trellis_orchestrator::ports::RunFilter;
use trellis_orchestrator::status::{Nobody, Status};
use trellis_orchestrator::summary::{Change, ListedRuns};
use trellis_orchestrator::{Answering, Cancelling, DecideError, TellError};

impl App {
    pub(super) async fn list(
        &self,
        filter: &RunFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<ListedRuns, Failure> {
        let (runs, mut all, mut cursor) = (self.runs(), ListedRuns::default(), cursor.map(str::to_owned));
        loop {
            let missing = limit - all.runs.len();
            cursor = all.add(runs.list(self.workspace(), filter.clone(), cursor.as_deref(), missing).await?);
            if cursor.is_none() || all.runs.len() >= limit {
                return Ok(all);
            }
        }
    }

    /// A folder that is ours now is worked on by nobody else, and we only look.
    pub(super) async fn status(&self) -> Result<Status, Failure> {
        let presence = self.store.presence().unwrap_or_else(|| Arc::new(Nobody));
        Ok(self.runs().status(&*presence).await?)
    }

    pub(super) async fn with_prefix(&self, start: &str, limit: usize) -> Result<Vec<RunId>, Failure> {
        Ok(self.runs().with_prefix(self.workspace(), start, limit).await?)
    }

    pub(super) async fn records(&self, run: &RunId) -> Result<Vec<Arc<Record>>, Failure> {
        Ok(self.runs().all_records(self.workspace(), run).await?)
    }

    pub(super) async fn evidence(&self, run: &RunId) -> Result<Evidence, Failure> {
        let evidence = self.store.log.evidence(self.workspace(), run, usize::MAX).await?;
        evidence
            .ok_or_else(|| Failure::new(Exit::NotFound, format!("there is no run `{run}`; `trellis runs` lists them")))
    }

    pub(super) async fn cancel(&self, run: &RunId) -> Result<Cancelling, Failure> {
        Ok(self.runs().cancel(self.workspace(), run, &person::caller()).await?)
    }

    pub(super) async fn decide(&self, run: &RunId, answer: &Answering) -> Result<(), Failure> {
        match self.runs().decide(self.workspace(), run, answer).await {
            Ok(_) => Ok(()),
            Err(DecideError::Turn(error)) => Err(error.into()),
            Err(error @ DecideError::Unknown(_)) => Err(Failure::new(Exit::NotFound, error.to_string())),
            Err(error @ DecideError::NotAllowed(_)) => Err(Failure::new(Exit::NotAllowed, error.to_string())),
            Err(
                error @ (DecideError::Ended(_)
                | DecideError::NothingToDecide
                | DecideError::Several(_)
                | DecideError::AlreadyDecided { .. }
                | DecideError::NotAnOption { .. }
                | DecideError::NoArguments
                | DecideError::ContentMismatch
                | DecideError::WrongContent(_)
                | DecideError::ResultMismatch
                | DecideError::TooLong { .. }),
            ) => Err(Failure::usage(error.to_string())),
        }
    }

    pub(super) async fn tell(&self, run: &RunId, message: &str) -> Result<usize, Failure> {
        match self.runs().tell(self.workspace(), run, message, &person::caller()).await {
            Ok(told) => Ok(told.agents),
            Err(TellError::Turn(error)) => Err(error.into()),
            Err(error @ TellError::Unknown(_)) => Err(Failure::new(Exit::NotFound, error.to_string())),
            Err(
                error @ (TellError::Ended(_)
                | TellError::Empty
                | TellError::TooLong { .. }
                | TellError::TooMany(_)
                | TellError::TooBusy),
            ) => Err(Failure::usage(error.to_string())),
        }
    }

    pub(super) async fn items(&self) -> Result<(u64, Vec<StoredItem>), Failure> {
        Ok(self.store.config.all(self.workspace()).await?)
    }

    pub(super) async fn items_at(&self, version: u64) -> Result<Vec<StoredItem>, Failure> {
        Ok(self.store.config.all_at(self.workspace(), version).await?)
    }

    pub(super) async fn put(&self, items: Vec<StoredItem>) -> Result<u64, Failure> {
        Ok(self.config().put(self.workspace(), items, person::caller()).await?)
    }

    pub(super) async fn delete(&self, kind: &str, key: &str) -> Result<Option<u64>, Failure> {
        Ok(self.config().delete(self.workspace(), kind, key, person::caller()).await?)
    }

    pub(super) async fn history(&self, kind: &str, key: &str) -> Result<Vec<Change>, Failure> {
        let history = self.store.config.history(self.workspace(), kind, key).await?;
        Ok(history.into_iter().map(Change::from).collect())
    }
}
