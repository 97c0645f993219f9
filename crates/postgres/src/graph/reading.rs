//! The database as it was at one moment, read from a thread.

use crate::database::{Database, Lease, Parameters};
use crate::error::failed;
use crate::reading::{Texts, hash, record};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_postgres::Row;
use trellis_domain::Workspace;
use trellis_domain::record::Record;
use trellis_orchestrator::ports::JournalError;
use trellis_queries::{Cancellation, QueryError};

/// One snapshot for everything that is asked. Every question has an index in the order that is wanted, so that nothing is
/// read that is not needed; the server must not think that reading and sorting all of a small table is cheaper.
const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
    SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off";
/// How often it is looked whether somebody still waits.
const LOOK: Duration = Duration::from_millis(50);

/// A transaction that only reads. All methods block: it is for threads that may.
pub(crate) struct Reading {
    database: Database,
    runtime: Handle,
    /// None once something went wrong.
    lease: RefCell<Option<Lease>>,
    cancellation: Cancellation,
}

impl Reading {
    /// Reads within one transaction. It is over when this returns, whatever still holds a part of it.
    pub(crate) fn with<T, E: From<QueryError>>(
        database: &Database,
        cancellation: &Cancellation,
        read: impl FnOnce(&Rc<Self>) -> Result<T, E>,
    ) -> Result<T, E> {
        let runtime = Handle::current();
        let begun = runtime.block_on(database.within(async {
            let lease = database.looker().await?;
            lease.batch_execute(BEGIN).await.map_err(failed)?;
            Ok(lease)
        }));
        let lease = RefCell::new(Some(begun.map_err(QueryError::from)?));
        let reading = Rc::new(Self { database: database.clone(), runtime, lease, cancellation: cancellation.clone() });
        let answer = read(&reading);
        if let Some(lease) = reading.lease.take()
            && reading
                .runtime
                .block_on(database.within(async { lease.batch_execute("ROLLBACK").await.map_err(failed) }))
                .is_ok()
        {
            lease.release();
        }
        answer
    }

    /// What a statement gives. After an error there is nothing more to be read.
    pub(crate) fn rows(&self, statement: &str, parameters: Parameters<'_>) -> Result<Vec<Row>, QueryError> {
        let Some(lease) = self.lease.take() else {
            return Err(JournalError::Unavailable("the reading has ended".to_owned()).into());
        };
        if self.cancellation.is_cancelled() {
            return Err(QueryError::Cancelled);
        }
        let asked = self.runtime.block_on(async {
            tokio::select! {
                biased;
                rows = self.database.within(lease.rows(statement, parameters)) => Ok(rows?),
                () = self.cancelled() => Err(QueryError::Cancelled),
            }
        });
        match asked {
            Ok(rows) => {
                *self.lease.borrow_mut() = Some(lease);
                Ok(rows)
            }
            Err(error) => {
                // The server stops as well, before the connection is closed.
                let (stop, encryption) = (lease.cancel_token(), self.database.encryption().clone());
                self.runtime.spawn(async move { stop.cancel_query(encryption.0).await });
                Err(error)
            }
        }
    }

    async fn cancelled(&self) {
        while !self.cancellation.is_cancelled() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The records that a condition describes, of a workspace.
    pub(crate) fn records(
        &self,
        workspace: &Workspace,
        condition: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Arc<Record>>, QueryError> {
        let rows = self.rows(&format!("SELECT stored, texts FROM records WHERE {condition}"), parameters)?;
        let texts = self.texts(workspace, rows.iter().map(|row| row.get(1)))?;
        rows.iter().map(|row| Ok(record(row.get(0), &texts)?)).collect()
    }

    fn texts<'a>(&self, workspace: &Workspace, columns: impl Iterator<Item = &'a [u8]>) -> Result<Texts, QueryError> {
        let hashes: Vec<&[u8]> = columns.flat_map(|hashes| hashes.chunks(32)).collect();
        if hashes.is_empty() {
            return Ok(Texts::new());
        }
        let query = "SELECT hash, text FROM texts WHERE workspace = $1 AND hash = ANY ($2::bytea[])";
        let rows = self.rows(query, &[&workspace.as_str(), &hashes])?;
        rows.iter().map(|row| Ok((hash(row.get(0))?, Arc::from(String::from_utf8_lossy(row.get(1)))))).collect()
    }
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading").finish_non_exhaustive()
    }
}
