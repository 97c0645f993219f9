//! The journal.

use crate::batch::lock_of;
use crate::committer::{self, Committer, Waiting};
use crate::database::{Database, LANES};
use crate::error::{damaged, failed};
use crate::reading::records;
use crate::sequencer::Sequencer;
use crate::served::Served;
use crate::{listing, turns};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use trellis_domain::record::Record;
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, SessionId, Timestamp, Workspace};
use trellis_orchestrator::ledger::Salts;
use trellis_orchestrator::ports::{
    BoxFuture, Claim, Claiming, Commit, Journal, JournalError, OpenTurn, Outcome, RunFilter, RunPage, Service,
    SessionLog, SetAside, TurnKey, World,
};

/// The journal of all processes that share a database. Each process has one.
#[derive(Debug)]
pub struct PostgresJournal {
    database: Database,
    lanes: Vec<mpsc::Sender<Waiting>>,
    served: Served,
    sequencer: Arc<Sequencer>,
    sequencing: JoinHandle<()>,
}

impl Drop for PostgresJournal {
    /// What it was to bring into the log is brought by any other process.
    fn drop(&mut self) {
        self.sequencing.abort();
    }
}

impl PostgresJournal {
    /// Begins to take commits, in tasks of the runtime that this is called in.
    pub fn new(database: Database, world: &dyn World) -> Self {
        let sequencer = Arc::new(Sequencer::new(database.clone()));
        let lane = |_| {
            let (sender, waiting) = mpsc::channel(committer::WAITING);
            let (database, written) = (database.clone(), sequencer.written());
            tokio::spawn(Committer { database, salts: Salts::new(world), written }.run(waiting));
            sender
        };
        let lanes = (0..LANES).map(lane).collect();
        let sequencing = tokio::spawn(Arc::clone(&sequencer).run());
        Self { served: Served::new(database.clone()), database, lanes, sequencer, sequencing }
    }

    pub(crate) fn sequencer(&self) -> &Arc<Sequencer> {
        &self.sequencer
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    async fn write(&self, commit: Commit) -> Result<Outcome, JournalError> {
        let lanes = i64::try_from(self.lanes.len()).unwrap_or(1);
        let lane = lock_of(&self.database, &commit.scope.workspace, &commit.run).rem_euclid(lanes);
        let (answer, outcome) = oneshot::channel();
        let lane = &self.lanes[usize::try_from(lane).unwrap_or(0)];
        lane.send(Waiting { commit, answer }).await.map_err(|_| JournalError::Closed)?;
        outcome.await.map_err(|_| JournalError::Closed)?
    }

    async fn session(&self, workspace: &Workspace, session: &SessionId) -> Result<Option<SessionLog>, JournalError> {
        let condition = "workspace = $1 AND session = $2 ORDER BY seq";
        let places: [&str; 2] = [workspace.as_str(), session.as_str()];
        let records = records(&self.database, workspace, condition, &[&places[0], &places[1]]).await?;
        let version = records.iter().map(|record| record.header.version).max().unwrap_or(0);
        Ok((!records.is_empty()).then(|| SessionLog { version, records, ..SessionLog::default() }))
    }

    async fn end_of(&self, workspace: &Workspace, session: &SessionId) -> Result<Option<Arc<Record>>, JournalError> {
        let condition = "workspace = $1 AND session = $2 AND name = 'end'";
        let places: [&str; 2] = [workspace.as_str(), session.as_str()];
        Ok(records(&self.database, workspace, condition, &[&places[0], &places[1]]).await?.pop())
    }

    async fn events_of(
        &self,
        workspace: &Workspace,
        run: &RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Record>>, JournalError> {
        let (after, limit) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
        let condition = "workspace = $1 AND run = $2 AND seq > $3 ORDER BY seq LIMIT $4";
        let places: [&str; 2] = [workspace.as_str(), run.as_str()];
        records(&self.database, workspace, condition, &[&places[0], &places[1], &after, &limit]).await
    }

    async fn summary(&self, workspace: &Workspace, run: &RunId) -> Result<Option<RunSummary>, JournalError> {
        let query = "SELECT summary FROM runs WHERE workspace = $1 AND run = $2";
        let row = self.database.find(query, &[&workspace.as_str(), &run.as_str()]).await?;
        row.map(|row| serde_json::from_slice(row.get(0)).map_err(damaged)).transpose()
    }

    async fn ids(&self, workspace: &Workspace, start: &str, limit: usize) -> Result<Vec<RunId>, JournalError> {
        if start.contains('\0') {
            return Ok(Vec::new());
        }
        let query =
            "SELECT run FROM runs WHERE workspace = $1 AND starts_with(run, $2) AND run >= $2 ORDER BY run LIMIT $3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.database.query(query, &[&workspace.as_str(), &start, &limit]).await?;
        rows.iter().map(|row| RunId::new(row.get::<_, &str>(0)).map_err(damaged)).collect()
    }

    async fn count_open(&self) -> Result<usize, JournalError> {
        let row = self.database.find("SELECT count(*) FROM runs WHERE NOT has_ended", &[]).await?;
        Ok(row.and_then(|row| usize::try_from(row.get::<_, i64>(0)).ok()).unwrap_or(0))
    }

    async fn put_aside(&self, aside: SetAside) -> Result<(), JournalError> {
        let SetAside { workspace, run, session, reason, state, time } = aside;
        let lock = lock_of(&self.database, &workspace, &run);
        let mut lease = self.database.lease().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&lock]).await.map_err(failed)?;
        let whole = session == run;
        let (workspace, run, session) = (workspace.as_str(), run.as_str(), session.as_str());
        let delete = "DELETE FROM turns WHERE workspace = $1 AND run = $2 AND ($3 OR session = $4)";
        transaction.execute(delete, &[&workspace, &run, &whole, &session]).await.map_err(failed)?;
        let note = "INSERT INTO aside (workspace, run, session, reason, at) VALUES ($1, $2, $3, $4, $5) \
            ON CONFLICT DO NOTHING";
        let reason = reason.replace('\0', " ");
        transaction.execute(note, &[&workspace, &run, &session, &reason, &time.as_micros()]).await.map_err(failed)?;
        if whole {
            let query = "SELECT summary FROM runs WHERE workspace = $1 AND run = $2 AND NOT has_ended";
            let row = transaction.query_opt(query, &[&workspace, &run]).await.map_err(failed)?;
            // One that cannot be read stays as it is; that it is over is known by its column.
            let summary = row.map(|row| row.get::<_, Vec<u8>>(0));
            let ended = summary.map(|stored| match serde_json::from_slice::<RunSummary>(&stored) {
                Ok(summary) => {
                    let summary = RunSummary { state, ended: Some(time), ..summary };
                    serde_json::to_vec(&summary).expect("summaries are always JSON")
                }
                Err(_) => stored,
            });
            if let Some(summary) = ended {
                let update =
                    "UPDATE runs SET state = $3, has_ended = $4, summary = $5 WHERE workspace = $1 AND run = $2";
                let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                    [&workspace, &run, &state.as_str(), &state.is_end(), &summary];
                transaction.execute(update, &parameters).await.map_err(failed)?;
                // Nothing was committed, so the view would not hear of it.
                let wait = "INSERT INTO view_waiting (workspace, run) VALUES ($1, $2) ON CONFLICT DO NOTHING";
                transaction.execute(wait, &[&workspace, &run]).await.map_err(failed)?;
            }
        }
        transaction.commit().await.map_err(failed)?;
        lease.release();
        Ok(())
    }
}

