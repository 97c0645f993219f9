//! Notes in files, of the one process that has their folder.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trellis_domain::Scope;
use trellis_orchestrator::ports::{BoxFuture, JournalError, Note, Notes};

/// A folder of notes: a file for each, and one for its lines if it has any.
#[derive(Debug, Clone)]
pub struct FolderNotes(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Those that this process is at.
    held: Mutex<BTreeSet<String>>,
}

/// What is in a file.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    scope: Scope,
    text: String,
}

impl FolderNotes {
    pub fn open(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        Ok(Self(Arc::new(Folder { path: path.to_owned(), held: Mutex::default() })))
    }

    /// Files are waited for elsewhere.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> io::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, JournalError>> {
        let folder = Arc::clone(&self.0);
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || work(&folder)).await;
            let failed = |error: &dyn std::fmt::Display| JournalError::Unavailable(format!("a note: {error}"));
            done.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
        })
    }
}

impl Folder {
    fn path(&self, note: &Note) -> PathBuf {
        self.path.join(format!("{}.{}", note.name, note.kind))
    }

    fn lines_path(&self, note: &Note) -> PathBuf {
        self.path.join(format!("{}.lines", note.name))
    }

    fn is_held(&self, note: &Note) -> bool {
        self.held.lock().contains(&note.name)
    }

    /// Written whole or not at all. It is on disk when this returns, if that is wanted.
    fn write(&self, note: &Note, durably: bool) -> io::Result<()> {
        let path = self.path(note);
        let unfinished = path.with_extension("new");
        let mut file = File::create(&unfinished)?;
        file.write_all(&serde_json::to_vec(&Kept { scope: note.scope.clone(), text: note.text.clone() })?)?;
        if durably {
            file.sync_all()?;
        }
        std::fs::rename(&unfinished, path)?;
        if durably { File::open(&self.path)?.sync_all() } else { Ok(()) }
    }

    fn lines(&self, note: &Note) -> io::Result<Vec<String>> {
        let path = self.lines_path(note);
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            read => read?,
        };
        // A line that was cut off with the machine would spoil the next one.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < bytes.len() {
            File::options().write(true).open(path)?.set_len(u64::try_from(whole).unwrap_or(u64::MAX))?;
        }
        Ok(String::from_utf8_lossy(&bytes[..whole]).split_terminator('\n').map(str::to_owned).collect())
    }

    fn add(&self, note: &Note, line: &str) -> io::Result<()> {
        let mut file = File::options().create(true).append(true).open(self.lines_path(note))?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    fn remove(&self, note: &Note) -> io::Result<()> {
        for path in [self.lines_path(note), self.path(note)] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        self.held.lock().remove(&note.name);
        Ok(())
    }

    fn take_over(&self, kind: &str, scope: &Scope) -> io::Result<Vec<String>> {
        let mut taken = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let path = entry?.path();
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
            if path.extension().is_none_or(|extension| extension != kind) || self.held.lock().contains(name) {
                continue;
            }
            match serde_json::from_slice::<Kept>(&std::fs::read(&path)?) {
                Ok(kept) if kept.scope == *scope => {
                    self.held.lock().insert(name.to_owned());
                    taken.push(kept.text);
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(path = %path.display(), %error, "a note cannot be read"),
            }
        }
        Ok(taken)
    }
}

impl Notes for FolderNotes {
    fn begin<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<bool, JournalError>> {
        let note = note.clone();
        self.run(move |folder| {
            if folder.path(&note).exists() || !folder.held.lock().insert(note.name.clone()) {
                return Ok(false);
            }
            let written = folder.write(&note, true);
            if written.is_err() {
                folder.held.lock().remove(&note.name);
            }
            written.map(|()| true)
        })
    }

    fn update<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<bool, JournalError>> {
        let note = note.clone();
        self.run(move |folder| {
            let is_held = folder.is_held(&note);
            if is_held { folder.write(&note, false).map(|()| true) } else { Ok(false) }
        })
    }

    fn add<'a>(&'a self, note: &'a Note, line: &'a str) -> BoxFuture<'a, Result<bool, JournalError>> {
        let (note, line) = (note.clone(), line.to_owned());
        self.run(move |folder| {
            let is_held = folder.is_held(&note);
            if is_held { folder.add(&note, &line).map(|()| true) } else { Ok(false) }
        })
    }

    fn lines<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<Vec<String>, JournalError>> {
        let note = note.clone();
        self.run(move |folder| folder.lines(&note))
    }

    fn remove<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<(), JournalError>> {
        let note = note.clone();
        self.run(move |folder| folder.remove(&note))
    }

    fn let_go<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<(), JournalError>> {
        self.0.held.lock().remove(&note.name);
        Box::pin(std::future::ready(Ok(())))
    }

    fn leave(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.0.held.lock().clear();
        Box::pin(std::future::ready(Ok(())))
    }

    fn take_over<'a>(
        &'a self,
        kind: &'static str,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Vec<String>, JournalError>> {
        let scope = scope.clone();
        self.run(move |folder| folder.take_over(kind, &scope))
    }

    fn hold(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[tokio::test]
    async fn the_contract_is_kept() {
        trellis_orchestrator::contract::notes::suite(async || {
            // The folder goes with the machine's other temporary files.
            Arc::new(FolderNotes::open(&TempDir::new().unwrap().keep()).unwrap()) as Arc<dyn Notes>
        })
        .await;
    }

    #[tokio::test]
    async fn the_next_process_has_what_this_one_left() {
        let folder = TempDir::new().unwrap();
        let note =
            Note { name: "n".to_owned(), kind: "dialog", scope: Scope::default(), text: r#"{"a": 1}"#.to_owned() };
        let before = FolderNotes::open(folder.path()).unwrap();
        assert!(before.begin(&note).await.unwrap());
        assert!(before.add(&note, "one").await.unwrap());
        // The machine stopped in the middle of a line.
        std::fs::write(before.0.lines_path(&note), "one\ntw").unwrap();
        let after = FolderNotes::open(folder.path()).unwrap();
        assert_eq!(after.take_over("dialog", &note.scope).await.unwrap(), [note.text.as_str()]);
        assert_eq!(after.lines(&note).await.unwrap(), ["one"]);
        assert!(after.add(&note, "three").await.unwrap());
        assert_eq!(after.lines(&note).await.unwrap(), ["one", "three"]);
        after.remove(&note).await.unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
