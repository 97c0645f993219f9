//! Which rows of vectors the index names, and the passages that they belong to.

use crate::schema::{ROW, SPACE};
use tantivy::columnar::Column;
use tantivy::{DocAddress, DocId, Searcher, SegmentReader, TantivyError};

/// The rows of one space, in rising order, as of one state of the index.
#[derive(Debug, Default)]
pub(crate) struct LiveRows {
    pub(crate) rows: Vec<u64>,
    passages: Vec<DocAddress>,
}

impl LiveRows {
    pub(crate) fn read(searcher: &Searcher, space: u64) -> Result<Self, TantivyError> {
        let mut found = Vec::new();
        for (segment, reader) in (0_u32..).zip(searcher.segment_readers()) {
            let own = rows(reader)?.filter(|(_, of, _)| *of == space);
            found.extend(own.map(|(row, _, entry)| (row, DocAddress::new(segment, entry))));
        }
        found.sort_unstable_by_key(|(row, _)| *row);
        let (rows, passages) = found.into_iter().unzip();
        Ok(Self { rows, passages })
    }

    /// The passage that a row belongs to.
    pub(crate) fn passage(&self, row: u64) -> Option<DocAddress> {
        self.rows.binary_search(&row).ok().and_then(|at| self.passages.get(at).copied())
    }

    /// So many rows that nobody has, those in front first.
    pub(crate) fn free(&self, count: usize) -> Vec<u64> {
        let mut taken = self.rows.iter().copied().peekable();
        let mut free = Vec::with_capacity(count);
        let mut row = 0;
        while free.len() < count {
            if taken.next_if_eq(&row).is_none() {
                free.push(row);
            }
            row += 1;
        }
        free
    }
}

/// The rows that a segment names, each with its space and the entry of its passage.
pub(crate) fn rows(reader: &SegmentReader) -> Result<impl Iterator<Item = (u64, u64, DocId)> + '_, TantivyError> {
    let columns = reader.fast_fields();
    let (spaces, rows) = (columns.column_opt::<u64>(SPACE)?, columns.column_opt::<u64>(ROW)?);
    let of = move |(spaces, rows): &(Column, Column), entry| Some((rows.first(entry)?, spaces.first(entry)?, entry));
    let both = spaces.zip(rows);
    Ok(reader.doc_ids_alive().filter_map(move |entry| of(both.as_ref()?, entry)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_filled_first() {
        let live = |rows: &[u64]| LiveRows { rows: rows.to_vec(), passages: Vec::new() };
        assert_eq!(live(&[]).free(3), [0, 1, 2]);
        assert_eq!(live(&[0, 1, 4]).free(3), [2, 3, 5]);
        assert_eq!(live(&[1]).free(0), [0; 0]);
    }
}
