//! Rows on disk: written in batches that are whole or absent, with the entries that find them.
//!
//! Keys begin with the number of the table. Rows lie by their keys; an index has, by field and value, the keys of rows.

use super::catalogue::{self, Entry, NEXT, VERSION};
use crate::tables::read_failed;
use fjall::{
    Database as Engine, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch as WriteBatch, PersistMode, Readable, Snapshot,
};
use lsm_tree::AbstractTree;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use trellis_domain::table::{Row, RowKey, TableSchema, index_value};
use trellis_domain::{Caller, Collection, Workspace};
use trellis_orchestrator::ports::{JournalError, LoadedTable, PutRows, TablePlace, TablesError};
use trellis_orchestrator::tables::{MOST_TABLES, check_layout, check_rows, note_loader, note_unfinished, sorted};

const MB: u64 = 1 << 20;
/// The only version there is.
const FORMAT: &[u8] = b"1";
/// What write buffers hold together before writers wait.
const MOST_UNWRITTEN: u64 = 48 * MB;
const PAUSE: Duration = Duration::from_millis(5);
const MOST_PAUSES: u32 = 400;
/// Keys that are removed in one batch.
const REMOVED_TOGETHER: usize = 10_000;

pub(super) struct Database {
    engine: Engine,
    pub(super) catalogue: Keyspace,
    pub(super) rows: Keyspace,
    pub(super) indexes: Keyspace,
    pub(super) vectors: Keyspace,
    /// Held while writing: what is written depends on what is there.
    writing: Mutex<()>,
}

pub(super) fn damaged(what: &str) -> JournalError {
    JournalError::Damaged(format!("what is noted of a table cannot be read: {what:.100}"))
}

fn write_failed(error: fjall::Error) -> JournalError {
    JournalError::Write(format!("tables: {error}; free some space or check the folder's permissions"))
}

/// The engine makes its log before it notes its version.
fn has_log(path: &Path) -> bool {
    let files = std::fs::read_dir(path).into_iter().flatten().flatten();
    files.map(|file| file.path()).any(|file| file.extension().is_some_and(|kind| kind == "jnl"))
}

pub(super) fn row_key(id: u64, key: &RowKey) -> Vec<u8> {
    [&id.to_be_bytes()[..], key.as_bytes()].concat()
}

pub(super) fn index_prefix(id: u64, field: u16) -> Vec<u8> {
    [&id.to_be_bytes()[..], &field.to_be_bytes()].concat()
}

fn index_key(id: u64, field: u16, value: &[u8], key: &RowKey) -> Vec<u8> {
    [&index_prefix(id, field)[..], value, key.as_bytes()].concat()
}

impl Database {
    /// Opens what is there, or begins. What was being removed is removed.
    pub(super) fn open(path: &Path) -> Result<Self, JournalError> {
        let failed = |error: fjall::Error| JournalError::Read(error.to_string());
        // The engine would begin a new one in its place, and what only the old one has would be gone without a word.
        if path.join("version").exists() && !has_log(path) {
            return Err(JournalError::Damaged("the engine's log, a file that ends in .jnl, is missing".to_owned()));
        }
        let engine = Engine::builder(path).cache_size(16 * MB).max_journaling_size(128 * MB).worker_threads(1);
        let engine = engine.open().map_err(failed)?;
        let table = |name: &str, buffer: u64| {
            engine.keyspace(name, || KeyspaceCreateOptions::default().max_memtable_size(buffer)).map_err(failed)
        };
        let database = Self {
            catalogue: table("catalogue", 2 * MB)?,
            rows: table("rows", 16 * MB)?,
            indexes: table("indexes", 16 * MB)?,
            vectors: table("vectors", 8 * MB)?,
            engine,
            writing: Mutex::new(()),
        };
        match database.catalogue.get(VERSION).map_err(failed)? {
            Some(found) if &*found != FORMAT => {
                let found = String::from_utf8_lossy(&found).into_owned();
                return Err(JournalError::Damaged(format!("they have format {found:.20}; use a newer trellis")));
            }
            Some(_) => {}
            None => database.catalogue.insert(VERSION, FORMAT).map_err(write_failed)?,
        }
        for id in catalogue::all_removed(&database, &database.read())? {
            database.sweep(id)?;
        }
        Ok(database)
    }

