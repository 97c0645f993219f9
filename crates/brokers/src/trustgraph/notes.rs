//! Which dialogs are not over, in files beside the journal: who asked, and how much they were told. A process that takes over
//! goes on telling where the other one stopped.

use serde::{Deserialize, Serialize};
use std::io;
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
        use io::Write as _;
        let path = self.path(dialog);
        let unfinished = path.with_extension("new");
        let mut file = std::fs::File::create(&unfinished)?;
        file.write_all(&serde_json::to_vec(dialog)?)?;
        if durably {
            file.sync_all()?;
        }
        std::fs::rename(&unfinished, &path)?;
        if durably { std::fs::File::open(&self.0)?.sync_all() } else { Ok(()) }
    }

    pub(crate) fn remove(&self, dialog: &OpenDialog) -> io::Result<()> {
        std::fs::remove_file(self.path(dialog))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialog_is_noted_until_it_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let notes = Notes::open(&folder.path().join("dialogs")).unwrap();
        let mut dialog = OpenDialog {
            scope: Scope::default(),
            run: RunId::new("r1").unwrap(),
            id: "id/1".to_owned(),
            streaming: true,
            collection: "default".to_owned(),
            told: 0,
            subagent: None,
            follows: None,
        };
        assert!(!notes.has(&dialog));
        notes.write(&dialog, true).unwrap();
        dialog.told = 7;
        notes.write(&dialog, false).unwrap();
        assert_eq!(notes.of(&Scope::default()).unwrap(), [dialog.clone()]);
        notes.remove(&dialog).unwrap();
        assert_eq!(notes.of(&Scope::default()).unwrap(), []);
    }
}
