//! How the view follows the log.
//!
//! One process at a time takes finished runs in, whichever gets the lock. The log has the order of everything that was
//! committed, so a number of a leaf says how far the view is: whoever looks has the runs that stand behind it as well.

use super::PostgresGraph;
use crate::database::Database;
use crate::error::{damaged, failed};
use crate::graph::newer::CURSOR;
use crate::graph::tables::{self, Encoded, VIEW, bytes, columns, execute, place_of, rows};
use crate::reading;
use deadpool_postgres::Transaction;
use std::collections::BTreeSet;
use tokio::sync::watch;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{RunId, Workspace};
use trellis_orchestrator::ports::{GraphError, JournalError};
use trellis_patterns::project;
use trellis_provenance::{PROJECTION, iri};
use trellis_queries::TermId;
use trellis_queries::following::{self, BUSY, Step};
use trellis_queries::order::EncodedQuad;
use trellis_queries::term_id::TERM_ID_BYTES;

/// Leaves of the log that are looked at in one transaction.
pub(super) const LEAVES: i64 = 2_048;
/// Runs that wait without a leaf, likewise.
const WAITING: i64 = 64;

impl PostgresGraph {
    /// Takes finished runs into the view until it has caught up with the log. How many.
    pub async fn catch_up(&self) -> Result<usize, GraphError> {
        following::catch_up(|| self.step()).await
    }

    /// Takes runs into the view as they finish, until it is told to stop. Every process may do this: one at a time works.
    pub async fn keep_up(&self, stop: watch::Receiver<bool>) {
        following::keep_up(stop, "in the database", || self.step()).await;
    }

    /// How many finished runs the view lacks.
    pub async fn lag(&self) -> Result<usize, GraphError> {
        let database = self.database();
        let projection = PROJECTION.cast_signed();
        let cursor = database.find(CURSOR, &[&projection]).await?.map_or(-1, |row| row.get::<_, i64>(0));
        let query = "SELECT count(*) FROM ( \
                SELECT workspace, run FROM leaves WHERE number >= $1 AND workspace IS NOT NULL \
                UNION SELECT workspace, run FROM unsequenced WHERE workspace IS NOT NULL AND run IS NOT NULL \
                UNION SELECT workspace, run FROM view_waiting) AS l \
            JOIN runs r USING (workspace, run) WHERE r.has_ended";
        let row = database.find(query, &[&cursor]).await?;
        Ok(row.and_then(|row| usize::try_from(row.get::<_, i64>(0)).ok()).unwrap_or(0))
    }

    /// Forgets the view and derives it anew. How many runs are in it.
    pub async fn rebuild(&self) -> Result<usize, GraphError> {
        while !self.forget().await? {
            tokio::time::sleep(BUSY).await;
        }
        self.catch_up().await
    }

    /// Empties the view. Who reads it meanwhile reads on as it was. False if another process is writing it.
    pub(super) async fn forget(&self) -> Result<bool, JournalError> {
        let mut lease = self.database().casual().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        let is_mine = take(&transaction, self.database()).await?;
        if is_mine {
            empty(&transaction).await?;
        }
        transaction.commit().await.map_err(failed)?;
        lease.release();
        Ok(is_mine)
    }

    /// One transaction: the runs of the next leaves.
    async fn step(&self) -> Result<Step, GraphError> {
        // Its result may be lost with the server: then it is derived again.
        let mut lease = self.database().casual().await?;
        let transaction = lease.transaction().await.map_err(failed).map_err(GraphError::from)?;
        let step = self.step_within(&transaction).await?;
        transaction.commit().await.map_err(failed).map_err(GraphError::from)?;
        lease.release();
        Ok(step)
    }

    async fn step_within(&self, transaction: &Transaction<'_>) -> Result<Step, JournalError> {
        if !take(transaction, self.database()).await? {
            return Ok(Step::Elsewhere);
        }
        let projection = PROJECTION.cast_signed();
        let known = rows(transaction, "SELECT number, projection FROM view_cursor", &[]).await?;
        let cursor = match known.first().map(|row| (row.get::<_, i64>(0), row.get::<_, i32>(1))) {
            Some((number, derived_with)) if derived_with == projection => number,
            // A newer program is here as well, and keeps the view.
            Some((_, derived_with)) if derived_with > projection => return Ok(Step::CaughtUp),
            Some(_) => {
                empty(transaction).await?;
                0
            }
            None => 0,
        };
        let last = "SELECT max(number) FROM (SELECT number FROM leaves WHERE number >= $1 ORDER BY number LIMIT $2) l";
        let last: Option<i64> = rows(transaction, last, &[&cursor, &LEAVES]).await?.first().and_then(|row| row.get(0));
        let mut runs = BTreeSet::new();
        if let Some(last) = last {
            // A run that goes on behind these leaves is taken in with its last one.
            let finished = "SELECT DISTINCT l.workspace, l.run FROM leaves l JOIN runs r USING (workspace, run) \
                WHERE l.number BETWEEN $1 AND $2 AND r.has_ended AND NOT EXISTS ( \
                    SELECT 1 FROM leaves n WHERE n.workspace = l.workspace AND n.run = l.run AND n.number > $2)";
            runs.extend(places(&rows(transaction, finished, &[&cursor, &last]).await?)?);
        }
        let waiting = "SELECT w.workspace, w.run FROM view_waiting w JOIN runs r USING (workspace, run) \
            WHERE r.has_ended ORDER BY 1, 2 LIMIT $1";
        let waiting = places(&rows(transaction, waiting, &[&WAITING]).await?)?;
        for (workspace, run) in &waiting {
            let done = "DELETE FROM view_waiting WHERE workspace = $1 AND run = $2";
            execute(transaction, done, &[&workspace.as_str(), &run.as_str()]).await?;
        }
        let is_all = last.is_none() && waiting.is_empty();
        runs.extend(waiting);
        for (workspace, run) in &runs {
            self.absorb(transaction, workspace, run).await?;
        }
        let next = last.map_or(cursor, |last| last + 1);
        let put = "INSERT INTO view_cursor (one, number, projection) VALUES (true, $1, $2) \
            ON CONFLICT (one) DO UPDATE SET number = $1, projection = $2";
        if known.is_empty() || next > cursor {
            execute(transaction, put, &[&next, &projection]).await?;
        }
        Ok(if is_all { Step::CaughtUp } else { Step::Moved(runs.len()) })
    }

