//! Reading the engine's own log files before the engine does.
//!
//! When fjall opens a log it cuts it behind the first spot that it cannot read, and says nothing. So the log is read here
//! first, without changing it: is it whole, does it end in a batch that was being written when the process died, or is it
//! damaged?

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3Default;

/// What ends each batch, and stands alone in the file that names the engine's version.
pub(crate) const MARK: &[u8; 4] = b"FJL\x03";

mod tag {
    pub(super) const START: u8 = 1;
    pub(super) const ITEM: u8 = 2;
    pub(super) const END: u8 = 3;
    pub(super) const CLEAR: u8 = 4;
}

/// What a log file looks like behind its last whole batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Only the space allocated ahead.
    Nothing,
    /// A batch that was not written to its end, as a process leaves it that dies.
    Begun,
    /// Bytes that are no batch, and none behind them.
    Rubbish,
    /// There are whole batches behind something that cannot be read.
    Batches,
}

/// How far a log file can be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) whole: usize,
    pub(crate) rest: Rest,
    /// The number of the last whole batch.
    pub(crate) newest: Option<u64>,
}

enum Wrong {
    /// The bytes end, or are still empty, before the batch does.
    Short,
    Other,
}

/// Reads forward and never behind the end.
struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> ByteReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Wrong> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..count)).ok_or(Wrong::Short)?;
        self.at += count;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Result<u64, Wrong> {
        Ok(self.take(bytes)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn item(&mut self) -> Result<(), Wrong> {
        // Kind of value, compression, table.
        self.take(2 + 8)?;
        let key = self.number(2)?;
        self.number(4)?;
        let value = self.number(4)?;
        self.take(usize::try_from(key + value).map_err(|_| Wrong::Short)?).map(drop)
    }
}

/// A batch that can be read.
struct Batch {
    number: u64,
    end: usize,
}

/// The batch that begins here.
fn batch(bytes: &[u8], start: usize) -> Result<Batch, Wrong> {
    let mut cursor = ByteReader { bytes, at: start };
    if cursor.number(1)? != u64::from(tag::START) {
        return Err(Wrong::Other);
    }
    let items = cursor.number(4)?;
    let number = cursor.number(8)?;
    let mut hasher = Xxh3Default::new();
    for _ in 0..items {
        let from = cursor.at;
        match cursor.take(1)? {
            [tag::ITEM] => cursor.item()?,
            [tag::CLEAR] => cursor.take(8).map(drop)?,
            [0] => return Err(Wrong::Short),
            _ => return Err(Wrong::Other),
        }
        hasher.update(&bytes[from..cursor.at]);
    }
    match cursor.take(1)? {
        [tag::END] => {}
        [0] => return Err(Wrong::Short),
        _ => return Err(Wrong::Other),
    }
    let sum = cursor.number(8)?;
    if cursor.take(MARK.len())? != MARK || sum != hasher.digest() {
        return Err(Wrong::Other);
    }
    Ok(Batch { number, end: cursor.at })
}

pub(crate) fn extent(bytes: &[u8]) -> Extent {
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let (mut whole, mut newest) = (0, None);
    let wrong = loop {
        if whole >= used {
            return Extent { whole, rest: Rest::Nothing, newest };
        }
        match batch(bytes, whole) {
            // A batch's number is not under its sum, but numbers only grow.
            Ok(Batch { number, .. }) if newest.is_some_and(|newest| number <= newest) => {
                return Extent { whole, rest: Rest::Batches, newest };
            }
            Ok(Batch { number, end }) => (whole, newest) = (end, Some(number)),
            Err(wrong) => break wrong,
        }
    };
    let later = (whole + 1..used).any(|start| bytes[start] == tag::START && batch(bytes, start).is_ok());
    let rest = match wrong {
        _ if later => Rest::Batches,
        Wrong::Short => Rest::Begun,
        Wrong::Other => Rest::Rubbish,
    };
    Extent { whole, rest, newest }
}

/// The log files of a database, oldest first.
pub(crate) fn files(database: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !database.exists() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(database)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            files.push(path);
        }
    }
    files.sort_by_key(|path| number(path));
    Ok(files)
}

/// Log files are numbered in the order they were begun.
pub(crate) fn number(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.parse().ok()
}

/// Reads a file without the space allocated ahead, which is most of a new one.
pub(crate) fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut bytes, mut used, mut block) = (Vec::new(), 0, vec![0; 1 << 20]);
    loop {
        let count = file.read(&mut block)?;
        if count == 0 {
            bytes.truncate(used);
            return Ok(bytes);
        }
        bytes.extend_from_slice(&block[..count]);
        if let Some(last) = block[..count].iter().rposition(|byte| *byte != 0) {
            used = bytes.len() - count + last + 1;
        }
    }
}

/// Writes a file that is on disk when this returns.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(path)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytes)?;
    file.sync_all()
}

pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log with some batches, as the engine writes it.
    fn log() -> (Vec<u8>, Vec<usize>) {
        let folder = tempfile::TempDir::new().unwrap();
        let database = fjall::Database::builder(folder.path()).open().unwrap();
        let table = database.keyspace("table", fjall::KeyspaceCreateOptions::default).unwrap();
        let file = files(folder.path()).unwrap().remove(0);
        let mut ends = Vec::new();
        for n in 0..5_u32 {
            let mut batch = database.batch().durability(Some(fjall::PersistMode::SyncAll));
            for item in 0..=n {
                // One is large enough to be compressed, if the engine did that.
                batch.insert(&table, format!("key {item}"), "value ".repeat(if n == 3 { 2000 } else { 3 }));
            }
            batch.remove(&table, "key 0");
            batch.commit().unwrap();
            ends.push(read(&file).unwrap().len());
        }
        (read(&file).unwrap(), ends)
    }

    #[test]
    fn a_log_is_read_to_its_end() {
        let (mut bytes, ends) = log();
        assert_eq!(extent(&bytes).whole, *ends.last().unwrap());
        bytes.extend([0; 5000]);
        let found = extent(&bytes);
        assert_eq!((found.whole, found.rest), (*ends.last().unwrap(), Rest::Nothing));
        assert_eq!(extent(&[]).rest, Rest::Nothing);
    }

    #[test]
    fn a_batch_that_was_begun_is_told_from_damage() {
        let (bytes, ends) = log();
        let (last, end) = (ends[3], ends[4]);
        for cut in last + 1..end {
            let mut torn = bytes[..cut].to_vec();
            assert_eq!((extent(&torn).whole, extent(&torn).rest), (last, Rest::Begun), "cut at {cut}");
            torn.resize(end + 100, 0);
            let found = extent(&torn);
            assert_eq!(found.whole, last);
            assert!(matches!(found.rest, Rest::Begun | Rest::Rubbish), "cut at {cut}: {found:?}");
        }
    }

    #[test]
    fn a_flipped_bit_before_the_last_batch_leaves_batches_behind_it() {
        let (bytes, ends) = log();
        for at in (0..ends[3]).step_by(7) {
            for bit in [0, 4, 7] {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                let found = extent(&flipped);
                assert_eq!(found.rest, Rest::Batches, "byte {at} bit {bit}: {found:?}");
            }
        }
    }
}