    pub(super) fn read(&self) -> Snapshot {
        self.engine.snapshot()
    }

    pub(super) fn batch(&self) -> WriteBatch {
        self.engine.batch()
    }

    pub(super) fn alone(&self) -> MutexGuard<'_, ()> {
        self.writing.lock()
    }

    fn persist(&self) -> Result<(), JournalError> {
        self.engine.persist(PersistMode::SyncAll).map_err(write_failed)
    }

    /// Waits while the engine holds too much in memory.
    pub(super) fn wait_for_room(&self) {
        let all = [&self.catalogue, &self.rows, &self.indexes, &self.vectors];
        for _ in 0..MOST_PAUSES {
            if all.iter().map(|table| table.tree.active_memtable().size()).sum::<u64>() <= MOST_UNWRITTEN {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        tracing::warn!("the engine has not written out what it holds of tables; is the disk very slow?");
    }

    pub(super) fn put(
        &self,
        place: &TablePlace,
        schema: &TableSchema,
        source: &str,
        rows: Vec<Row>,
    ) -> Result<PutRows, TablesError> {
        // The last one with a key is the one that stays.
        let rows: BTreeMap<RowKey, Row> = check_rows(schema, source, rows)?.into_iter().collect();
        self.wait_for_room();
        let _alone = self.alone();
        let snapshot = self.read();
        let mut batch = self.batch();
        let mut entry = match catalogue::entry(self, &snapshot, place)? {
            Some(entry) => entry,
            None => self.begin(&snapshot, &mut batch, place, schema)?,
        };
        check_layout(&place.table, &entry.layout, schema)?;
        let is_noted = note_unfinished(&place.table, &mut entry.unfinished, source);
        let mut put = PutRows::default();
        for (key, row) in rows {
            self.put_row(&snapshot, &mut batch, &entry, &key, &row, &mut put)?;
        }
        entry.rows += put.new;
        if is_noted || put != PutRows::default() {
            batch.insert(&self.catalogue, catalogue::key(place), entry.to_bytes());
            commit(batch)?;
        }
        Ok(put)
    }

    fn begin(
        &self,
        snapshot: &Snapshot,
        batch: &mut WriteBatch,
        place: &TablePlace,
        schema: &TableSchema,
    ) -> Result<Entry, TablesError> {
        let own = catalogue::of_workspace(&place.workspace);
        if snapshot.prefix(&self.catalogue, own).count() >= MOST_TABLES {
            return Err(TablesError::Refused(format!("a workspace has at most {MOST_TABLES} tables")));
        }
        let next = snapshot.get(&self.catalogue, NEXT).map_err(read_failed)?;
        let next = next.map(|bytes| (*bytes).try_into().map(u64::from_be_bytes)).transpose();
        let id = next.map_err(|_| damaged("the number of the next"))?.unwrap_or(1);
        batch.insert(&self.catalogue, NEXT, (id + 1).to_be_bytes());
        let (unfinished, vectors, loaded_by) = Default::default();
        Ok(Entry { id, layout: schema.layout(), rows: 0, unfinished, loaded_by, vectors })
    }

    fn put_row(
        &self,
        snapshot: &Snapshot,
        batch: &mut WriteBatch,
        entry: &Entry,
        key: &RowKey,
        row: &Row,
        put: &mut PutRows,
    ) -> Result<(), JournalError> {
        let place = row_key(entry.id, key);
        let before = snapshot.get(&self.rows, &place).map_err(read_failed)?;
        let before = before.map(|bytes| read_row(&bytes)).transpose()?;
        if before.as_ref() == Some(row) {
            return Ok(());
        }
        if before.is_some() {
            put.changed += 1;
        } else {
            put.new += 1;
        }
        for (number, (field, _)) in (0..).zip(&entry.layout.indexed) {
            let value = index_value(row.get(field));
            if let Some(before) = &before {
                let old = index_value(before.get(field));
                if old == value {
                    continue;
                }
                batch.remove(&self.indexes, index_key(entry.id, number, &old, key));
            }
            batch.insert(&self.indexes, index_key(entry.id, number, &value, key), b"".as_slice());
        }
        batch.insert(&self.rows, place, serde_json::to_vec(row).expect("values of rows are JSON"));
        Ok(())
    }

    pub(super) fn finish(&self, place: &TablePlace, source: &str) -> Result<(), TablesError> {
        {
            let _alone = self.alone();
            // Somebody may have removed the table meanwhile: then there is nothing to finish.
            if let Some(mut entry) = catalogue::entry(self, &self.read(), place)?
                && entry.unfinished.iter().any(|known| known == source)
            {
                entry.unfinished.retain(|known| known != source);
                let mut batch = self.batch();
                batch.insert(&self.catalogue, catalogue::key(place), entry.to_bytes());
                commit(batch)?;
            }
        }
        Ok(self.persist()?)
    }

    pub(super) fn note_loader(&self, place: &TablePlace, caller: &Caller) -> Result<(), TablesError> {
        let _alone = self.alone();
        if let Some(mut entry) = catalogue::entry(self, &self.read(), place)?
            && note_loader(&mut entry.loaded_by, caller)
        {
            let mut batch = self.batch();
            batch.insert(&self.catalogue, catalogue::key(place), entry.to_bytes());
            commit(batch)?;
        }
        Ok(())
    }

    pub(super) fn tables(&self, workspace: &Workspace) -> Result<Vec<LoadedTable>, TablesError> {
        let entries = catalogue::entries(self, &self.read(), &catalogue::of_workspace(workspace))?;
        let mut listed: Vec<_> = entries
            .into_iter()
            .map(|(place, entry)| LoadedTable {
                collection: place.collection,
                table: place.table,
                rows: entry.rows,
                unfinished: sorted(entry.unfinished),
                loaded_by: entry.loaded_by,
            })
            .collect();
        listed.sort_by(|one, other| (&one.collection, &one.table).cmp(&(&other.collection, &other.table)));
        Ok(listed)
    }

    /// Gives up the place of a table, on disk as well, and then what lies there.
    pub(super) fn remove(&self, place: &TablePlace) -> Result<Option<u64>, TablesError> {
        let entry = {
            let _alone = self.alone();
            let Some(entry) = catalogue::entry(self, &self.read(), place)? else { return Ok(None) };
            let mut batch = self.batch();
            batch.remove(&self.catalogue, catalogue::key(place));
            batch.insert(&self.catalogue, catalogue::removed_key(entry.id), b"".as_slice());
            commit(batch)?;
            self.persist()?;
            entry
        };
        self.sweep(entry.id)?;
        Ok(Some(entry.rows))
    }

    pub(super) fn remove_collection(&self, workspace: &Workspace, collection: &Collection) -> Result<u64, TablesError> {
        let entries = catalogue::entries(self, &self.read(), &catalogue::of_collection(workspace, collection))?;
        let mut removed = 0;
        for (place, _) in entries {
            removed += u64::from(self.remove(&place)?.is_some());
        }
        Ok(removed)
    }

    /// Removes everything that lies where a table was. Nothing writes there any more.
    fn sweep(&self, id: u64) -> Result<(), JournalError> {
        for table in [&self.rows, &self.indexes, &self.vectors] {
            loop {
                let keys = self.read().prefix(table, id.to_be_bytes()).take(REMOVED_TOGETHER).map(fjall::Guard::key);
                let keys = keys.collect::<Result<Vec<_>, _>>().map_err(read_failed)?;
                if keys.is_empty() {
                    break;
                }
                self.wait_for_room();
                let mut batch = self.batch();
                for key in keys {
                    batch.remove(table, key);
                }
                commit(batch)?;
            }
        }
        let mut batch = self.batch();
        batch.remove(&self.catalogue, catalogue::removed_key(id));
        commit(batch)
    }
}

pub(super) fn commit(batch: WriteBatch) -> Result<(), JournalError> {
    batch.commit().map_err(write_failed)
}

pub(super) fn read_row(bytes: &[u8]) -> Result<Row, JournalError> {
    serde_json::from_slice(bytes).map_err(|_| JournalError::Damaged("a row of a table cannot be read".to_owned()))
}
