//! The engine's files before it touches them: what is missing, what was being written when a process died, what is damaged.
//!
//! The engine deletes a table whose pointer is missing and cuts a log that it cannot read. So both are looked at first; a log
//! that ends in the middle of a batch is written anew without that batch, and the one that was found is kept until
//! everything was compared with the log's head.

use crate::engine_fault::EngineFault;
use crate::engine_log::{self, Extent, Rest, sync_folder};
use crate::folder::LastExit;
use crate::tree_files;
use std::path::{Path, PathBuf};

/// How many tables the journal has, the engine's own among them. The first format did without the last two at first.
const fn tables(format: u32) -> u32 {
    if format == 1 { 5 } else { 7 }
}

/// The newest log as it was found, while another one is in its place.
#[derive(Debug)]
pub(crate) struct FoundLog {
    folder: PathBuf,
    database: PathBuf,
    rest: Rest,
}

/// Looks at the files of a journal and makes its logs readable.
pub(crate) fn prepare(
    folder: &Path,
    database: &Path,
    format: u32,
    left: LastExit,
) -> Result<Option<FoundLog>, EngineFault> {
    put_back_unfinished(folder, database)?;
    complete(database, format)?;
    let files = engine_log::files(database)?;
    let numbers: Vec<_> = files.iter().map(|path| engine_log::number(path)).collect();
    if let Some(gap) = numbers.windows(2).find(|pair| pair[0].map(|number| number + 1) != pair[1]) {
        let missing = gap[0].map_or(0, |number| number + 1);
        return Err(EngineFault::Damaged(format!("the log file {missing}.jnl is missing")));
    }
    let Some((newest, sealed)) = files.split_last() else { return Ok(None) };
    for file in sealed {
        let Extent { whole, rest, .. } = engine_log::extent(&engine_log::read(file)?);
        if rest != Rest::Nothing {
            return Err(unreadable(file, whole));
        }
    }
    let bytes = engine_log::read(newest)?;
    let Extent { whole, rest, newest: last } = engine_log::extent(&bytes);
    match rest {
        Rest::Batches => Err(unreadable(newest, whole)),
        // Of a log that has grown since then, something may be nowhere else.
        Rest::Nothing if sealed.is_empty() && last.is_some() && left.shed_at() == last => {
            replace(folder, database, newest, &[], rest).map(Some)
        }
        Rest::Nothing if left != LastExit::Unknown => Ok(None),
        // Whoever had the folder may have died of a disk that did not take what it was given, and then what is read here
        // is not what is on the disk. Written anew and synced, it is.
        Rest::Nothing | Rest::Begun | Rest::Rubbish => {
            replace(folder, database, newest, &bytes[..whole], rest).map(Some)
        }
    }
}

/// That tables and files of large values are there is on disk, too: the engine does not sync every folder.
pub(crate) fn sync_tables(database: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(database.join("keyspaces"))? {
        let tree = entry?.path();
        for folder in [tree.join("tables"), tree.join("blobs")].iter().filter(|folder| folder.exists()) {
            sync_folder(folder)?;
        }
    }
    Ok(())
}

/// The last batch of a journal that has only one log.
pub(crate) fn last_batch(database: &Path) -> std::io::Result<Option<u64>> {
    let files = engine_log::files(database)?;
    let [only] = &files[..] else { return Ok(None) };
    Ok(engine_log::extent(&engine_log::read(only)?).newest)
}

/// Every table file of a journal against its checksum: what is wrong with which.
pub(crate) fn damages(database: &Path) -> Vec<String> {
    let trees = std::fs::read_dir(database.join("keyspaces")).into_iter().flatten().flatten();
    let mut trees: Vec<_> = trees.map(|entry| entry.path()).collect();
    trees.sort();
    let damages =
        |tree: &PathBuf| tree_files::damages(tree).unwrap_or_else(|error| vec![format!("{}: {error}", tree.display())]);
    trees.iter().flat_map(damages).collect()
}

fn unreadable(file: &Path, at: usize) -> EngineFault {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    EngineFault::Damaged(format!("the log file {name} cannot be read at byte {at}, and there is more behind it"))
}

