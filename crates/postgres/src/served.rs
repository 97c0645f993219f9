//! When anybody served, by the database's clock. Time in which no process did is nobody's run time.

use crate::database::Database;
use crate::error::failed;
use deadpool_postgres::Transaction;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::Timestamp;
use trellis_domain::outage::{Outage, Outages};
use trellis_orchestrator::ports::{JournalError, Service};

/// Processes give a sign of life every few seconds. If there was none for so long, there was nobody.
const SILENCE: f64 = 30.0;

/// Micros since 1970 of a column, or of what is written in its place.
macro_rules! micros {
    ($time:literal) => {
        concat!("(extract(epoch FROM ", $time, ") * 1000000)::int8")
    };
}

#[derive(Debug)]
pub(crate) struct Served {
    database: Database,
    outages: Mutex<Arc<Outages>>,
}

impl Served {
    pub(crate) fn new(database: Database) -> Self {
        Self { database, outages: Mutex::default() }
    }

    /// As it was at the last sign of life.
    pub(crate) fn service(&self) -> Service {
        Service { outages: Arc::clone(&self.outages.lock()), before_ms: 0 }
    }

    /// Says that this process serves. If it is the first in a while, that while is an outage.
    pub(crate) async fn sign(&self) -> Result<(), JournalError> {
        let signed =
            "UPDATE served SET last = clock_timestamp() WHERE last > clock_timestamp() - make_interval(secs => $1)";
        if self.database.execute(signed, &[&SILENCE]).await? == 0 {
            self.begin().await?;
        }
        let known = self.database.query("SELECT began, ended FROM outages ORDER BY began", &[]).await?;
        let time = |row: &tokio_postgres::Row, column| Timestamp::from_micros(row.get(column));
        let outages = known.iter().map(|row| Outage { from: time(row, 0), to: time(row, 1) }).collect();
        *self.outages.lock() = Arc::new(outages);
        Ok(())
    }

    /// One process ends the outage; the others wait and find it ended.
    async fn begin(&self) -> Result<(), JournalError> {
        let mut lease = self.database.lease().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        let lock = self.database.lock_of("served");
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&lock]).await.map_err(failed)?;
        let query = concat!(
            "SELECT last <= clock_timestamp() - make_interval(secs => $1), ",
            micros!("last"),
            ", ",
            micros!("clock_timestamp()"),
            " FROM served"
        );
        let row = transaction.query_opt(query, &[&SILENCE]).await.map_err(failed)?;
        if let Some(row) = row.filter(|row| row.get(0)) {
            let outage = Outage { from: Timestamp::from_micros(row.get(1)), to: Timestamp::from_micros(row.get(2)) };
            self.end_of(&transaction, outage).await?;
        }
        let sign =
            "INSERT INTO served VALUES (true, clock_timestamp()) ON CONFLICT (one) DO UPDATE SET last = excluded.last";
        transaction.execute(sign, &[]).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        lease.release();
        Ok(())
    }

    /// Notes an outage if anybody has waited for its end. What was delayed then is delayed by so much longer.
    async fn end_of(&self, transaction: &Transaction<'_>, outage: Outage) -> Result<(), JournalError> {
        let oldest = "SELECT min(started) FROM runs WHERE NOT has_ended";
        let oldest: Option<i64> = transaction.query_one(oldest, &[]).await.map_err(failed)?.get(0);
        let oldest = oldest.unwrap_or(i64::MAX);
        transaction.execute("DELETE FROM outages WHERE ended <= $1", &[&oldest]).await.map_err(failed)?;
        let (from, to) = (outage.from.as_micros(), outage.to.as_micros());
        if to <= oldest {
            return Ok(());
        }
        let note = "INSERT INTO outages (began, ended) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        transaction.execute(note, &[&from, &to]).await.map_err(failed)?;
        self.hold_delayed(transaction, from).await?;
        transaction
            .execute("UPDATE turns SET due = due + $2 WHERE due > $1", &[&from, &(to - from)])
            .await
            .map_err(failed)?;
        Ok(())
    }

    /// Takes the locks of all runs that wait, in their order, so that nobody who closes turns of one is waited for while
    /// he waits.
    async fn hold_delayed(&self, transaction: &Transaction<'_>, from: i64) -> Result<(), JournalError> {
        let query = "SELECT DISTINCT workspace, run FROM turns WHERE due > $1";
        let rows = transaction.query(query, &[&from]).await.map_err(failed)?;
        let lock = |row: &tokio_postgres::Row| {
            self.database.lock_of(&format!("run\0{}\0{}", row.get::<_, &str>(0), row.get::<_, &str>(1)))
        };
        let locks: Vec<i64> = rows.iter().map(lock).collect::<BTreeSet<_>>().into_iter().collect();
        let hold = "SELECT pg_advisory_xact_lock(key) FROM unnest($1::int8[]) AS key";
        transaction.execute(hold, &[&locks]).await.map(drop).map_err(failed)
    }
}