    /// Takes a run in. What it said before and does not say any more is removed.
    async fn absorb(
        &self,
        transaction: &Transaction<'_>,
        workspace: &Workspace,
        run: &RunId,
    ) -> Result<(), JournalError> {
        let condition = "workspace = $1 AND run = $2 ORDER BY seq";
        let (space, id) = (workspace.as_str(), run.as_str());
        let records = reading::records(self.database(), workspace, condition, &[&space, &id]).await;
        let quads = match records {
            Ok(records) => {
                let projected = tokio::task::spawn_blocking(move || project(&records)).await;
                projected.map_err(|error| JournalError::Read(error.to_string()))?
            }
            // One that cannot be read must not keep all others out of the graph.
            Err(error @ JournalError::Damaged(_)) => {
                tracing::error!(%error, %run, "a run could not be projected");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let (place, encoded) = (place_of(space), Encoded::of(&quads));
        let nodes = nodes_of(&quads);
        let before = "SELECT nodes FROM view_runs WHERE workspace = $1 AND run = $2";
        if let Some(row) = rows(transaction, before, &[&space, &id]).await?.first() {
            let before: Vec<&[u8]> = row.get::<_, &[u8]>(0).chunks(TERM_ID_BYTES).collect();
            let said = "SELECT s, p, o, g FROM view_quads WHERE place = $1 AND s = ANY ($2::bytea[])";
            let said = rows(transaction, said, &[&place, &before]).await?;
            let said = said.iter().map(|row| {
                let part = |column| tables::id(row, column);
                Ok(EncodedQuad { s: part(0)?, p: part(1)?, o: part(2)?, g: part(3)? })
            });
            let said = said.collect::<Result<BTreeSet<_>, JournalError>>()?;
            let stale: BTreeSet<_> = said.difference(&encoded.quads).copied().collect();
            if !stale.is_empty() {
                remove(transaction, place, &stale).await?;
            }
        }
        encoded.write(transaction, VIEW, place).await?;
        let nodes: Vec<u8> = nodes.iter().flat_map(|id| bytes(*id)).collect();
        let put = "INSERT INTO view_runs (workspace, run, nodes) VALUES ($1, $2, $3) \
            ON CONFLICT (workspace, run) DO UPDATE SET nodes = $3";
        execute(transaction, put, &[&space, &id, &nodes]).await?;
        Ok(())
    }
}

/// The nodes of a run's sessions. Nobody else makes statements about them.
fn nodes_of(quads: &[Quad]) -> BTreeSet<TermId> {
    let subjects: BTreeSet<&str> = quads.iter().filter_map(|quad| quad.s.as_iri()).collect();
    let nodes = subjects.into_iter().filter(|subject| iri::session_of(subject).is_some());
    nodes.map(|node| TermId::of_term(&Term::iri(node))).collect()
}

/// Removes quads, and the texts that nobody says any more.
async fn remove(transaction: &Transaction<'_>, place: i64, gone: &BTreeSet<EncodedQuad>) -> Result<(), JournalError> {
    let [s, p, o, g] = columns(gone);
    let quads = "DELETE FROM view_quads q USING unnest($2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[]) AS n (s, p, o, g) \
        WHERE q.place = $1 AND q.s = n.s AND q.p = n.p AND q.o = n.o AND q.g = n.g";
    execute(transaction, quads, &[&place, &s, &p, &o, &g]).await?;
    // Literals begin with one of these.
    let texts = "DELETE FROM view_terms t WHERE t.place = $1 AND t.id = ANY ($2::bytea[]) \
        AND substring(t.term FROM 1 FOR 1) IN ('l', 't', 'g') \
        AND NOT EXISTS (SELECT 1 FROM view_quads q WHERE q.place = t.place AND q.o = t.id)";
    execute(transaction, texts, &[&place, &o]).await?;
    Ok(())
}

/// Whether it is this process that writes the view, until the end of the transaction.
async fn take(transaction: &Transaction<'_>, database: &Database) -> Result<bool, JournalError> {
    let lock = database.lock_of("view");
    let row = rows(transaction, "SELECT pg_try_advisory_xact_lock($1)", &[&lock]).await?;
    Ok(row.first().is_some_and(|row| row.get(0)))
}

/// Removes everything. Not at a stroke, which would take it from those who read it.
async fn empty(transaction: &Transaction<'_>) -> Result<(), JournalError> {
    let all = "SET LOCAL statement_timeout = 0; DELETE FROM view_quads; DELETE FROM view_terms; DELETE FROM view_runs; \
        DELETE FROM view_waiting; DELETE FROM view_cursor";
    transaction.batch_execute(all).await.map_err(failed)
}

pub(super) fn places(rows: &[tokio_postgres::Row]) -> Result<BTreeSet<(Workspace, RunId)>, JournalError> {
    let place = |row: &tokio_postgres::Row| {
        let workspace = Workspace::new(row.get::<_, &str>(0)).map_err(damaged)?;
        Ok((workspace, RunId::new(row.get::<_, &str>(1)).map_err(damaged)?))
    };
    rows.iter().map(place).collect()
}
