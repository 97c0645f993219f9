//! How rows are written.

use super::{Entry, PostgresTables, from_json, hold, names, note, to_json};
use crate::error::{damaged, failed};
use crate::graph::tables::{execute, rows};
use deadpool_postgres::Transaction;
use std::collections::{BTreeMap, HashMap};
use trellis_domain::table::{Row, RowKey, TableSchema, index_value};
use trellis_orchestrator::ports::{JournalError, PutRows, TablePlace, TablesError};
use trellis_orchestrator::tables::{MOST_TABLES, check_layout, check_rows, note_unfinished};

/// What a batch changes, as lists for the server.
#[derive(Default)]
struct Changes {
    keys: Vec<Vec<u8>>,
    rows: Vec<Vec<u8>>,
    /// Entries that find rows no longer, and those that do now: fields, values and keys.
    stale: Entries,
    fresh: Entries,
}

#[derive(Default)]
struct Entries(Vec<i16>, Vec<Vec<u8>>, Vec<Vec<u8>>);

impl Entries {
    fn add(&mut self, field: i16, value: Vec<u8>, key: &RowKey) {
        self.0.push(field);
        self.1.push(value);
        self.2.push(key.as_bytes().to_vec());
    }
}

impl PostgresTables {
    pub(super) async fn put_rows(
        &self,
        place: &TablePlace,
        schema: &TableSchema,
        source: &str,
        rows: Vec<Row>,
    ) -> Result<PutRows, TablesError> {
        // The last one with a key is the one that stays.
        let given: BTreeMap<RowKey, Row> = check_rows(schema, source, rows)?.into_iter().collect();
        let _turn = self.writers.enter(&place.workspace).await.ok_or(TablesError::Busy)?;
        let mut lease = self.lease().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        let mut entry = self.hold_or_begin(&transaction, place, schema).await?;
        check_layout(&place.table, &entry.layout, schema)?;
        let is_noted = note_unfinished(&place.table, &mut entry.unfinished, source);
        let before = stored(&transaction, &entry, given.keys()).await?;
        let (mut put, mut changes) = (PutRows::default(), Changes::default());
        for (key, row) in &given {
            changes.take(&entry, (key, row), before.get(key), &mut put);
        }
        changes.write(&transaction, entry.place).await?;
        if is_noted || put != PutRows::default() {
            note(&transaction, &entry, i64::try_from(put.new).unwrap_or(i64::MAX)).await?;
        }
        transaction.commit().await.map_err(failed)?;
        lease.release();
        Ok(put)
    }

    async fn hold_or_begin(
        &self,
        transaction: &Transaction<'_>,
        place: &TablePlace,
        schema: &TableSchema,
    ) -> Result<Entry, TablesError> {
        if let Some(entry) = hold(transaction, place).await? {
            return Ok(entry);
        }
        // One table of a workspace is begun at a time, so that they can be counted.
        let (workspace, collection, name) = names(place);
        let lock = self.database.lock_of(&format!("tables\0{workspace}"));
        rows(transaction, "SELECT pg_advisory_xact_lock($1)", &[&lock]).await?;
        if let Some(entry) = hold(transaction, place).await? {
            return Ok(entry);
        }
        let count = rows(transaction, "SELECT count(*) FROM row_tables WHERE workspace = $1", &[&workspace]).await?;
        if count.first().is_some_and(|row| row.get::<_, i64>(0).unsigned_abs() >= MOST_TABLES as u64) {
            return Err(TablesError::Refused(format!("a workspace has at most {MOST_TABLES} tables")));
        }
        let insert = "INSERT INTO row_tables (workspace, collection, name, layout, unfinished, loaded_by) \
            VALUES ($1, $2, $3, $4, '[]', '[]') RETURNING place, layout, unfinished, loaded_by";
        let layout = to_json(&schema.layout());
        let begun = rows(transaction, insert, &[&workspace, &collection, &name, &layout]).await?;
        Ok(Entry::of(begun.first().ok_or_else(|| damaged("a new table has no row"))?)?)
    }
}

/// The rows that have these keys.
async fn stored(
    transaction: &Transaction<'_>,
    entry: &Entry,
    keys: impl Iterator<Item = &RowKey>,
) -> Result<HashMap<RowKey, Row>, JournalError> {
    let keys: Vec<&[u8]> = keys.map(RowKey::as_bytes).collect();
    // One look for each: a server without statistics would rather compare all with all.
    let query = "SELECT n.key, r.stored FROM unnest($2::bytea[]) AS n (key), LATERAL \
        (SELECT stored FROM row_rows WHERE place = $1 AND key = n.key LIMIT 1) r";
    let found = rows(transaction, query, &[&entry.place, &keys]).await?;
    found.iter().map(|row| Ok((RowKey::from_bytes(row.get(0)), from_json(row.get(1))?))).collect()
}

impl Changes {
    fn take(&mut self, entry: &Entry, (key, row): (&RowKey, &Row), before: Option<&Row>, put: &mut PutRows) {
        match before {
            Some(before) if before == row => return,
            Some(_) => put.changed += 1,
            None => put.new += 1,
        }
        for (number, (field, _)) in (0..).zip(&entry.layout.indexed) {
            let value = index_value(row.get(field));
            if let Some(before) = before {
                let old = index_value(before.get(field));
                if old == value {
                    continue;
                }
                self.stale.add(number, old, key);
            }
            self.fresh.add(number, value, key);
        }
        self.keys.push(key.as_bytes().to_vec());
        self.rows.push(to_json(row));
    }

    async fn write(&self, transaction: &Transaction<'_>, place: i64) -> Result<(), JournalError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let put = "INSERT INTO row_rows (place, key, stored) SELECT $1::bigint, * FROM unnest($2::bytea[], $3::bytea[]) \
            ON CONFLICT (place, key) DO UPDATE SET stored = EXCLUDED.stored";
        execute(transaction, put, &[&place, &self.keys, &self.rows]).await?;
        let remove = "DELETE FROM row_entries e USING unnest($2::smallint[], $3::bytea[], $4::bytea[]) AS n (field, value, key) \
            WHERE e.place = $1 AND e.field = n.field AND e.value = n.value AND e.key = n.key";
        let Entries(fields, values, keys) = &self.stale;
        if !fields.is_empty() {
            execute(transaction, remove, &[&place, fields, values, keys]).await?;
        }
        let add = "INSERT INTO row_entries (place, field, value, key) \
            SELECT $1::bigint, * FROM unnest($2::smallint[], $3::bytea[], $4::bytea[]) ON CONFLICT DO NOTHING";
        let Entries(fields, values, keys) = &self.fresh;
        execute(transaction, add, &[&place, fields, values, keys]).await?;
        Ok(())
    }
}
