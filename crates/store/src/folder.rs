//! The data folder: whose it is, which format it has, and whether it was closed as it should be.

use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The newest format of the folder. The first had a hash chain where there is a Merkle log now.
pub const FORMAT: u32 = 2;

/// Why a data folder cannot be used. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the data folder {} is in use by {holder}; wait until it ends, let `trellis serve` have the folder, so that several can ask at a time, or choose another one with --data", .path.display())]
    InUse { path: PathBuf, holder: Holder },
    #[error("the data folder {} has format {found}, this program knows up to {FORMAT}; use a newer version of trellis", .path.display())]
    NewerFormat { path: PathBuf, found: u32 },
    #[error("cannot use the data folder {}: {reason}; {}, or choose a folder you can write to with --data", .path.display(), mend(*.kind))]
    Unusable { path: PathBuf, reason: String, kind: ErrorKind },
    #[error(
        "the data folder {} cannot be written ({reason}), so that its logs have to be copied to be read, and there is no \
         room for them: {}; set TMPDIR to a folder with {need_mb} MB free", .path.display(), .tried.join(", ")
    )]
    NoRoom {
        path: PathBuf,
        reason: String,
        /// Where, and what was wrong there.
        tried: Vec<String>,
        need_mb: u64,
    },
    #[error(
        "the data folder {} is damaged: {reason}; nothing was changed{}; restore the folder from a backup, or start anew with --data",
        .path.display(), .kept.as_ref().map(|kept| format!(", and the log as it was found is kept in {}", kept.display())).unwrap_or_default()
    )]
    Damaged { path: PathBuf, reason: String, kept: Option<PathBuf> },
}

impl OpenError {
    /// Whether it only says that the folder cannot be written; it may well be read then.
    pub(crate) fn is_unwritable(&self) -> bool {
        matches!(self, Self::Unusable { kind, .. } if is_unwritable(*kind))
    }
}

fn is_unwritable(kind: ErrorKind) -> bool {
    is_full(kind) || matches!(kind, ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied)
}

fn is_full(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

fn mend(kind: ErrorKind) -> &'static str {
    if is_full(kind) {
        "free some space there"
    } else if kind == ErrorKind::ReadOnlyFilesystem {
        "make its disk writable"
    } else if kind == ErrorKind::PermissionDenied {
        "change its permissions"
    } else {
        "see to it"
    }
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

/// How whoever had the folder before has left it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LastExit {
    /// Without a word: it may have died.
    #[default]
    Unknown,
    /// With everything on disk.
    Closed,
    /// The same, and nothing up to this batch of the engine's log is missing in its tables, which had these numbers.
    Shed { last: u64, tables: [Option<u64>; 6] },
}

impl LastExit {
    /// The last batch of a log that is not needed any more.
    pub(crate) const fn shed_at(self) -> Option<u64> {
        match self {
            Self::Shed { last, .. } => Some(last),
            Self::Unknown | Self::Closed => None,
        }
    }
}

/// A folder that this process owns until it is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    lock: File,
    /// What the lock file said before.
    found: Vec<u8>,
    pub(crate) left: LastExit,
    pub(crate) format: u32,
}

impl Folder {
    /// Creates the folder if needed, takes its lock and checks its format.
    pub(crate) fn take(path: &Path, holder: &Holder) -> Result<Self, OpenError> {
        make_private(path).map_err(|error| unusable(path, error))?;
        let (lock, found) = take_lock(path, holder)?;
        let left = read_lock(&found).left;
        let mut folder = Self { path: path.into(), lock, found, left, format: FORMAT };
        match check_format(path) {
            Ok(format) => Ok(Self { format, ..folder }),
            Err(error) => {
                folder.give_back(&error);
                Err(error)
            }
        }
    }

    /// Leaves the lock as it was found, if the folder could not be written: nothing has happened then.
    pub(crate) fn give_back(&mut self, error: &OpenError) {
        if error.is_unwritable()
            && let Err(error) = overwrite(&mut self.lock, &self.found)
        {
            tracing::debug!(%error, "the lock file is not as it was found");
        }
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join("journal")
    }

    pub(crate) fn view(&self) -> PathBuf {
        self.path.join("view")
    }

    pub(crate) fn knowledge(&self) -> PathBuf {
        self.path.join("knowledge")
    }