impl Journal for PostgresJournal {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, JournalError>> {
        Box::pin(self.write(commit))
    }

    fn load<'a>(
        &'a self,
        workspace: &'a Workspace,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionLog>, JournalError>> {
        Box::pin(self.session(workspace, session))
    }

    fn end<'a>(
        &'a self,
        workspace: &'a Workspace,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<Record>>, JournalError>> {
        Box::pin(self.end_of(workspace, session))
    }

    fn is_open<'a>(&'a self, turn: &'a TurnKey) -> BoxFuture<'a, Result<bool, JournalError>> {
        Box::pin(turns::is_open(&self.database, turn))
    }

    fn claim<'a>(&'a self, claim: &'a Claim, life: Duration) -> BoxFuture<'a, Result<Claiming, JournalError>> {
        Box::pin(turns::claim(&self.database, claim, life))
    }

    fn renew<'a>(&'a self, claim: &'a Claim, life: Duration) -> BoxFuture<'a, Result<bool, JournalError>> {
        Box::pin(turns::renew(&self.database, claim, life))
    }

    fn give_back<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(turns::give_back(&self.database, claim))
    }

    fn in_hand<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<HashSet<RunId>, JournalError>> {
        Box::pin(turns::in_hand(&self.database, workspace))
    }

    /// Nobody is suspected here: which process died of what is not known, and others go on.
    fn keep_back<'a>(&'a self, _: &'a [TurnKey]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn begin_trial<'a>(&'a self, _: &'a [TurnKey], _: Timestamp) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn acquit<'a>(&'a self, _: &'a [TurnKey]) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn set_aside(&self, aside: SetAside) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(self.database.within(self.put_aside(aside)))
    }

    fn sign_of_life(&self, _: Timestamp) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(self.database.within(self.served.sign()))
    }

    fn service(&self) -> Service {
        self.served.service()
    }

    fn due_turns<'a>(
        &'a self,
        until: Timestamp,
        after: Option<&'a TurnKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<OpenTurn>, JournalError>> {
        Box::pin(turns::due(&self.database, until, after, limit))
    }

    fn turns_of<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<OpenTurn>, JournalError>> {
        Box::pin(turns::of_run(&self.database, workspace, run))
    }

    fn open_runs(&self) -> BoxFuture<'_, Result<usize, JournalError>> {
        Box::pin(self.count_open())
    }

    fn run<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<RunSummary>, JournalError>> {
        Box::pin(self.summary(workspace, run))
    }

    fn runs<'a>(
        &'a self,
        workspace: &'a Workspace,
        filter: &'a RunFilter,
        cursor: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<RunPage, JournalError>> {
        Box::pin(listing::page(&self.database, workspace, filter, cursor, limit))
    }

    fn with_prefix<'a>(
        &'a self,
        workspace: &'a Workspace,
        start: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, JournalError>> {
        Box::pin(self.ids(workspace, start, limit))
    }

    fn events<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        Box::pin(self.events_of(workspace, run, after, limit))
    }
}
