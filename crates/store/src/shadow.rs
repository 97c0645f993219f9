//! Reading a folder that cannot be written: its disk is read-only or full, or it is somebody else's.
//!
//! The engine writes as it opens, and a folder that a process left by dying has to be put in order first. All of that happens
//! in a shadow: a private folder elsewhere with copies of whatever is written again, and links to the engine's tables, which
//! it only makes, reads and deletes; with a link goes nothing but the link. The shadow goes with whoever reads.

use crate::engine_log;
use crate::folder::OpenError;
use crate::{head, key, upgrade};
use std::fs::File;
use std::io::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// How shadows are called, so that those of processes that were killed are found.
const NAME: &str = "trellis-reading-";

/// What is copied. Everything else in a folder is nobody's, or was being written and is made anew.
const FILES: [&str; 5] = ["format", "lock", head::FILE, key::FILE, upgrade::MARK_FILE];
const FOLDERS: [&str; 4] = ["journal", "view", "knowledge", "log-as-found"];
/// What the engine writes once.
const WRITTEN_ONCE: [&str; 2] = ["tables", "blobs"];
const KEPT: &str = "damaged-log-";

const MB: u64 = 1 << 20;
/// With less room than this, besides that for a copy of the logs, a disk counts as full.
const ROOM: u64 = 16 * MB;
/// What is written to see whether it can be.
const TRIAL: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Shadow {
    original: PathBuf,
    /// Why the original is not opened itself.
    pub(crate) reason: String,
    place: TempDir,
    /// Locked for as long as somebody reads here.
    _claim: File,
    /// The original's lock: nobody writes there meanwhile.
    _lock: Option<Arc<File>>,
}

impl Shadow {
    pub(crate) fn make(
        original: &Path,
        reason: &str,
        place: &Path,
        lock: Option<Arc<File>>,
    ) -> Result<Self, ShadowError> {
        remove_abandoned(place);
        let (place, claim) = claimed_folder(place).map_err(ShadowError::Shadow)?;
        // Links must lead there from anywhere.
        let from = std::path::absolute(original).map_err(ShadowError::Original)?;
        copy_folder(&from, place.path())?;
        Ok(Self { original: original.into(), reason: reason.to_owned(), place, _claim: claim, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    pub(crate) fn original(&self) -> &Path {
        &self.original
    }

    /// What was said of the shadow, said of the original.
    pub(crate) fn about_original(&self, error: OpenError) -> OpenError {
        let path = self.original.clone();
        match error {
            OpenError::Damaged { reason, .. } => OpenError::Damaged { path, reason: self.named(&reason), kept: None },
            OpenError::Unusable { reason, kind, .. } => OpenError::Unusable { path, reason: self.named(&reason), kind },
            OpenError::NewerFormat { found, .. } => OpenError::NewerFormat { path, found },
            OpenError::InUse { holder, .. } => OpenError::InUse { path, holder },
            OpenError::NoRoom { reason, tried, need_mb, .. } => OpenError::NoRoom { path, reason, tried, need_mb },
        }
    }

    /// The same text with the names of the original.
    pub(crate) fn named(&self, text: &str) -> String {
        text.replace(&self.path().display().to_string(), &self.original.display().to_string())
    }

    /// Where a kept log of the shadow is in the original. One that was only just found damaged is still in its place there.
    pub(crate) fn kept_in_original(&self, kept: &Path) -> PathBuf {
        let there = self.original.join(kept.file_name().unwrap_or_default());
        if there.exists() {
            return there;
        }
        let log = engine_log::files(kept).ok().and_then(|files| files.into_iter().next());
        log.map_or(there, |log| self.original.join("journal").join(log.file_name().unwrap_or_default()))
    }
}

pub(crate) fn reason_of(error: OpenError) -> String {
    if let OpenError::Unusable { reason, .. } = error { reason } else { error.to_string() }
}

/// Why the folder had better not be opened for writing: what is begun on a full disk is left half done. A disk tells how much
/// room there is, but not how much of it is ours.
pub(crate) fn obstacle(folder: &Path) -> Option<Error> {
    // Of its own name, since others may look as well.
    let trial = folder.join(format!("trial-{}", std::process::id()));
    let tried = std::fs::write(&trial, vec![1; TRIAL]);
    let removed = std::fs::remove_file(&trial);
    if let Err(error) = tried.and(removed) {
        return Some(error);
    }
    #[cfg(unix)]
    if let Ok(disk) = rustix::fs::statvfs(folder) {
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // Some do not tell their size.
        if disk.f_blocks > 0 && free < logs_size(folder) + ROOM {
            return Some(rustix::io::Errno::NOSPC.into());
        }
    }
    None
}

/// How much room a shadow needs: the logs are copied, and the newest is written anew.
pub(crate) fn need_mb(folder: &Path) -> u64 {
    (2 * logs_size(folder) + ROOM) / MB
}

/// What the engine's logs take on disk, without what is only set aside for them.
fn logs_size(folder: &Path) -> u64 {
    let taken = |path: &PathBuf| {
        let file = std::fs::metadata(path).ok()?;
        #[cfg(unix)]
        return Some(std::os::unix::fs::MetadataExt::blocks(&file) * 512);
        #[cfg(not(unix))]
        return Some(file.len());
    };
    engine_log::files(&folder.join("journal")).unwrap_or_default().iter().filter_map(taken).sum()
}

/// Where a shadow may lie, the best place first.
pub(crate) fn places() -> Vec<PathBuf> {
    let temporary = std::env::temp_dir();
    let memory = PathBuf::from("/dev/shm");
    let mut places = vec![std::path::absolute(&temporary).unwrap_or(temporary)];
    if memory.is_dir() && !places.contains(&memory) {
        places.push(memory);
    }
    places
}

/// Shadows of processes that were killed have nobody who claims them.
fn remove_abandoned(place: &Path) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME)) {
        let folder = entry.file_type().is_ok_and(|kind| kind.is_dir()).then(|| File::open(entry.path()));
        if let Some(Ok(claim)) = folder
            && claim.try_lock().is_ok()
            && let Err(error) = std::fs::remove_dir_all(entry.path())
        {
            tracing::debug!(%error, "an abandoned copy of a data folder's logs cannot be removed");
        }
    }
}

