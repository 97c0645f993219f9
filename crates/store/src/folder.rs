//! The data folder: whose it is, which format it has, and how far it was known to be good.

use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use trellis_domain::Hash;

/// The newest format of the folder.
pub const FORMAT: u32 = 1;

/// Why a data folder cannot be used. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the data folder {} is in use by {holder}; wait until it ends, or choose another folder with --data", .path.display())]
    InUse { path: PathBuf, holder: Holder },
    #[error("the data folder {} has format {found}, this program knows up to {FORMAT}; use a newer version of trellis", .path.display())]
    NewerFormat { path: PathBuf, found: u32 },
    #[error("cannot use the data folder {}: {reason}; free some space there, or choose a folder you can write to with --data", .path.display())]
    Unusable { path: PathBuf, reason: String },
    #[error(
        "the data folder {} is damaged: {reason}; nothing was changed{}; restore the folder from a backup, or start anew with --data",
        .path.display(), .kept.as_ref().map(|kept| format!(", and the log as it was found is kept in {}", kept.display())).unwrap_or_default()
    )]
    Damaged { path: PathBuf, reason: String, kept: Option<PathBuf> },
}

/// Who holds the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub command: String,
    /// Where it can be talked to, if it serves.
    #[serde(default)]
    pub url: Option<String>,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` (process {})", self.command, self.pid)?;
        self.url.as_ref().map_or(Ok(()), |url| write!(f, " at {url}"))
    }
}

/// A folder that this process owns until it is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Creates the folder if needed, takes its lock and checks its format.
    pub(crate) fn take(path: &Path, holder: &Holder) -> Result<Self, OpenError> {
        let unusable = |error: std::io::Error| OpenError::Unusable { path: path.into(), reason: error.to_string() };
        create_private(path).map_err(unusable)?;
        let lock = take_lock(path, holder)?;
        check_format(path)?;
        Ok(Self { path: path.into(), _lock: lock })
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    pub(crate) fn view(&self) -> PathBuf {
        self.path.join("view")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn damaged(&self, reason: impl Into<String>, kept: Option<PathBuf>) -> OpenError {
        OpenError::Damaged { path: self.path.clone(), reason: reason.into(), kept }
    }

    pub(crate) fn unusable(&self, error: impl std::fmt::Display) -> OpenError {
        OpenError::Unusable { path: self.path.clone(), reason: error.to_string() }
    }
}

/// Questions and answers are nobody else's business.
fn create_private(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

fn take_lock(path: &Path, holder: &Holder) -> Result<File, OpenError> {
    let unusable = |error: std::io::Error| OpenError::Unusable { path: path.into(), reason: error.to_string() };
    let file = path.join("lock");
    let mut lock =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&file).map_err(unusable)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => {
            let unknown = || Holder { pid: 0, command: "another process".to_owned(), url: None };
            let written = std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
            return Err(OpenError::InUse { path: path.into(), holder: written.unwrap_or_else(unknown) });
        }
        Err(std::fs::TryLockError::Error(error)) => return Err(unusable(error)),
    }
    let text = serde_json::to_vec(holder).unwrap_or_default();
    lock.set_len(0).and_then(|()| lock.write_all(&text)).and_then(|()| lock.flush()).map_err(unusable)?;
    Ok(lock)
}

fn check_format(path: &Path) -> Result<(), OpenError> {
    let unusable = |error: std::io::Error| OpenError::Unusable { path: path.into(), reason: error.to_string() };
    let file = path.join("format");
    match std::fs::read_to_string(&file) {
        // An empty file was created by a process that died before it could write.
        Ok(text) if !text.trim().is_empty() => match text.trim().parse::<u32>() {
            Ok(found) if found > FORMAT => Err(OpenError::NewerFormat { path: path.into(), found }),
            Ok(_) => Ok(()),
            Err(_) => {
                let reason = format!("its format file says {:?}", text.trim());
                Err(OpenError::Damaged { path: path.into(), reason, kept: None })
            }
        },
        Err(error) if error.kind() != ErrorKind::NotFound => Err(unusable(error)),
        Ok(_) | Err(_) => {
            let mut file = File::create(&file).map_err(unusable)?;
            file.write_all(format!("{FORMAT}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(unusable)
        }
    }
}

/// How far the journal is known to have come: number and chain hash of the newest durable commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) number: u64,
    pub(crate) chain: Hash,
}

impl Mark {
    pub(crate) const START: Self = Self { number: 0, chain: Hash::ZERO };
}

/// The high-water mark beside the journal. It is written after each flush, never before, so it can lag
/// behind after a power cut but never claim what is not there.
///
/// Two slots are written in turn: a torn write leaves the other one.
#[derive(Debug)]
pub(crate) struct HighWater {
    file: File,
    writes: u64,
}

impl HighWater {
    const SLOT: usize = 72;
    /// The operating system writes it out by itself; this often it is made sure.
    const SYNC_EVERY: u64 = 1000;

    /// Opens the file and reads the mark, if there is one.
    pub(crate) fn open(folder: &Folder) -> std::io::Result<(Self, Option<Mark>)> {
        let path = folder.path().join("high-water");
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let mark = bytes.chunks(Self::SLOT).filter_map(read_slot).max_by_key(|mark| mark.number);
        Ok((Self { file, writes: mark.map_or(0, |mark| mark.number) }, mark))
    }

    pub(crate) fn write(&mut self, mark: Mark) -> std::io::Result<()> {
        self.writes += 1;
        let mut slot = Vec::with_capacity(Self::SLOT);
        slot.extend_from_slice(&mark.number.to_be_bytes());
        slot.extend_from_slice(mark.chain.as_bytes());
        slot.extend_from_slice(Hash::of(&slot).as_bytes());
        self.file.seek(SeekFrom::Start((self.writes % 2) * Self::SLOT as u64))?;
        self.file.write_all(&slot)?;
        if self.writes.is_multiple_of(Self::SYNC_EVERY) { self.sync() } else { Ok(()) }
    }

    pub(crate) fn sync(&self) -> std::io::Result<()> {
        self.file.sync_data()
    }
}

fn read_slot(bytes: &[u8]) -> Option<Mark> {
    let (content, check) = bytes.split_at_checked(40)?;
    if check != Hash::of(content).as_bytes() {
        return None;
    }
    let (number, chain) = content.split_at(8);
    Some(Mark { number: u64::from_be_bytes(number.try_into().ok()?), chain: Hash::from_bytes(chain.try_into().ok()?) })
}
