//! The keyspaces of the view and how they are tuned.
//!
//! Every keyspace has its own memtable, so there are two: one for all index orders and the cursor,
//! written and read in key order, and one for the dictionary, read by key. The cursor lives with the
//! quads: a keyspace of its own would hardly ever fill a memtable and keep old journals alive.
//!
//! Clearing starts a new generation of keyspaces and drops the old one. Queries that are under way
//! keep their handles and finish on the old data; a crash in between is put right by the next open.

use super::ViewError;
use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy, PartitioningPolicy, RestartIntervalPolicy};
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions};
use std::path::Path;
use std::sync::Arc;

/// Part of the keyspace names. A new number makes an old view empty, so that it is built anew.
const FORMAT: u32 = 1;

const MB: u64 = 1024 * 1024;
const CACHE_BYTES: u64 = 16 * MB;
/// An active and a flushing memtable of both sizes make the 32 MB of write buffers.
const QUADS_MEMTABLE_BYTES: u64 = 12 * MB;
const TERMS_MEMTABLE_BYTES: u64 = 4 * MB;
/// The least fjall accepts; bounds the disk and the time to open.
const JOURNAL_BYTES: u64 = 64 * MB;
/// One flushes while the other compacts.
const WORKERS: usize = 2;
/// Hashed keys spread over all tables, so a flush rewrites the whole next level. Smaller tables make
/// that level smaller (measured while loading 1 M quads: a third less CPU than with 64 MB).
const TABLE_BYTES: u64 = 16 * MB;
/// A seek decodes half an interval; compression makes up for the bytes (measured: a third faster
/// than with 16, 2 % larger).
const RESTART_INTERVAL: u8 = 4;
/// Index scans read neighbours; a dictionary read wants one entry.
const QUADS_BLOCK_BYTES: u32 = 8 * 1024;

#[derive(Clone)]
pub(super) struct Tables {
    generation: u64,
    pub(super) quads: Keyspace,
    pub(super) terms: Keyspace,
}

pub(super) fn open_database(path: &Path) -> Result<Database, ViewError> {
    Ok(Database::builder(path)
        .cache_size(CACHE_BYTES)
        .max_journaling_size(JOURNAL_BYTES)
        .worker_threads(WORKERS)
        .open()?)
}

impl Tables {
    /// Opens the newest generation, drops all others.
    pub(super) fn open(db: &Database) -> Result<Self, ViewError> {
        let newest = keyspace_names(db).iter().filter_map(|name| generation_of(name)).max();
        let tables = Self::open_generation(db, newest.unwrap_or(1))?;
        tables.drop_others(db)?;
        Ok(tables)
    }

    /// An empty generation after this one.
    pub(super) fn renew(&self, db: &Database) -> Result<Self, ViewError> {
        let tables = Self::open_generation(db, self.generation + 1)?;
        tables.drop_others(db)?;
        Ok(tables)
    }

    fn open_generation(db: &Database, generation: u64) -> Result<Self, ViewError> {
        let quads = db.keyspace(&quads_name(generation), quads_options)?;
        let terms = db.keyspace(&terms_name(generation), terms_options)?;
        Ok(Self { generation, quads, terms })
    }

    fn drop_others(&self, db: &Database) -> Result<(), ViewError> {
        let current = [quads_name(self.generation), terms_name(self.generation)];
        for name in keyspace_names(db).into_iter().filter(|name| !current.contains(name)) {
            tracing::info!(keyspace = name, "dropping an old generation of the view");
            let keyspace = db.keyspace(&name, KeyspaceCreateOptions::default)?;
            db.delete_keyspace(keyspace)?;
        }
        Ok(())
    }
}

fn keyspace_names(db: &Database) -> Vec<String> {
    db.list_keyspace_names().iter().map(ToString::to_string).collect()
}

fn quads_name(generation: u64) -> String {
    format!("quads-{FORMAT}-{generation}")
}

fn terms_name(generation: u64) -> String {
    format!("terms-{FORMAT}-{generation}")
}

/// Quads decide: their keyspace is made first and holds the cursor.
fn generation_of(name: &str) -> Option<u64> {
    name.strip_prefix(&format!("quads-{FORMAT}-"))?.parse().ok()
}

/// Large tables need block indexes in parts: whole ones are a megabyte, kept in memory while a table
/// is new but, once reopened, fetched for every single read (measured: 20 times slower).
fn common_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
        .compaction_strategy(Arc::new(Leveled::default().with_table_target_size(TABLE_BYTES)))
        .data_block_restart_interval_policy(RestartIntervalPolicy::all(RESTART_INTERVAL))
        .index_block_partitioning_policy(PartitioningPolicy::all(true))
        .filter_block_partitioning_policy(PartitioningPolicy::all(true))
}

fn quads_options() -> KeyspaceCreateOptions {
    common_options()
        .max_memtable_size(QUADS_MEMTABLE_BYTES)
        .data_block_size_policy(BlockSizePolicy::all(QUADS_BLOCK_BYTES))
        // Scans cannot use filters.
        .filter_policy(FilterPolicy::disabled())
}

fn terms_options() -> KeyspaceCreateOptions {
    common_options()
        .max_memtable_size(TERMS_MEMTABLE_BYTES)
        // An id comes from a quad, so its term is there.
        .expect_point_read_hits(true)
}