/// A folder that nobody else can read, and the lock on it that says that somebody is there.
fn claimed_folder(place: &Path) -> std::io::Result<(TempDir, File)> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(NAME);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    loop {
        let folder = builder.tempdir_in(place)?;
        let claim = File::open(folder.path())?;
        claim.lock()?;
        // Somebody may have taken it for abandoned before it was claimed.
        if folder.path().exists() {
            return Ok((folder, claim));
        }
    }
}

/// Which side could not be used.
#[derive(Debug)]
pub(crate) enum ShadowError {
    Original(Error),
    Shadow(Error),
}

impl ShadowError {
    fn original(path: &Path) -> impl Fn(Error) -> Self {
        move |error| Self::Original(Error::new(error.kind(), format!("{}: {error}", path.display())))
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, ShadowError> {
    let list = || -> std::io::Result<Vec<_>> { std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect() };
    list().map_err(ShadowError::original(folder))
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), ShadowError> {
    for path in entries(from)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let target = to.join(&name);
        if FILES.contains(&name.as_str()) {
            copy_file(&path, &target)?;
        } else if FOLDERS.contains(&name.as_str()) {
            copy_tree(&path, &target)?;
        } else if name.starts_with(KEPT) {
            link(&path, &target)?;
        }
    }
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> Result<(), ShadowError> {
    std::fs::create_dir(to).map_err(ShadowError::Shadow)?;
    let once = from.file_name().is_some_and(|name| WRITTEN_ONCE.iter().any(|once| name == *once));
    for path in entries(from)? {
        let target = to.join(path.file_name().unwrap_or_default());
        if std::fs::metadata(&path).map_err(ShadowError::original(&path))?.is_dir() {
            copy_tree(&path, &target)?;
        } else if once {
            link(&path, &target)?;
        } else {
            copy_file(&path, &target)?;
        }
    }
    Ok(())
}

/// The bytes without those that are set aside at the end, and without the permissions: it may be forbidden to write there.
fn copy_file(from: &Path, to: &Path) -> Result<(), ShadowError> {
    let is_log = from.extension().is_some_and(|extension| extension == "jnl");
    let bytes = if is_log { engine_log::read(from) } else { std::fs::read(from) };
    std::fs::write(to, bytes.map_err(ShadowError::original(from))?).map_err(ShadowError::Shadow)
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> Result<(), ShadowError> {
    std::os::unix::fs::symlink(from, to).map_err(ShadowError::Shadow)
}

#[cfg(not(unix))]
fn link(from: &Path, to: &Path) -> Result<(), ShadowError> {
    if from.is_dir() { copy_tree(from, to) } else { copy_file(from, to) }
}

#[cfg(test)]
#[path = "shadow_tests.rs"]
mod tests;
