//! Which collections there are, where they lie, and what was loaded into them.
//!
//! These rows lie among the quads. Behind the workspace or place that they begin with is a zero, which no index has.

use crate::view::ViewError;
use crate::view::compare::Sum;
use crate::view::term_id::{WORKSPACE_ID_BYTES, WorkspaceId};
use crate::view::trees::Snapshot;
use lsm_tree::Guard;
use trellis_domain::{Caller, Collection, Hash};

const NO_INDEX: u8 = 0;
const COLLECTION: u8 = b'c';
const REMOVED: u8 = b'r';
const SOURCE: u8 = b's';
/// What the first byte of a source's row says.
const FINISHED: u8 = 1;
const HAS_LOADER: u8 = 2;
/// What a row's key begins with, before what it is about.
pub(super) const START: usize = WORKSPACE_ID_BYTES + 2;

/// A collection that has a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Part of the place, so that a collection which was removed and loaded again has another one.
    pub(super) generation: u64,
    /// Its quads, as they are in the first order.
    pub(super) sum: Sum,
    /// Sources that are remembered.
    pub(super) sources: u64,
}

impl Entry {
    pub(super) fn new(generation: u64) -> Self {
        Self { generation, sum: Sum::default(), sources: 0 }
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let numbers = [self.generation, self.sum.rows, self.sources].map(u64::to_be_bytes).concat();
        [numbers.as_slice(), &self.sum.hash.to_be_bytes()].concat()
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (generation, rest) = bytes.split_first_chunk()?;
        let (rows, rest) = rest.split_first_chunk()?;
        let (sources, rest) = rest.split_first_chunk()?;
        let hash = u128::from_be_bytes(rest.try_into().ok()?);
        let sum = Sum { rows: u64::from_be_bytes(*rows), hash };
        Some(Self { generation: u64::from_be_bytes(*generation), sum, sources: u64::from_be_bytes(*sources) })
    }
}

/// Something that was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) finished: bool,
    /// Who loaded it last; none if that was not noted.
    pub(super) by: Option<Caller>,
}

impl Source {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), finished: false, by: None }
    }

    /// Finished or not and whether it is known who loaded it; then who, with its length, and the name.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let by = self.by.as_ref().map(|by| serde_json::to_vec(by).expect("a caller is always JSON"));
        let first = if self.finished { FINISHED } else { 0 } | if by.is_some() { HAS_LOADER } else { 0 };
        let mut bytes = vec![first];
        if let Some(by) = by {
            bytes.extend(u32::try_from(by.len()).expect("a caller's name is short").to_be_bytes());
            bytes.extend(by);
        }
        bytes.extend(self.name.as_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (first, mut rest) = bytes.split_first()?;
        let mut by = None;
        if first & HAS_LOADER > 0 {
            let (length, behind) = rest.split_first_chunk()?;
            let (loader, name) = behind.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
            by = Some(serde_json::from_slice(loader).ok()?);
            rest = name;
        }
        Some(Self { name: String::from_utf8(rest.to_vec()).ok()?, finished: first & FINISHED > 0, by })
    }
}

/// The place of a collection, which nobody else has.
pub(super) fn place_of(workspace: WorkspaceId, collection: &Collection, generation: u64) -> WorkspaceId {
    let generation = generation.to_be_bytes();
    let parts = [b"collection".as_slice(), &workspace.0, &generation, collection.as_str().as_bytes()];
    let mut place = [0; WORKSPACE_ID_BYTES];
    place.copy_from_slice(&Hash::of_joined(parts).as_bytes()[..WORKSPACE_ID_BYTES]);
    WorkspaceId(place)
}

fn key(start: WorkspaceId, kind: u8, rest: &[u8]) -> Vec<u8> {
    [start.0.as_slice(), &[NO_INDEX, kind], rest].concat()
}

pub(super) fn collection_key(workspace: WorkspaceId, collection: &Collection) -> Vec<u8> {
    key(workspace, COLLECTION, collection.as_str().as_bytes())
}

/// The row that says that a place is given up. It does not lie in that place, so that it goes last.
pub(super) fn removed_key(place: WorkspaceId) -> Vec<u8> {
    key(WorkspaceId([0; WORKSPACE_ID_BYTES]), REMOVED, &place.0)
}

