//! The data folder: whose it is, which format it has, and whether it was closed as it should be.

use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The newest format of the folder. The first had a hash chain where there is a Merkle log now.
pub const FORMAT: u32 = 2;

/// Why a data folder cannot be used. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the data folder {} is in use by {holder}; wait until it ends, or choose another folder with --data", .path.display())]
    InUse { path: PathBuf, holder: Holder },
    #[error("the data folder {} has format {found}, this program knows up to {FORMAT}; use a newer version of trellis", .path.display())]
    NewerFormat { path: PathBuf, found: u32 },
    #[error("cannot use the data folder {}: {reason}; free some space there, or choose a folder you can write to with --data", .path.display())]
    Unusable {
        path: PathBuf,
        reason: String,
        /// It could be read, only not written.
        readable: bool,
    },
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

/// How whoever had the folder before has left it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Left {
    /// Without a word: it may have died.
    #[default]
    Unknown,
    /// With everything on disk.
    Closed,
    /// The same, and nothing up to this batch of the engine's log is missing in its tables.
    Shed { last: u64 },
}

/// A folder that this process owns until it is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    lock: File,
    pub(crate) left: Left,
    pub(crate) format: u32,
}

impl Folder {
    /// Creates the folder if needed, takes its lock and checks its format.
    pub(crate) fn take(path: &Path, holder: &Holder) -> Result<Self, OpenError> {
        make_private(path).map_err(|error| unusable(path, error))?;
        let (lock, left) = take_lock(path, holder)?;
        let format = check_format(path)?;
        Ok(Self { path: path.into(), lock, left, format })
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
    pub(crate) fn close(&mut self, left: Left) {
        if let Err(error) = write_lock(&mut self.lock, &Content { holder: None, left }) {
            tracing::debug!(%error, "the data folder is closed without a word");
        }
    }
}

pub(crate) fn unusable(path: &Path, error: std::io::Error) -> OpenError {
    let readable = matches!(
        error.kind(),
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied | ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    );
    OpenError::Unusable { path: path.into(), reason: error.to_string(), readable }
}

/// What the lock file says.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    #[serde(flatten)]
    holder: Option<Holder>,
    #[serde(default)]
    left: Left,
}

fn write_lock(lock: &mut File, content: &Content) -> std::io::Result<()> {
    let text = serde_json::to_vec(content).unwrap_or_default();
    lock.set_len(0)?;
    lock.seek(SeekFrom::Start(0))?;
    lock.write_all(&text)?;
    lock.flush()
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

fn take_lock(path: &Path, holder: &Holder) -> Result<(File, Left), OpenError> {
    let unusable = |error: std::io::Error| unusable(path, error);
    let file = path.join("lock");
    let mut lock =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&file).map_err(unusable)?;
    let written = || std::fs::read(&file).ok().and_then(|bytes| serde_json::from_slice::<Content>(&bytes).ok());
    match lock.try_lock() {
        Ok(()) => {}
        Err(std::fs::TryLockError::WouldBlock) => {
            let unknown = || Holder { pid: 0, command: "another process".to_owned(), url: None };
            let holder = written().and_then(|content| content.holder).unwrap_or_else(unknown);
            return Err(OpenError::InUse { path: path.into(), holder });
        }
        Err(std::fs::TryLockError::Error(error)) => return Err(unusable(error)),
    }
    let left = written().map(|content| content.left).unwrap_or_default();
    write_lock(&mut lock, &Content { holder: Some(holder.clone()), left: Left::Unknown }).map_err(unusable)?;
    Ok((lock, left))
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
