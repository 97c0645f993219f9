//! Rows for a query: by an index where one helps, else one after the other.

use super::catalogue::{self, Entry};
use super::database::{Database, index_prefix, read_row, row_key};
use crate::tables::read_failed;
use fjall::{Readable, Snapshot};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trellis_domain::table::{RowKey, index_value_length};
use trellis_orchestrator::ports::{Direction, FoundRows, JournalError, RowQuery, TablePlace, TablesError};
use trellis_orchestrator::tables::{Collector, Plan, Span, plan};

/// Whether somebody still waits for what is looked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted(Arc<AtomicBool>);

/// Nobody does any more when this is gone.
#[derive(Debug)]
pub(super) struct Waiting(Wanted);

impl Wanted {
    pub(super) fn waiting(&self) -> Waiting {
        Waiting(self.clone())
    }

    pub(super) fn check(&self) -> Result<(), TablesError> {
        if self.0.load(Ordering::Relaxed) { Err(TablesError::Busy) } else { Ok(()) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl Database {
    pub(super) fn find(&self, place: &TablePlace, query: &RowQuery, wanted: &Wanted) -> Result<FoundRows, TablesError> {
        let snapshot = self.read();
        let Some(entry) = catalogue::entry(self, &snapshot, place)? else { return Ok(FoundRows::default()) };
        let plan = plan(&entry.layout, query);
        let mut finding = Finding {
            database: self,
            snapshot: &snapshot,
            collector: Collector::new(&place.table, &entry.layout, query, &plan),
            entry: &entry,
            wanted,
        };
        match plan {
            Plan::All => finding.all(query.after.as_ref())?,
            Plan::Spans { field, spans } => {
                for span in spans {
                    finding.span(&field, &span)?;
                }
            }
            Plan::Ordered { field, direction } => finding.ordered(&field, direction)?,
        }
        Ok(finding.collector.found())
    }
}

struct Finding<'a> {
    database: &'a Database,
    snapshot: &'a Snapshot,
    entry: &'a Entry,
    collector: Collector<'a>,
    wanted: &'a Wanted,
}

impl Finding<'_> {
    fn all(&mut self, after: Option<&RowKey>) -> Result<(), TablesError> {
        let id = self.entry.id;
        let from = after.map_or_else(|| id.to_be_bytes().to_vec(), |after| row_key(id, after));
        let to = (id + 1).to_be_bytes().to_vec();
        for row in self.snapshot.range(&self.database.rows, from..to) {
            self.wanted.check()?;
            let (key, value) = row.into_inner().map_err(read_failed)?;
            let key = RowKey::from_bytes(&key[size_of::<u64>()..]);
            if after == Some(&key) {
                continue;
            }
            if self.collector.offer(&key, read_row(&value)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn span(&mut self, field: &str, span: &Span) -> Result<(), TablesError> {
        let Some(prefix) = self.prefix(field) else { return Ok(()) };
        // Behind all keys of rows with the last value.
        let range = [&prefix[..], &span.from].concat()..[&prefix[..], &span.to, &[u8::MAX]].concat();
        self.entries(self.snapshot.range(&self.database.indexes, range), prefix.len())
    }

    fn ordered(&mut self, field: &str, direction: Direction) -> Result<(), TablesError> {
        let Some(prefix) = self.prefix(field) else { return Ok(()) };
        let entries = self.snapshot.prefix(&self.database.indexes, &prefix);
        match direction {
            Direction::Ascending => self.entries(entries, prefix.len()),
            Direction::Descending => self.entries(entries.rev(), prefix.len()),
        }
    }

    fn prefix(&self, field: &str) -> Option<Vec<u8>> {
        self.entry.index_of(field).map(|number| index_prefix(self.entry.id, number))
    }

    fn entries(&mut self, entries: impl Iterator<Item = fjall::Guard>, prefix: usize) -> Result<(), TablesError> {
        for entry in entries {
            self.wanted.check()?;
            let bytes = entry.key().map_err(read_failed)?;
            let lost = || JournalError::Damaged("an index of a table points at no row; load the table anew".to_owned());
            let value = bytes.get(prefix..).and_then(index_value_length).ok_or_else(lost)?;
            let key = RowKey::from_bytes(&bytes[prefix + value..]);
            let row = self.snapshot.get(&self.database.rows, row_key(self.entry.id, &key)).map_err(read_failed)?;
            let row = read_row(&row.ok_or_else(lost)?)?;
            if self.collector.offer(&key, row)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
