//! The head of the log, in a file of its own beside the engine's: how far the journal has come.
//!
//! It is written and synced after each group of commits is on disk and before any of them is acknowledged. So it never
//! claims what is not there, and nothing that was acknowledged is beyond it. An engine that lost something cannot hide it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use trellis_domain::Hash;

/// How far the journal has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// The newest group of commits.
    pub(crate) group: u64,
    /// How many leaves the log has.
    pub(crate) size: u64,
    pub(crate) root: Hash,
}

/// Two slots are written in turn: a torn write leaves the other one.
#[derive(Debug)]
pub(crate) struct HeadFile {
    file: File,
}

const SLOT: usize = 8 + 8 + 32 + 32;

pub(crate) const FILE: &str = "log-head";

impl HeadFile {
    pub(crate) fn create(folder: &Path, head: Head) -> std::io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(folder.join(FILE))?;
        // Both slots, so that the file never has to grow: syncing it is then cheap.
        file.write_all(&[written(head), written(head)].concat())?;
        file.sync_all()?;
        crate::engine_log::sync_folder(folder)?;
        Ok(Self { file })
    }

    pub(crate) fn open(folder: &Path) -> std::io::Result<Self> {
        Ok(Self { file: OpenOptions::new().read(true).write(true).open(folder.join(FILE))? })
    }

    pub(crate) fn write(&mut self, head: Head) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(head.group % 2 * SLOT as u64))?;
        self.file.write_all(&written(head))?;
        self.file.sync_data()
    }
}

/// Reads the newest head; none if neither slot can be read.
pub(crate) fn read(folder: &Path) -> std::io::Result<Option<Head>> {
    let mut bytes = Vec::new();
    File::open(folder.join(FILE))?.take(1024).read_to_end(&mut bytes)?;
    Ok(bytes.chunks(SLOT).filter_map(read_slot).max_by_key(|head| head.group))
}

fn written(head: Head) -> Vec<u8> {
    let mut slot = Vec::with_capacity(SLOT);
    slot.extend_from_slice(&head.group.to_be_bytes());
    slot.extend_from_slice(&head.size.to_be_bytes());
    slot.extend_from_slice(head.root.as_bytes());
    slot.extend_from_slice(Hash::of(&slot).as_bytes());
    slot
}

fn read_slot(bytes: &[u8]) -> Option<Head> {
    let (content, check) = bytes.split_at_checked(SLOT - 32)?;
    if check != Hash::of(content).as_bytes() {
        return None;
    }
    let number = |at: usize| Some(u64::from_be_bytes(content.get(at..at + 8)?.try_into().ok()?));
    let root = Hash::from_bytes(content.get(16..48)?.try_into().ok()?);
    Some(Head { group: number(0)?, size: number(8)?, root })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_write_leaves_the_head_before() {
        let folder = tempfile::TempDir::new().unwrap();
        let head = |group| Head { group, size: group * 3, root: Hash::of([1, 2, 3]) };
        let mut file = HeadFile::create(folder.path(), head(1)).unwrap();
        for group in 2..6 {
            file.write(head(group)).unwrap();
            assert_eq!(read(folder.path()).unwrap(), Some(head(group)));
        }
        let path = folder.path().join(FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 2 * SLOT);
        bytes[SLOT + 20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(folder.path()).unwrap(), Some(head(4)));
        bytes[20] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
    }
}
