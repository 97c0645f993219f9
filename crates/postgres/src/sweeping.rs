//! Places that were given up. What lies there goes in small steps, so that nobody waits for all of it; a process that dies
//! in between leaves the rest to whoever sweeps next.

use crate::database::Database;
use crate::error::failed;
use crate::graph::tables::{execute, rows};
use deadpool_postgres::Transaction;
use trellis_orchestrator::ports::JournalError;

/// Rows that go in one transaction.
const SWEPT: i64 = 10_000;

/// Tables whose rows have a place, and the one that names places which nobody has any more.
pub(crate) struct Places {
    pub(crate) removed: &'static str,
    pub(crate) tables: &'static [&'static str],
}

impl Places {
    /// Removes what lies in places that nobody has any more. What fails now is done the next time.
    pub(crate) async fn sweep_all(&self, database: &Database) {
        let all = format!("SELECT place FROM {} ORDER BY place", self.removed);
        let swept = async {
            for row in database.query(&all, &[]).await? {
                while self.step(database, Some(row.get(0))).await? {}
            }
            Ok(())
        };
        tell(swept.await);
    }

    /// The same for one place.
    pub(crate) async fn sweep_place(&self, database: &Database, place: i64) {
        let swept = async {
            while self.step(database, Some(place)).await? {}
            Ok(())
        };
        tell(swept.await);
    }

    /// A step of that, wherever nobody else is at work: for whoever has something else to do.
    pub(crate) async fn sweep_a_little(&self, database: &Database) {
        tell(self.step(database, None).await.map(drop));
    }

    /// False if there is nothing left.
    async fn step(&self, database: &Database, place: Option<i64>) -> Result<bool, JournalError> {
        let step = async {
            let mut lease = database.lease().await?;
            let transaction = lease.transaction().await.map_err(failed)?;
            let place = self.hold(&transaction, place).await?;
            if let Some(place) = place
                && self.sweep_some(&transaction, place).await? == 0
            {
                let forget = format!("DELETE FROM {} WHERE place = $1", self.removed);
                execute(&transaction, &forget, &[&place]).await?;
            }
            transaction.commit().await.map_err(failed)?;
            lease.release();
            Ok(place.is_some())
        };
        database.within(step).await
    }

    /// Keeps others from sweeping a place, as long as the step takes: this one, or any.
    async fn hold(&self, transaction: &Transaction<'_>, place: Option<i64>) -> Result<Option<i64>, JournalError> {
        let removed = self.removed;
        let found = if let Some(place) = place {
            let this = format!("SELECT place FROM {removed} WHERE place = $1 FOR UPDATE");
            rows(transaction, &this, &[&place]).await?
        } else {
            let any = format!("SELECT place FROM {removed} ORDER BY place LIMIT 1 FOR UPDATE SKIP LOCKED");
            rows(transaction, &any, &[]).await?
        };
        Ok(found.first().map(|row| row.get(0)))
    }

    /// How many rows there were; none if the place is empty.
    async fn sweep_some(&self, transaction: &Transaction<'_>, place: i64) -> Result<u64, JournalError> {
        for table in self.tables {
            let some = format!(
                "DELETE FROM {table} WHERE ctid = ANY (ARRAY (SELECT ctid FROM {table} WHERE place = $1 LIMIT $2))"
            );
            let gone = execute(transaction, &some, &[&place, &SWEPT]).await?;
            if gone > 0 {
                return Ok(gone);
            }
        }
        Ok(0)
    }
}

fn tell(swept: Result<(), JournalError>) {
    if let Err(error) = swept {
        tracing::warn!(%error, "what was removed still takes room; it goes with the next change");
    }
}
