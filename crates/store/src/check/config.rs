//! Current values against the history that the log proves.

use super::{Checked, Proven};
use crate::tables::{Reader, read_failed};
use std::collections::BTreeMap;
use trellis_orchestrator::ports::HistoryEntry;

pub(super) fn check(reader: &Reader<'_>, proven: &Proven, checked: &mut Checked) {
    let (mut items, mut versions, mut changes) = (BTreeMap::new(), BTreeMap::<Vec<u8>, u64>::new(), 0);
    for row in reader.config_prefix(b"h") {
        let row = row.into_inner().map_err(read_failed);
        let Some((key, value)) = checked.read("the history of the configuration", row) else { continue };
        let entry: Result<HistoryEntry, _> = serde_json::from_slice(&value);
        let Some(entry) = checked.read("the history of the configuration", entry) else { continue };
        changes += 1;
        // Keys end in a NUL and the version, so later changes come later.
        let item = key[1..key.len().saturating_sub(9).max(1)].to_vec();
        let workspace = item.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        let newest = versions.entry(workspace).or_default();
        *newest = entry.version.max(*newest);
        items.insert(item, entry.value);
    }
    // Who made each version.
    for row in reader.config_prefix(b"c") {
        let row = row.key().map_err(read_failed);
        changes += u64::from(checked.read("the history of the configuration", row).is_some());
    }
    checked.unless(changes == proven.changes, || {
        format!("the history of the configuration has {changes} of {} changes", proven.changes)
    });
    items.retain(|_, value| value.is_some());
    let mut current = BTreeMap::new();
    for row in reader.config_prefix(b"i") {
        let row = row.into_inner().map_err(read_failed);
        let Some((key, value)) = checked.read("the configuration", row) else { continue };
        current.insert(key[1..].to_vec(), Some(String::from_utf8_lossy(&value).into_owned()));
    }
    for item in items.keys().chain(current.keys()).filter(|item| items.get(*item) != current.get(*item)) {
        let name = String::from_utf8_lossy(item).replace('\0', "/");
        checked.fault(format!("the value of {name} is not the newest of its history"));
    }
    for (workspace, newest) in versions {
        let stored = reader.config(&[b"v", workspace.as_slice()].concat());
        let stored = checked.read("the version of the configuration", stored).flatten();
        let stored = stored.and_then(|bytes| Some(u64::from_be_bytes((*bytes).try_into().ok()?)));
        checked.unless(stored == Some(newest), || {
            let workspace = String::from_utf8_lossy(&workspace);
            format!("the configuration of workspace {workspace} is at version {newest}, and says otherwise")
        });
    }
}
