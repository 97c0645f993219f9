//! The Merkle log: what was committed becomes its leaves, in one order for all processes.
//!
//! A commit notes what the log is to have, in its own transaction. Whoever has the lock takes such notes and appends
//! leaves, in one transaction, so that no note is taken twice and none is lost. Whoever wants a checkpoint waits until
//! everything is in it that was committed before it was asked for.

use crate::database::Database;
use crate::error::{damaged, failed};
use crate::reading::hash;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_postgres::types::ToSql;
use trellis_domain::Hash;
use trellis_domain::merkle::{self, Frontier};
use trellis_orchestrator::leaf::LeafKind;
use trellis_orchestrator::ports::JournalError;

/// Leaves that are appended in one transaction.
const TOGETHER: i64 = 2_000;
/// Without a sign of something new, it is looked for this often: another process may have died before it could.
const LOOK: Duration = Duration::from_secs(1);
/// After trouble.
const LATER: Duration = Duration::from_secs(3);

/// The number that stands for a kind of leaf.
pub(crate) fn number_of(kind: LeafKind) -> i16 {
    i16::from(kind.tag())
}

#[derive(Debug)]
pub(crate) struct Sequencer {
    database: Database,
    written: Arc<Notify>,
    /// The edge of the tree as this process last left it.
    edge: Mutex<Frontier>,
}

/// Who appends while somebody else does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Busy {
    /// Nobody needs to do it twice.
    Leave,
    Wait,
}

impl Sequencer {
    pub(crate) fn new(database: Database) -> Self {
        Self { database, written: Arc::default(), edge: Mutex::default() }
    }

    /// Told of everything that is for the log.
    pub(crate) fn written(&self) -> Arc<Notify> {
        Arc::clone(&self.written)
    }

    /// Appends what is committed, for as long as the process lives.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            match self.append(Busy::Leave).await {
                Ok(TOGETHER..) => {}
                Ok(_) => drop(tokio::time::timeout(LOOK, self.written.notified()).await),
                Err(error) => {
                    tracing::warn!(%error, "the log could not be continued; trying again");
                    tokio::time::sleep(LATER).await;
                }
            }
        }
    }

    /// How much is committed and not in the log yet.
    pub(crate) async fn behind(&self) -> Result<u64, JournalError> {
        let row = self.database.find("SELECT count(*) FROM unsequenced", &[]).await?;
        Ok(row.and_then(|row| u64::try_from(row.get::<_, i64>(0)).ok()).unwrap_or(0))
    }

    /// Returns when everything is in the log that is committed by now.
    pub(crate) async fn catch_up(&self) -> Result<(), JournalError> {
        let newest = "SELECT max(id) FROM unsequenced";
        let row = self.database.find(newest, &[]).await?;
        let Some(newest) = row.and_then(|row| row.get::<_, Option<i64>>(0)) else { return Ok(()) };
        let waits = "SELECT 1 FROM unsequenced WHERE id <= $1 LIMIT 1";
        while self.database.find(waits, &[&newest]).await?.is_some() {
            self.append(Busy::Wait).await?;
        }
        Ok(())
    }

    /// Appends one portion; says how many leaves that were.
    async fn append(&self, busy: Busy) -> Result<i64, JournalError> {
        // If it fails, nobody knows how far it came.
        let edge = std::mem::take(&mut *self.edge.lock());
        let (count, edge) = self.database.within(self.append_to(edge, busy)).await?;
        *self.edge.lock() = edge;
        Ok(count)
    }

    async fn append_to(&self, edge: Frontier, busy: Busy) -> Result<(i64, Frontier), JournalError> {
        let mut lease = self.database.lease().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        let lock = self.database.lock_of("log");
        if busy == Busy::Wait {
            transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&lock]).await.map_err(failed)?;
        } else {
            let held = transaction.query_one("SELECT pg_try_advisory_xact_lock($1)", &[&lock]).await.map_err(failed)?;
            if !held.get::<_, bool>(0) {
                transaction.rollback().await.map_err(failed)?;
                lease.release();
                return Ok((0, edge));
            }
        }
        let take = "DELETE FROM unsequenced WHERE id = ANY (ARRAY(SELECT id FROM unsequenced ORDER BY id LIMIT $1)) \
            RETURNING id, kind, workspace, run, seq, key, hash";
        let take = transaction.prepare_cached(take).await.map_err(failed)?;
        let mut rows = transaction.query(&take, &[&TOGETHER]).await.map_err(failed)?;
        if rows.is_empty() {
            transaction.rollback().await.map_err(failed)?;
            lease.release();
            return Ok((0, edge));
        }
        rows.sort_by_key(|row| row.get::<_, i64>(0));
        let size =
            transaction.query_one("SELECT coalesce(max(number) + 1, 0) FROM leaves", &[]).await.map_err(failed)?;
        let size: i64 = size.get(0);
        let mut edge = match u64::try_from(size).unwrap_or(0) {
            size if edge.size() == size => edge,
            size => {
                let nodes = fetch(&transaction, &Needed::of(|look| Frontier::at(size, look))).await?;
                Frontier::at(size, |level, index| nodes.get(level, index))?
            }
        };
        let (mut numbers, mut nodes) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        for (number, row) in (size..).zip(&rows) {
            numbers.push(number);
            nodes.push(edge.append(hash(row.get(6))?).iter().flat_map(|node| *node.as_bytes()).collect::<Vec<u8>>());
        }
        let kinds: Vec<i16> = rows.iter().map(|row| row.get(1)).collect();
        let workspaces: Vec<Option<&str>> = rows.iter().map(|row| row.get(2)).collect();
        let runs: Vec<Option<&str>> = rows.iter().map(|row| row.get(3)).collect();
        let seqs: Vec<Option<i64>> = rows.iter().map(|row| row.get(4)).collect();
        let keys: Vec<Option<&[u8]>> = rows.iter().map(|row| row.get(5)).collect();
        let insert = "INSERT INTO leaves (number, kind, workspace, run, seq, key, nodes) \
            SELECT * FROM unnest($1::int8[], $2::int2[], $3::text[], $4::text[], $5::int8[], $6::bytea[], $7::bytea[])";
        let insert = transaction.prepare_cached(insert).await.map_err(failed)?;
        let columns: [&(dyn ToSql + Sync); 7] = [&numbers, &kinds, &workspaces, &runs, &seqs, &keys, &nodes];
        transaction.execute(&insert, &columns).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        lease.release();
        Ok((i64::try_from(rows.len()).unwrap_or(i64::MAX), edge))
    }
}