/// A table without these would be deleted by the engine, or made anew. What is in them must not mislead it.
fn complete(database: &Path, format: u32) -> Result<(), EngineFault> {
    let mut needed = vec![database.join("version")];
    for table in 0..tables(format) {
        let path = database.join("keyspaces").join(table.to_string());
        needed.extend([path.join("current"), path.join("tables")]);
    }
    if let Some(missing) = needed.iter().find(|path| !path.exists()) {
        return Err(EngineFault::Damaged(format!("{} is missing", missing.display())));
    }
    let version = &needed[0];
    if std::fs::read(version)? != engine_log::MARK {
        return Err(EngineFault::Damaged(format!("{} is not what was written", version.display())));
    }
    for table in needed.iter().filter(|path| path.ends_with("tables")).filter_map(|path| path.parent()) {
        tree_files::openable(table)?;
    }
    let lock = database.join("lock");
    if !lock.exists() {
        // There is nothing in it.
        engine_log::write(&lock, &[])?;
    }
    Ok(())
}

fn as_found(folder: &Path) -> PathBuf {
    folder.join("log-as-found")
}

/// Puts a copy of the readable part in the place of the newest log.
fn replace(folder: &Path, database: &Path, newest: &Path, whole: &[u8], rest: Rest) -> Result<FoundLog, EngineFault> {
    let (name, kept) = (newest.file_name().unwrap_or_default(), as_found(folder));
    let fresh = folder.join("log-anew");
    let exchange = || -> std::io::Result<()> {
        engine_log::write(&fresh, whole)?;
        std::fs::create_dir_all(&kept)?;
        std::fs::rename(newest, kept.join(name))?;
        sync_folder(&kept)?;
        std::fs::rename(&fresh, newest)?;
        sync_folder(database)?;
        sync_folder(folder)
    };
    if let Err(error) = exchange() {
        // Where nothing can be written, at least nothing is left behind; the next one who opens the folder begins here, too.
        std::fs::remove_file(&fresh).unwrap_or_default();
        put_back_unfinished(folder, database).unwrap_or_default();
        return Err(error.into());
    }
    Ok(FoundLog { folder: folder.into(), database: database.into(), rest })
}

/// An earlier process died before it knew whether the log may be cut: begin where it began.
fn put_back_unfinished(folder: &Path, database: &Path) -> std::io::Result<()> {
    let kept = as_found(folder);
    if !kept.exists() {
        return Ok(());
    }
    for file in engine_log::files(&kept)? {
        let name = file.file_name().unwrap_or_default().to_owned();
        // Logs that were begun since then hold nothing that was acknowledged.
        std::fs::rename(&file, database.join(name))?;
    }
    sync_folder(database)?;
    std::fs::remove_dir_all(kept)
}

impl FoundLog {
    /// Nothing acknowledged was cut off. What was found is kept only if it is not what a process leaves that dies.
    pub(crate) fn settle(self) -> std::io::Result<Option<PathBuf>> {
        let kept = as_found(&self.folder);
        if self.rest != Rest::Rubbish {
            std::fs::remove_dir_all(kept)?;
            // It must not come back after a power cut, when there is more in the log that took its place.
            sync_folder(&self.folder)?;
            return Ok(None);
        }
        let name = |n: u32| self.folder.join(format!("damaged-log-{n}"));
        let free = (1..u32::MAX).map(name).find(|path| !path.exists()).unwrap_or_else(|| kept.clone());
        std::fs::rename(kept, &free)?;
        sync_folder(&self.folder)?;
        Ok(Some(free))
    }

    /// Something is missing: the log is put back as it was found.
    pub(crate) fn put_back(self) -> std::io::Result<()> {
        put_back_unfinished(&self.folder, &self.database)
    }
}

/// Logs that were kept because something in them could not be read.
pub(crate) fn kept_before(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let kept = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("damaged-log-");
    let mut kept: Vec<_> = entries.iter().filter(|entry| kept(entry)).map(std::fs::DirEntry::path).collect();
    kept.sort();
    Ok(kept)
}