pub(super) fn source_key(place: WorkspaceId, source: &str) -> Vec<u8> {
    key(place, SOURCE, &Hash::of(source).as_bytes()[..16])
}

/// What a row is about, if it is one of the catalogue's.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Row {
    Collection(WorkspaceId, Collection),
    Removed,
    Source,
}

pub(super) fn row_of(key: &[u8]) -> Option<Row> {
    let (start, about) = key.split_at_checked(START)?;
    let (workspace, kind) = start.split_first_chunk()?;
    match *kind {
        [NO_INDEX, COLLECTION] => {
            let collection = Collection::new(std::str::from_utf8(about).ok()?).ok()?;
            Some(Row::Collection(WorkspaceId(*workspace), collection))
        }
        [NO_INDEX, REMOVED] => Some(Row::Removed),
        [NO_INDEX, SOURCE] => Some(Row::Source),
        _ => None,
    }
}

fn damaged(key: &[u8]) -> ViewError {
    ViewError::KeyDamaged { key: key.to_vec() }
}

pub(super) fn entry(
    snapshot: &Snapshot,
    workspace: WorkspaceId,
    collection: &Collection,
) -> Result<Option<Entry>, ViewError> {
    let key = collection_key(workspace, collection);
    let found = snapshot.quads_value(&key)?;
    found.map(|value| Entry::read(&value).ok_or_else(|| damaged(&key))).transpose()
}

/// All collections of a workspace, by name.
pub(super) fn entries(snapshot: &Snapshot, workspace: WorkspaceId) -> Result<Vec<(Collection, Entry)>, ViewError> {
    let rows = rows_from(snapshot, &key(workspace, COLLECTION, b""))?;
    let read = |(key, value): KeyAndValue| match (row_of(&key), Entry::read(&value)) {
        (Some(Row::Collection(_, collection)), Some(entry)) => Ok((collection, entry)),
        _ => Err(damaged(&key)),
    };
    rows.into_iter().map(read).collect()
}

pub(super) fn source(snapshot: &Snapshot, place: WorkspaceId, name: &str) -> Result<Option<Source>, ViewError> {
    let key = source_key(place, name);
    let found = snapshot.quads_value(&key)?;
    found.map(|value| Source::read(&value).ok_or_else(|| damaged(&key))).transpose()
}

pub(super) fn sources(snapshot: &Snapshot, place: WorkspaceId) -> Result<Vec<Source>, ViewError> {
    let rows = rows_from(snapshot, &key(place, SOURCE, b""))?;
    rows.into_iter().map(|(key, value)| Source::read(&value).ok_or_else(|| damaged(&key))).collect()
}

/// Places that are given up, with the rows that say so.
pub(super) fn all_removed(snapshot: &Snapshot) -> Result<Vec<(Vec<u8>, WorkspaceId)>, ViewError> {
    let rows = rows_from(snapshot, &key(WorkspaceId([0; WORKSPACE_ID_BYTES]), REMOVED, b""))?;
    let place = |(key, _): KeyAndValue| {
        let place = key[START..].try_into().map_err(|_| damaged(&key))?;
        Ok((key, WorkspaceId(place)))
    };
    rows.into_iter().map(place).collect()
}

type KeyAndValue = (Vec<u8>, Vec<u8>);

fn rows_from(snapshot: &Snapshot, prefix: &[u8]) -> Result<Vec<KeyAndValue>, ViewError> {
    let mut rows = Vec::new();
    for row in snapshot.quads_from(prefix) {
        let (key, value) = row.into_inner()?;
        if !key.starts_with(prefix) {
            break;
        }
        rows.push((key.to_vec(), value.to_vec()));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::Surface;

    #[test]
    fn sources_are_read_as_they_were_written_and_as_they_were_before() {
        let loader = Caller::new(Some("ada".to_owned()), Surface::Api);
        for (finished, by) in [(false, None), (true, None), (false, Some(loader.clone())), (true, Some(loader))] {
            let source = Source { name: "a file".to_owned(), finished, by };
            assert_eq!(Source::read(&source.to_bytes()), Some(source));
        }
        let old = Source { name: "old".to_owned(), finished: true, by: None };
        assert_eq!(Source::read(b"\x01old"), Some(old));
        assert_eq!(Source::read(b"\x02\0\0\0\x09{}"), None);
    }
}
