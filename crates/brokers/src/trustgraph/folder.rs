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

/// What a line of a note's file says. The last one that is whole counts: each was added in place of the one before, which is
/// much less to do than another file.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    scope: Scope,
    text: String,
}

/// A file that has become so long is written anew, with one line.
const LONG: u64 = 64 * 1024;

impl Kept {
    fn written(note: &Note) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(&Self { scope: note.scope.clone(), text: note.text.clone() })?)
    }

    /// A line that was cut off with the machine is none.
    fn read(bytes: &[u8]) -> serde_json::Result<Self> {
        let whole = bytes.rsplit(|byte| *byte == b'\n').find_map(|line| serde_json::from_slice::<Self>(line).ok());
        // Why none of them can be read.
        whole.map_or_else(|| serde_json::from_slice(bytes), Ok)
    }
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
        file.write_all(&Kept::written(note)?)?;
        if durably {
            file.sync_all()?;
        }
        std::fs::rename(&unfinished, path)?;
        if durably { File::open(&self.path)?.sync_all() } else { Ok(()) }
    }

    /// What it says from now on. That may be lost with the machine: then it says what it said before.
    fn write_over(&self, note: &Note) -> io::Result<()> {
        let mut file = match File::options().append(true).open(self.path(note)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return self.write(note, false),
            file => file?,
        };
        if file.metadata()?.len() >= LONG {
            return self.write(note, false);
        }
        let mut line = Kept::written(note)?;
        line.insert(0, b'\n');
        file.write_all(&line)
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
            match Kept::read(&std::fs::read(&path)?) {
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
            if is_held { folder.write_over(&note).map(|()| true) } else { Ok(false) }
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

    /// What whoever opens the folder next is told.
    async fn left_in(folder: &Path) -> Vec<String> {
        FolderNotes::open(folder).unwrap().take_over("dialog", &Scope::default()).await.unwrap()
    }

    #[tokio::test]
    async fn a_note_says_what_was_written_whole_last() {
        let folder = TempDir::new().unwrap();
        let note =
            |text: &str| Note { name: "n".to_owned(), kind: "dialog", scope: Scope::default(), text: text.to_owned() };
        let notes = FolderNotes::open(folder.path()).unwrap();
        assert!(notes.begin(&note("one")).await.unwrap());
        for text in ["two", "three\nlines"] {
            assert!(notes.update(&note(text)).await.unwrap());
            assert_eq!(left_in(folder.path()).await, [text]);
        }
        // The machine stops while it is written, twice.
        let path = notes.0.path(&note(""));
        for cut_off in ["\n{\"scope\":{\"work", "\n"] {
            let mut file = File::options().append(true).open(&path).unwrap();
            file.write_all(cut_off.as_bytes()).unwrap();
            assert_eq!(left_in(folder.path()).await, ["three\nlines"]);
        }
        assert!(notes.update(&note("four")).await.unwrap());
        assert_eq!(left_in(folder.path()).await, ["four"]);
    }

    #[tokio::test]
    async fn a_note_does_not_grow_for_ever() {
        let folder = TempDir::new().unwrap();
        let note = |text: String| Note { name: "n".to_owned(), kind: "dialog", scope: Scope::default(), text };
        let notes = FolderNotes::open(folder.path()).unwrap();
        assert!(notes.begin(&note(String::new())).await.unwrap());
        let texts = (0..40).map(|number| format!("{number} {}", "x".repeat(10_000)));
        for text in texts {
            assert!(notes.update(&note(text.clone())).await.unwrap());
            assert_eq!(left_in(folder.path()).await, [text]);
            assert!(std::fs::metadata(notes.0.path(&note(String::new()))).unwrap().len() < 2 * LONG);
        }
    }
}
