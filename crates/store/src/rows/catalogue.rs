//! Which tables there are, and where their rows lie.

use super::database::{Database, damaged};
use crate::tables::read_failed;
use fjall::{Readable, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trellis_domain::table::TableLayout;
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::ports::{JournalError, LoadedBy, TablePlace};

const TABLE: u8 = b't';
const REMOVED: u8 = b'r';
pub(super) const NEXT: &[u8] = b"n";
pub(super) const VERSION: &[u8] = b"v";

/// What is noted of a table. It changes in the batch that it describes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Where its rows lie: never used for another table.
    pub(super) id: u64,
    pub(super) layout: TableLayout,
    pub(super) rows: u64,
    /// Those that were loaded last are last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unfinished: Vec<String>,
    /// Who loaded rows, the last one last. Older entries do not say.
    #[serde(default = "unrecorded")]
    pub(super) loaded_by: Vec<LoadedBy>,
    /// How many values have vectors, by model; the models have numbers here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) vectors: BTreeMap<String, u64>,
}

fn unrecorded() -> Vec<LoadedBy> {
    vec![LoadedBy::UNRECORDED]
}

impl Entry {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("names and numbers are always JSON")
    }

    /// The number of a field in the keys of indexes.
    pub(super) fn index_of(&self, field: &str) -> Option<u16> {
        let position = self.layout.indexed.iter().position(|(known, _)| known == field)?;
        u16::try_from(position).ok()
    }
}

pub(super) fn key(place: &TablePlace) -> Vec<u8> {
    let mut key = of_collection(&place.workspace, &place.collection);
    key.extend_from_slice(place.table.as_bytes());
    key
}

/// What the keys of a workspace's tables begin with.
pub(super) fn of_workspace(workspace: &Workspace) -> Vec<u8> {
    let mut key = vec![TABLE];
    part(&mut key, workspace.as_str());
    key
}

pub(super) fn of_collection(workspace: &Workspace, collection: &Collection) -> Vec<u8> {
    let mut key = of_workspace(workspace);
    part(&mut key, collection.as_str());
    key
}

/// With its length in front, so that no name is the beginning of another.
fn part(key: &mut Vec<u8>, name: &str) {
    let length = u16::try_from(name.len()).expect("names of workspaces and collections are short");
    key.extend(length.to_be_bytes());
    key.extend(name.as_bytes());
}

pub(super) fn removed_key(id: u64) -> Vec<u8> {
    [&[REMOVED][..], &id.to_be_bytes()].concat()
}

/// Those whose rows may still lie around.
pub(super) fn all_removed(database: &Database, snapshot: &Snapshot) -> Result<Vec<u64>, JournalError> {
    let rows = snapshot.prefix(&database.catalogue, [REMOVED]);
    let id = |key: fjall::UserKey| key.get(1..).and_then(|id| id.try_into().ok()).map(u64::from_be_bytes);
    rows.map(|row| id(row.key().map_err(read_failed)?).ok_or_else(|| damaged("a removed table"))).collect()
}

pub(super) fn entry(
    database: &Database,
    snapshot: &Snapshot,
    place: &TablePlace,
) -> Result<Option<Entry>, JournalError> {
    let found = snapshot.get(&database.catalogue, key(place)).map_err(read_failed)?;
    found.map(|bytes| serde_json::from_slice(&bytes).map_err(|_| damaged(&place.table))).transpose()
}

/// The tables whose keys begin so, with collection and name.
pub(super) fn entries(
    database: &Database,
    snapshot: &Snapshot,
    prefix: &[u8],
) -> Result<Vec<(TablePlace, Entry)>, JournalError> {
    let rows = snapshot.prefix(&database.catalogue, prefix);
    let entries = rows.map(|row| {
        let (key, value) = row.into_inner().map_err(read_failed)?;
        let place = place_of(&key).ok_or_else(|| damaged("the name of a table"))?;
        let entry = serde_json::from_slice(&value).map_err(|_| damaged(&place.table))?;
        Ok((place, entry))
    });
    entries.collect()
}

/// All tables of all workspaces.
pub(super) fn all(database: &Database, snapshot: &Snapshot) -> Result<Vec<(TablePlace, Entry)>, JournalError> {
    entries(database, snapshot, &[TABLE])
}

fn place_of(key: &[u8]) -> Option<TablePlace> {
    let rest = key.strip_prefix(&[TABLE])?;
    let (workspace, rest) = take(rest)?;
    let (collection, table) = take(rest)?;
    let (workspace, collection) = (Workspace::new(workspace).ok()?, Collection::new(collection).ok()?);
    Some(TablePlace { workspace, collection, table: str::from_utf8(table).ok()?.to_owned() })
}

fn take(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (name, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((str::from_utf8(name).ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_loaded_an_older_table_is_not_recorded() {
        let layout = serde_json::to_value(TableLayout::default()).unwrap();
        let old = serde_json::json!({"id": 1, "layout": layout, "rows": 2});
        let entry: Entry = serde_json::from_value(old).unwrap();
        assert_eq!(entry.loaded_by, [LoadedBy::UNRECORDED]);
    }
}