/// Which nodes of the tree something is made from.
#[derive(Debug, Default)]
pub(crate) struct Needed(BTreeSet<(u8, u64)>);

impl Needed {
    /// Which nodes are asked for does not depend on what they are.
    pub(crate) fn of<T>(
        make: impl FnOnce(&mut dyn FnMut(u8, u64) -> Result<Hash, JournalError>) -> Result<T, JournalError>,
    ) -> Self {
        let mut needed = BTreeSet::new();
        drop(make(&mut |level, index| {
            needed.insert((level, index));
            Ok(Hash::ZERO)
        }));
        Self(needed)
    }

    pub(crate) fn and(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The leaves that these nodes are whole with.
    pub(crate) fn leaves(&self) -> Vec<i64> {
        let last = |(level, index): &(u8, u64)| (((index + 1) << level) - 1).cast_signed();
        self.0.iter().map(last).collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Stored nodes, by the leaf that they are whole with.
#[derive(Debug, Default)]
pub(crate) struct Nodes(BTreeMap<u64, Vec<u8>>);

impl Nodes {
    pub(crate) fn of(rows: &[tokio_postgres::Row]) -> Self {
        Self(rows.iter().map(|row| (row.get::<_, i64>(0).cast_unsigned(), row.get(1))).collect())
    }

    pub(crate) fn get(&self, level: u8, index: u64) -> Result<Hash, JournalError> {
        let last = ((index + 1) << level) - 1;
        let nodes = self.0.get(&last).ok_or_else(|| damaged(format!("entry {last} of the log is missing")))?;
        let at = usize::from(level) * 32;
        let node = nodes.get(at..at + 32).ok_or_else(|| damaged(format!("entry {last} of the log lacks a hash")))?;
        hash(node)
    }
}

pub(crate) const NODES: &str = "SELECT number, nodes FROM leaves WHERE number = ANY ($1)";

async fn fetch(transaction: &deadpool_postgres::Transaction<'_>, needed: &Needed) -> Result<Nodes, JournalError> {
    Ok(Nodes::of(&transaction.query(NODES, &[&needed.leaves()]).await.map_err(failed)?))
}

/// The root of the log when it had this size.
pub(crate) fn root(size: u64, nodes: &Nodes) -> Result<Hash, JournalError> {
    merkle::root(size, |level, index| nodes.get(level, index))
}
