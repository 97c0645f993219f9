//! Which dialogs are not over, in files beside the journal: who asked, and how much they were told. A process that takes over
//! goes on telling where the other one stopped, in the middle of an answer as well.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use trellis_domain::message::AgentRequest;
use trellis_domain::{Hash, RunId, Scope};

/// A dialog that is not over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenDialog {
    pub(crate) scope: Scope,
    pub(crate) run: RunId,
    /// The id that every response carries.
    pub(crate) id: String,
    pub(crate) streaming: bool,
    pub(crate) collection: String,
    /// The last record of the run that was told.
    pub(crate) told: u64,
    /// The request of somebody else's subagent, without its history: its end is told to whoever sent it.
    pub(crate) subagent: Option<AgentRequest>,
    /// What the question follows from in somebody else's part of the graph.
    pub(crate) follows: Option<String>,
}

/// The folder of the notes.
#[derive(Debug)]
pub(crate) struct Notes(PathBuf);

/// A piece of a thought or an answer that was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToldText {
    pub(crate) kind: String,
    /// Of the message that it is a piece of.
    pub(crate) id: String,
    pub(crate) text: String,
}

/// The pieces of a dialog, a line for each.
#[derive(Debug)]
pub(crate) struct ToldTexts {
    earlier: Vec<ToldText>,
    file: File,
}

impl Notes {
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        Ok(Self(folder.to_owned()))
    }

    fn path(&self, dialog: &OpenDialog) -> PathBuf {
        let OpenDialog { scope, run, id, .. } = dialog;
        let parts = [scope.workspace.as_str(), scope.flow.as_str(), run.as_str(), id];
        self.0.join(format!("{}.json", Hash::of_parts(parts.into_iter().map(str::as_bytes))))
    }

    /// Whether there is a note of this dialog.
    pub(crate) fn has(&self, dialog: &OpenDialog) -> bool {
        self.path(dialog).exists()
    }

    /// Written whole or not at all. It is on disk when this returns, if that is wanted.
    pub(crate) fn write(&self, dialog: &OpenDialog, durably: bool) -> io::Result<()> {
        let path = self.path(dialog);
        let unfinished = path.with_extension("new");
        let mut file = File::create(&unfinished)?;
        file.write_all(&serde_json::to_vec(dialog)?)?;
        if durably {
            file.sync_all()?;
        }
        std::fs::rename(&unfinished, &path)?;
        if durably { File::open(&self.0)?.sync_all() } else { Ok(()) }
    }

    pub(crate) fn remove(&self, dialog: &OpenDialog) -> io::Result<()> {
        match std::fs::remove_file(self.texts_path(dialog)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        std::fs::remove_file(self.path(dialog))
    }

    /// The texts of a dialog, of which earlier processes may have told some.
    pub(crate) fn texts(&self, dialog: &OpenDialog) -> io::Result<ToldTexts> {
        let mut file = File::options().create(true).read(true).append(true).open(self.texts_path(dialog))?;
        let mut lines = String::new();
        file.read_to_string(&mut lines)?;
        // A line that was cut off with the machine would spoil the next one.
        let whole = lines.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(u64::try_from(whole).unwrap_or(u64::MAX))?;
        let earlier = lines[..whole].lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(ToldTexts { earlier, file })
    }

    fn texts_path(&self, dialog: &OpenDialog) -> PathBuf {
        self.path(dialog).with_extension("texts")
    }

    /// The dialogs of a flow that are not over.
    pub(crate) fn of(&self, scope: &Scope) -> io::Result<Vec<OpenDialog>> {
        let mut dialogs = Vec::new();
        for entry in std::fs::read_dir(&self.0)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match serde_json::from_slice::<OpenDialog>(&std::fs::read(&path)?) {
                Ok(dialog) if dialog.scope == *scope => dialogs.push(dialog),
                Ok(_) => {}
                Err(error) => tracing::warn!(path = %path.display(), %error, "a note of a dialog cannot be read"),
            }
        }
        Ok(dialogs)
    }
}

impl ToldTexts {
    pub(crate) fn earlier(&self) -> &[ToldText] {
        &self.earlier
    }

    /// It outlives the process, not the machine.
    pub(crate) fn add(&mut self, told: &ToldText) -> io::Result<()> {
        let mut line = serde_json::to_vec(told)?;
        line.push(b'\n');
        self.file.write_all(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog() -> OpenDialog {
        OpenDialog {
            scope: Scope::default(),
            run: RunId::new("r1").unwrap(),
            id: "id/1".to_owned(),
            streaming: true,
            collection: "default".to_owned(),
            told: 0,
            subagent: None,
            follows: None,
        }
    }

    #[test]
    fn a_dialog_is_noted_until_it_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::open(&folder.path().join("dialogs")).unwrap();
        let mut dialog = dialog();
        assert!(!notes.has(&dialog));
        notes.write(&dialog, true).unwrap();
        dialog.told = 7;
        notes.write(&dialog, false).unwrap();
        assert_eq!(notes.of(&Scope::default()).unwrap(), [dialog.clone()]);
        notes.remove(&dialog).unwrap();
        assert_eq!(notes.of(&Scope::default()).unwrap(), []);
    }

    #[test]
    fn texts_are_known_to_the_next_process_as_far_as_they_were_told() {
        let folder = tempfile::tempdir().unwrap();
        let (notes, dialog) = (Notes::open(folder.path()).unwrap(), dialog());
        notes.write(&dialog, true).unwrap();
        let mut texts = notes.texts(&dialog).unwrap();
        let piece = |text: &str| ToldText { kind: "answer".to_owned(), id: "a".to_owned(), text: text.to_owned() };
        texts.add(&piece("For")).unwrap();
        texts.file.write_all(br#"{"kind": "ans"#).unwrap();
        notes.texts(&dialog).unwrap().add(&piece("ty")).unwrap();
        assert_eq!(notes.texts(&dialog).unwrap().earlier(), ["For", "ty"].map(piece));
        notes.remove(&dialog).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