    pub(crate) fn tables(&self) -> PathBuf {
        self.path.join("tables")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn damaged(&self, reason: impl Into<String>, kept: Option<PathBuf>) -> OpenError {
        OpenError::Damaged { path: self.path.clone(), reason: reason.into(), kept }
    }

    pub(crate) fn unusable(&self, error: std::io::Error) -> OpenError {
        unusable(&self.path, error)
    }

    /// The folder has the newest format from now on.
    pub(crate) fn set_format(&mut self) -> Result<(), OpenError> {
        let write = crate::engine_log::write(&self.path.join("format"), format!("{FORMAT}\n").as_bytes());
        write.map_err(|error| self.unusable(error))?;
        self.format = FORMAT;
        Ok(())
    }

    /// Leaves word that everything is on disk. Without it, whoever comes next looks twice.
    pub(crate) fn close(&mut self, left: LastExit) {
        if let Err(error) = write_lock(&mut self.lock, &Content { holder: None, left }) {
            tracing::debug!(%error, "the data folder is closed without a word");
        }
    }
}

pub(crate) fn unusable(path: &Path, error: std::io::Error) -> OpenError {
    OpenError::Unusable { path: path.into(), reason: error.to_string(), kind: error.kind() }
}

/// Somebody else has it.
pub(crate) fn in_use(path: &Path) -> OpenError {
    let unknown = || Holder { pid: 0, command: "another process".to_owned(), url: None };
    let file = path.join("lock");
    // Who only reads cannot write its name: what stands there is somebody else's.
    let only_read = File::open(&file).is_ok_and(|lock| lock.try_lock_shared().is_ok());
    let written = if only_read { Vec::new() } else { std::fs::read(file).unwrap_or_default() };
    OpenError::InUse { path: path.into(), holder: read_lock(&written).holder.unwrap_or_else(unknown) }
}

/// What the lock file says.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    #[serde(flatten)]
    holder: Option<Holder>,
    #[serde(default)]
    left: LastExit,
}

fn read_lock(bytes: &[u8]) -> Content {
    serde_json::from_slice(bytes).unwrap_or_default()
}

fn write_lock(lock: &mut File, content: &Content) -> std::io::Result<()> {
    overwrite(lock, &serde_json::to_vec(content).unwrap_or_default())
}

/// Cut only when the new bytes are there: on a full disk an emptied file may not be filled again.
fn overwrite(file: &mut File, bytes: &[u8]) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

/// Questions and answers are nobody else's business, also in a folder that was there before.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let open = std::fs::metadata(path)?.permissions().mode() & 0o077 != 0;
        if open && let Err(error) = std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)) {
            tracing::warn!(%error, folder = %path.display(), "others may be able to read the data folder");
        }
    }
    Ok(())
}

/// Takes the lock, and gives what the file said before.
fn take_lock(path: &Path, holder: &Holder) -> Result<(File, Vec<u8>), OpenError> {
    let unusable = |error: std::io::Error| unusable(path, error);
    let file = path.join("lock");
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&file);
    // Whoever has it may have another way to its disk than we have.
    let held = || hold(path).err().filter(|error| matches!(error, OpenError::InUse { .. }));
    let mut lock = opened.map_err(|error| held().unwrap_or_else(|| unusable(error)))?;
    match unless_named(&file, || lock.try_lock()) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(in_use(path)),
        Err(TryLockError::Error(error)) => return Err(unusable(error)),
    }
    let found = std::fs::read(&file).unwrap_or_default();
    write_lock(&mut lock, &Content { holder: Some(holder.clone()), left: LastExit::Unknown }).map_err(unusable)?;
    Ok((lock, found))
}

/// Tries to lock. A lock that names nobody is about to be let go: its holder has closed the folder, or only reads, or is a
/// process that is just being started and has inherited it. It is waited for, for a second.
fn unless_named(lock: &Path, mut attempt: impl FnMut() -> Result<(), TryLockError>) -> Result<(), TryLockError> {
    const TRIES: u32 = 100;
    const PAUSE: Duration = Duration::from_millis(10);
    let names_nobody = || std::fs::read(lock).is_ok_and(|written| read_lock(&written).holder.is_none());
    for _ in 0..TRIES {
        match attempt() {
            Err(TryLockError::WouldBlock) if names_nobody() => std::thread::sleep(PAUSE),
            settled => return settled,
        }
    }
    attempt()
}

/// Keeps writers away, among whom readers may be that could write; other readers like this one are welcome.
pub(crate) fn hold(path: &Path) -> Result<Option<File>, OpenError> {
    let lock = path.join("lock");
    let file = match File::open(&lock) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, error)),
    };
    match unless_named(&lock, || file.try_lock_shared()) {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(in_use(path)),
        // Where nothing can be locked nobody has locked it.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

fn check_format(path: &Path) -> Result<u32, OpenError> {
    let unusable = |error: std::io::Error| unusable(path, error);
    let damaged = |reason: String| OpenError::Damaged { path: path.into(), reason, kept: None };
    let file = path.join("format");
    let mut text = Vec::new();
    match File::open(&file).and_then(|file| file.take(64).read_to_end(&mut text)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(unusable(error)),
        Ok(_) | Err(_) => {}
    }
    let text = String::from_utf8_lossy(&text);
    match text.trim().parse::<u32>() {
        Ok(found) if found > FORMAT => Err(OpenError::NewerFormat { path: path.into(), found }),
        Ok(found) if found > 0 => Ok(found),
        Ok(_) | Err(_) if !text.trim().is_empty() => Err(damaged(format!("its format file says {:?}", text.trim()))),
        Ok(_) | Err(_) if path.join("journal").exists() => Err(damaged("its file `format` is missing".to_owned())),
        Ok(_) | Err(_) => {
            crate::engine_log::write(&file, format!("{FORMAT}\n").as_bytes()).map_err(unusable)?;
            Ok(FORMAT)
        }
    }
}
