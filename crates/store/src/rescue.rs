//! The engine truncates its log behind a damaged spot when it opens it, without a word. So the log is
//! copied first, and the copy is kept when the check afterwards finds that something is missing.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A copy of the log files as they were found.
#[derive(Debug)]
pub(crate) struct Rescue {
    path: PathBuf,
}

impl Rescue {
    /// Copies the log files of a database, if there are any.
    pub(crate) fn copy(folder: &Path, database: &Path) -> std::io::Result<Self> {
        let rescue = Self { path: folder.join("log-as-found") };
        if rescue.path.exists() {
            // An earlier process died while it checked, perhaps with the log cut short: begin where it began.
            rescue.put_back(database)?;
            return Ok(rescue);
        }
        let scratch = rescue.scratch();
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch)?;
        }
        std::fs::create_dir_all(&scratch)?;
        for file in log_files(database)? {
            if let Some(name) = file.file_name() {
                copy_sparse(&file, &scratch.join(name))?;
            }
        }
        sync_folder(&scratch)?;
        rescue.rename_durably(&scratch, &rescue.path)?;
        Ok(rescue)
    }

    /// A copy under this name is not complete, or not needed any more.
    fn scratch(&self) -> PathBuf {
        self.path.with_file_name("log-as-found.part")
    }

    /// A copy is there or not, also after a power cut: half of one must never be put back.
    fn rename_durably(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        std::fs::rename(from, to)?;
        self.path.parent().map_or(Ok(()), sync_folder)
    }

    /// The longest beginning of the newest log that can be opened, put in place.
    ///
    /// The last batch may be torn inside: complete by its marks, wrong by its checksum. The engine then refuses the
    /// whole log. A shorter beginning leaves that batch incomplete, which it knows how to drop; so there is a
    /// longest good beginning, found by halving. Whether anything acknowledged was in the rest, the caller checks.
    pub(crate) fn cut_torn_tail(&self, database: &Path, opens: impl Fn() -> bool) -> std::io::Result<bool> {
        let Some(newest) = log_files(&self.path)?.into_iter().max_by_key(|path| log_number(path)) else {
            return Ok(false);
        };
        let used = std::fs::read(&newest)?.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let (mut good, mut bad) = (0, used as u64);
        let try_length = |length: u64| -> std::io::Result<bool> {
            self.put_back(database)?;
            let log = database.join(newest.file_name().unwrap_or_default());
            File::options().write(true).open(log)?.set_len(length)?;
            Ok(opens())
        };
        while good + 1 < bad {
            let middle = good.midpoint(bad);
            if try_length(middle)? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        try_length(good)
    }

    /// All is well: the copy is not needed.
    pub(crate) fn discard(self) -> std::io::Result<()> {
        let scratch = self.scratch();
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch)?;
        }
        self.rename_durably(&self.path, &scratch)?;
        std::fs::remove_dir_all(scratch)
    }

    /// Something is missing: puts the log back as it was found and keeps the copy under a name of its own.
    pub(crate) fn keep(self, database: &Path) -> std::io::Result<PathBuf> {
        self.put_back(database)?;
        self.set_aside()
    }

    /// Keeps the copy under a name of its own, unless the same was kept before.
    pub(crate) fn set_aside(self) -> std::io::Result<PathBuf> {
        for kept in kept_before(&self.path)? {
            if same_files(&self.path, &kept)? {
                self.discard()?;
                return Ok(kept);
            }
        }
        let name = |n: u32| self.path.with_file_name(format!("damaged-log-{n}"));
        let kept = (1..u32::MAX).map(name).find(|path| !path.exists()).unwrap_or_else(|| self.path.clone());
        self.rename_durably(&self.path, &kept)?;
        Ok(kept)
    }
}

impl Rescue {
    fn put_back(&self, database: &Path) -> std::io::Result<()> {
        for stale in log_files(database)? {
            std::fs::remove_file(stale)?;
        }
        for file in log_files(&self.path)? {
            if let Some(name) = file.file_name() {
                copy_sparse(&file, &database.join(name))?;
            }
        }
        Ok(())
    }
}

pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

/// The copies of earlier damage.
fn kept_before(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let Some(folder) = path.parent() else { return Ok(Vec::new()) };
    let entries = std::fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let kept = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with("damaged-log-");
    Ok(entries.iter().filter(|entry| kept(entry)).map(std::fs::DirEntry::path).collect())
}

fn same_files(one: &Path, two: &Path) -> std::io::Result<bool> {
    let (files, others) = (log_files(one)?, log_files(two)?);
    if files.len() != others.len() {
        return Ok(false);
    }
    for file in files {
        let other = two.join(file.file_name().unwrap_or_default());
        if !other.exists() || std::fs::read(&file)? != std::fs::read(other)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Log files are numbered in the order they were begun.
fn log_number(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.parse().ok()
}

fn log_files(database: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !database.exists() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(database)?.collect::<Result<Vec<_>, _>>()?;
    let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "jnl");
    Ok(entries.into_iter().map(|entry| entry.path()).filter(is_log).collect())
}

/// Log files are allocated ahead; the empty part is not written.
fn copy_sparse(from: &Path, to: &Path) -> std::io::Result<()> {
    let (mut source, mut target) = (File::open(from)?, File::create(to)?);
    let length = source.metadata()?.len();
    let mut block = vec![0; 1 << 20];
    loop {
        let read = source.read(&mut block)?;
        if read == 0 {
            break;
        }
        if block[..read].iter().all(|byte| *byte == 0) {
            target.seek(SeekFrom::Current(i64::try_from(read).unwrap_or(0)))?;
        } else {
            target.write_all(&block[..read])?;
        }
    }
    target.set_len(length)?;
    target.sync_all()
}
