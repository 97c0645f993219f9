//! How rows are found: page by page, in the order of a plan, until there are enough.

use super::{Entry, Unanswered, entry_in, from_json};
use crate::error::damaged;
use crate::graph::reading::Reading;
use std::ops::ControlFlow;
use tokio_postgres::types::ToSql;
use trellis_domain::table::{Row, RowKey};
use trellis_orchestrator::ports::{Direction, FoundRows, RowQuery, TablePlace};
use trellis_orchestrator::tables::{Collector, Plan, plan};

/// Rows of the first page and of the largest, and the bytes that one is to have.
const FIRST_PAGE: i64 = 32;
const LARGEST_PAGE: i64 = 2_048;
const PAGE_BYTES: usize = 4 << 20;

pub(super) fn find(reading: &Reading, place: &TablePlace, query: &RowQuery) -> Result<FoundRows, Unanswered> {
    let Some(entry) = entry_in(reading, place)? else { return Ok(FoundRows::default()) };
    let plan = plan(&entry.layout, query);
    let mut looking = Looking {
        reading,
        collector: Collector::new(&place.table, &entry.layout, query, &plan),
        entry: &entry,
        page: FIRST_PAGE,
    };
    match &plan {
        Plan::All => looking.all(query.after.as_ref())?,
        Plan::Spans { field, spans } => {
            for span in spans {
                // Behind all values that begin with the last one.
                let to = [&span.to[..], &[u8::MAX]].concat();
                if looking.entries(field, &span.from, &to, Direction::Ascending)?.is_break() {
                    break;
                }
            }
        }
        Plan::Ordered { field, direction } => looking.entries(field, &[], &[u8::MAX, u8::MAX], *direction).map(drop)?,
    }
    Ok(looking.collector.found())
}

struct Looking<'a> {
    reading: &'a Reading,
    entry: &'a Entry,
    collector: Collector<'a>,
    page: i64,
}

impl Looking<'_> {
    fn all(&mut self, after: Option<&RowKey>) -> Result<(), Unanswered> {
        // No key is empty.
        let mut last = after.map(|key| key.as_bytes().to_vec()).unwrap_or_default();
        loop {
            let query = "SELECT key, stored FROM row_rows WHERE place = $1 AND key > $2 ORDER BY key LIMIT $3";
            let limit = self.page;
            let found = self.reading.rows(query, &[&self.entry.place, &last, &limit])?;
            let (mut bytes, count) = (0, found.len());
            for row in &found {
                last = row.get(0);
                if self.offer(&last, row.get(1), &mut bytes)?.is_break() {
                    return Ok(());
                }
            }
            if i64::try_from(count) != Ok(limit) {
                return Ok(());
            }
            self.turn(count, bytes);
        }
    }

    /// Rows by their entries, from the first to the last value.
    fn entries(
        &mut self,
        field: &str,
        from: &[u8],
        to: &[u8],
        direction: Direction,
    ) -> Result<ControlFlow<()>, Unanswered> {
        let Some(number) = self.entry.index_of(field) else { return Ok(ControlFlow::Continue(())) };
        let (sign, order, outer) = match direction {
            Direction::Ascending => (">", "value, key", "e.value, e.key"),
            Direction::Descending => ("<", "value DESC, key DESC", "e.value DESC, e.key DESC"),
        };
        let mut last: Option<(Vec<u8>, Vec<u8>)> = None;
        loop {
            let behind = if last.is_some() { format!("AND (value, key) {sign} ($6, $7)") } else { String::new() };
            let query = format!(
                "SELECT e.value, e.key, r.stored FROM (SELECT value, key FROM row_entries WHERE place = $1 AND field = $2 \
                 AND value >= $3 AND value < $4 {behind} ORDER BY {order} LIMIT $5) e \
                 LEFT JOIN row_rows r ON r.place = $1 AND r.key = e.key ORDER BY {outer}"
            );
            let limit = self.page;
            let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&self.entry.place, &number, &from, &to, &limit];
            if let Some((value, key)) = &last {
                parameters.extend([value as &(dyn ToSql + Sync), key]);
            }
            let found = self.reading.rows(&query, &parameters)?;
            let (mut bytes, count) = (0, found.len());
            for row in &found {
                let stored: Option<&[u8]> = row.get(2);
                let no_row = || damaged("an index of a table points at no row; load the table anew");
                if self.offer(row.get(1), stored.ok_or_else(no_row)?, &mut bytes)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            match found.last() {
                Some(row) if i64::try_from(count) == Ok(limit) => last = Some((row.get(0), row.get(1))),
                Some(_) | None => return Ok(ControlFlow::Continue(())),
            }
            self.turn(count, bytes);
        }
    }

    fn offer(&mut self, key: &[u8], stored: &[u8], bytes: &mut usize) -> Result<ControlFlow<()>, Unanswered> {
        *bytes += stored.len();
        let row: Row = from_json(stored)?;
        Ok(self.collector.offer(&RowKey::from_bytes(key), row)?)
    }

    /// The next page is larger, as far as rows like these allow.
    fn turn(&mut self, count: usize, bytes: usize) {
        let fitting = PAGE_BYTES / (bytes / count.max(1)).max(1);
        let fitting = i64::try_from(fitting).unwrap_or(LARGEST_PAGE);
        self.page = (4 * self.page).min(fitting).clamp(1, LARGEST_PAGE);
    }
}
