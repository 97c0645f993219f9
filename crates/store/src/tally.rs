//! A sum over rows that come and go: whoever takes one away or changes one without us changes the sum.

use crate::request::LibraryTable;
use trellis_domain::Hash;

/// The hashes of all rows, added up. The order in which they came does not matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally([u64; 4]);

impl Tally {
    pub(crate) fn add(&mut self, table: LibraryTable, key: &[u8], value: &[u8]) {
        let mut carry = false;
        for (sum, part) in self.0.iter_mut().zip(parts(table, key, value)) {
            let (first, over) = sum.overflowing_add(part);
            let (second, again) = first.overflowing_add(u64::from(carry));
            (*sum, carry) = (second, over || again);
        }
    }

    pub(crate) fn remove(&mut self, table: LibraryTable, key: &[u8], value: &[u8]) {
        let mut borrow = false;
        for (sum, part) in self.0.iter_mut().zip(parts(table, key, value)) {
            let (first, under) = sum.overflowing_sub(part);
            let (second, again) = first.overflowing_sub(u64::from(borrow));
            (*sum, borrow) = (second, under || again);
        }
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        self.0.iter().flat_map(|part| part.to_be_bytes()).collect()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut tally = Self::default();
        let (parts, rest) = bytes.as_chunks::<8>();
        if parts.len() != tally.0.len() || !rest.is_empty() {
            return None;
        }
        for (sum, part) in tally.0.iter_mut().zip(parts) {
            *sum = u64::from_be_bytes(*part);
        }
        Some(tally)
    }
}

fn parts(table: LibraryTable, key: &[u8], value: &[u8]) -> [u64; 4] {
    let tag: &[u8] = match table {
        LibraryTable::Library => b"library",
        LibraryTable::Content => b"content",
    };
    let hash = Hash::of_parts([tag, key, value]);
    let (parts, _) = hash.as_bytes().as_chunks::<8>();
    std::array::from_fn(|place| u64::from_be_bytes(parts[place]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_can_be_taken_away_in_any_order() {
        let (mut one, mut two) = (Tally::default(), Tally::default());
        let rows: Vec<_> = (0..50_u8).map(|n| (vec![n], vec![n; 9])).collect();
        for ((key, value), (other, last)) in rows.iter().zip(rows.iter().rev()) {
            one.add(LibraryTable::Library, key, value);
            two.add(LibraryTable::Library, other, last);
        }
        assert_eq!(one, two);
        assert_eq!(Tally::from_bytes(&one.to_bytes()), Some(one));
        two.remove(LibraryTable::Library, &rows[7].0, &rows[7].1);
        assert_ne!(one, two);
        two.add(LibraryTable::Content, &rows[7].0, &rows[7].1);
        assert_ne!(one, two, "another table");
        for (key, value) in &rows {
            one.remove(LibraryTable::Library, key, value);
        }
        assert_eq!(one, Tally::default());
    }
}
