//! What a newer program adds to an older folder.

mod chain;

pub(crate) use chain::MARK_FILE;

use crate::folder::{Folder, OpenError};
use crate::head::{Head, HeadFile};
use crate::key;
use crate::keys::{self, prefix};
use crate::log::{self, GROUP, Leaf, LeafKind};
use crate::request::LibraryTable;
use crate::served::first_sign;
use crate::tables::{Reader, TALLY, Tables, read_failed, unreadable};
use crate::tally::Tally;
use fjall::PersistMode;
use std::collections::HashMap;
use trellis_domain::merkle::Frontier;
use trellis_domain::record::Record;
use trellis_domain::run::RunSummary;
use trellis_orchestrator::ports::JournalError;

/// A folder of the first format gets its Merkle log: its chain is checked against the mark for the last time, and every
/// record in it becomes a leaf, as it is.
pub(crate) fn log_from_chain(folder: &mut Folder, tables: &Tables) -> Result<(), OpenError> {
    let made = make_log(folder, tables);
    let head = made.map_err(|error| match error {
        // The folder is as good as before; it could only not be written.
        JournalError::Write(reason) => folder.unusable(std::io::Error::other(reason)),
        JournalError::Read(_) | JournalError::Damaged(_) | JournalError::Unavailable(_) | JournalError::Closed => {
            folder.damaged(error.to_string(), None)
        }
    })?;
    let write = || HeadFile::create(folder.path(), head).and_then(|_| key::create(folder.path()));
    write().map_err(|error| folder.unusable(error))?;
    folder.set_format()?;
    // Whoever finds it does not need it any more.
    std::fs::remove_file(folder.path().join(MARK_FILE)).unwrap_or_default();
    Ok(())
}

fn make_log(folder: &Folder, tables: &Tables) -> Result<Head, JournalError> {
    let reader = tables.read();
    if log::group(&reader)? > 0 {
        // An earlier process came this far.
        let (group, size) = (log::group(&reader)?, log::size(&reader)?);
        return Ok(Head { group, size, root: log::root(&reader, size)? });
    }
    let mut batch = tables.database.batch().durability(Some(PersistMode::SyncAll));
    let mut frontier = Frontier::default();
    // The list of finished runs was numbered by commits, and is numbered by the size of the log now.
    let mut sizes = HashMap::new();
    let mut newest = None;
    let marks = chain::walk(&reader, |link| {
        for (kind, key, value) in link.items {
            let number = frontier.size();
            if let (LeafKind::Record, Ok(header)) = (kind, Record::header_of(&value)) {
                let event = keys::event(&header.workspace, &header.run, header.seq);
                batch.insert(&tables.index, event, keys::event_value(number, &key));
                newest = newest.max(Some(header.time));
            }
            let nodes = frontier.append(kind.hash(&key, &value));
            let leaf = Leaf { kind, key, nodes };
            batch.insert(&tables.index, keys::numbered(prefix::LEAF, number), leaf.to_bytes());
        }
        sizes.insert(link.mark.number, frontier.size());
        batch.remove(&tables.index, keys::numbered(prefix::CHAIN, link.mark.number));
    })?;
    let lost = |reason: String| Err(JournalError::Damaged(reason));
    match chain::known(folder.path()) {
        None if marks.len() > 1 => return lost("the high-water mark is missing or cannot be read".to_owned()),
        Some(known) if !marks.contains(&known) => {
            let newest = marks.len() as u64 - 1;
            return lost(format!(
                "{} of {} commits that were on disk are missing or are not those that were written",
                known.number.saturating_sub(newest),
                known.number
            ));
        }
        None | Some(_) => {}
    }
    let mut finished = Vec::new();
    for row in reader.index_prefix(&[prefix::FINISHED]) {
        let (key, run) = row.into_inner().map_err(read_failed)?;
        let size = keys::number(&key).and_then(|number| sizes.get(&number).copied());
        batch.remove(&tables.index, key);
        finished.extend(size.map(|size| (size, run)));
    }
    for (size, run) in finished {
        batch.insert(&tables.index, keys::numbered(prefix::FINISHED, size), run);
    }
    let mut tally = Tally::default();
    for table in [LibraryTable::Library, LibraryTable::Content] {
        for row in reader.all_of(table) {
            let (key, value) = row.into_inner().map_err(read_failed)?;
            tally.add(table, &key, &value);
        }
    }
    batch.insert(&tables.index, TALLY, tally.to_bytes());
    list_runs(&reader, tables, &mut batch)?;
    if let Some((key, sign)) = newest.map(first_sign) {
        batch.insert(&tables.index, key, sign);
    }
    batch.insert(&tables.index, GROUP, 1_u64.to_be_bytes());
    batch.commit().map_err(|error| JournalError::Write(error.to_string()))?;
    Ok(Head { group: 1, size: frontier.size(), root: frontier.root() })
}

/// Said of older folders that their conversations, and later their runs, have lists.
const LISTED: [&[u8]; 2] = [&[prefix::CONVERSATION], &[prefix::ENDED]];

/// Older folders had fewer lists of runs, and less in them.
fn list_runs(reader: &Reader<'_>, tables: &Tables, batch: &mut fjall::OwnedWriteBatch) -> Result<(), JournalError> {
    for marker in LISTED {
        batch.remove(&tables.index, marker);
    }
    for row in reader.index_prefix(&[prefix::RUN]) {
        let value = row.value().map_err(read_failed)?;
        let run: RunSummary = serde_json::from_slice(&value).map_err(|error| unreadable(error.into()))?;
        for (key, value) in crate::listing::rows(&run, true, run.state.is_end()) {
            batch.insert(&tables.index, key, value);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::{ConversationId, Workspace};

    #[test]
    fn older_folders_get_the_lists_of_their_runs() {
        let folder = tempfile::TempDir::new().unwrap();
        let tables = Tables::open(folder.path()).unwrap();
        let row = r#"{"workspace": "default", "run": "r", "state": "answered", "question": "why?", "pattern": "react",
            "task_type": "general", "conversation": "c", "started": 5, "ended": 6, "seq": 1, "usage": {}}"#;
        let run: RunSummary = serde_json::from_str(row).unwrap();
        tables.index.insert(keys::run(&run.workspace, &run.run), row).unwrap();
        let mut batch = tables.database.batch();
        list_runs(&tables.read(), &tables, &mut batch).unwrap();
        batch.commit().unwrap();
        let list = keys::conversation(&Workspace::default(), &ConversationId::new("c").unwrap());
        assert!(tables.read().index(&keys::listed(&list, run.started, &run.run)).unwrap().is_some());
    }
}
