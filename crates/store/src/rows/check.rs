//! Every row and every entry of every index, held against each other and against what is noted.

use super::catalogue::{self, Entry};
use super::database::{Database, index_prefix, read_row};
use crate::tables::read_failed;
use fjall::{Readable, Snapshot};
use trellis_domain::table::index_value;
use trellis_orchestrator::ports::{JournalError, TablePlace};

/// What was found in tables, and what is wrong with them. Nothing of it can be derived anew.
#[derive(Debug, Default)]
pub struct CheckedTables {
    pub tables: u64,
    pub rows: u64,
    pub faults: Vec<String>,
}

/// Faults that are told of one table.
const TOLD: usize = 5;

impl Database {
    pub(super) fn check(&self) -> Result<CheckedTables, JournalError> {
        let snapshot = self.read();
        let mut checked = CheckedTables::default();
        for (place, entry) in catalogue::all(self, &snapshot)? {
            let (rows, mut faults) = self.check_table(&snapshot, &entry)?;
            checked.tables += 1;
            checked.rows += rows;
            faults.truncate(TOLD);
            let TablePlace { workspace, collection, table } = place;
            let told = faults.into_iter().map(|fault| format!("table {workspace}/{collection}/{table}: {fault}"));
            checked.faults.extend(told);
        }
        Ok(checked)
    }

    fn check_table(&self, snapshot: &Snapshot, entry: &Entry) -> Result<(u64, Vec<String>), JournalError> {
        let (mut rows, mut faults) = (0, Vec::new());
        for row in snapshot.prefix(&self.rows, entry.id.to_be_bytes()) {
            let (key, value) = row.into_inner().map_err(read_failed)?;
            rows += 1;
            let Ok(row) = read_row(&value) else {
                faults.push("a row cannot be read".to_owned());
                continue;
            };
            let key = &key[size_of::<u64>()..];
            for (number, (field, _)) in (0..).zip(&entry.layout.indexed) {
                let found = [&index_prefix(entry.id, number)[..], &index_value(row.get(field)), key].concat();
                if !snapshot.contains_key(&self.indexes, found).map_err(read_failed)? {
                    faults.push(format!("a row is missing in the index of `{field}`"));
                }
            }
            if faults.len() > TOLD {
                return Ok((rows, faults));
            }
        }
        if rows != entry.rows {
            faults.push(format!("{} rows were loaded, {rows} are there", entry.rows));
        }
        self.check_indexes(snapshot, entry, rows, &mut faults)?;
        for (model, known) in &entry.vectors {
            let found = self.count_vectors(entry, model)?;
            if found != *known {
                faults.push(format!("{known} vectors of {model} were made, {found} are there"));
            }
        }
        Ok((rows, faults))
    }

    /// Every row was found in each index: as many entries mean that there are no others.
    fn check_indexes(
        &self,
        snapshot: &Snapshot,
        entry: &Entry,
        rows: u64,
        faults: &mut Vec<String>,
    ) -> Result<(), JournalError> {
        for (number, (field, _)) in (0..).zip(&entry.layout.indexed) {
            let mut entries = 0;
            for found in snapshot.prefix(&self.indexes, index_prefix(entry.id, number)) {
                found.key().map_err(read_failed)?;
                entries += 1_u64;
            }
            if entries != rows {
                faults.push(format!("the index of `{field}` has {entries} entries for {rows} rows"));
            }
        }
        Ok(())
    }
}
