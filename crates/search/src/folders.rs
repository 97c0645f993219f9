//! Which folder a collection has.
//!
//! Names of workspaces and collections are not names of files: they may be `..`, differ only in case, or be too long. So
//! folders are called by the hashes of the names, the workspace's first, and say inside whose they are.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use trellis_domain::{Collection, Hash, Workspace};
use trellis_orchestrator::ports::SearchError;

/// Raised when folders are written differently.
const FORMAT: u32 = 1;
const NAMES: &str = "collection.json";
/// What folders are called while they are deleted.
const REMOVED: &str = "removed-";

#[derive(Debug)]
pub(crate) struct Folders {
    root: PathBuf,
}

/// Whose a folder is.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Names {
    format: u32,
    workspace: String,
    collection: String,
}

impl Folders {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn of_workspace(&self, workspace: &Workspace) -> PathBuf {
        self.root.join(short_hash(workspace.as_str()))
    }

    fn path(&self, workspace: &Workspace, collection: &Collection) -> PathBuf {
        self.of_workspace(workspace).join(short_hash(collection.as_str()))
    }

    /// The folder of a collection, if it has one.
    pub(crate) fn find(&self, workspace: &Workspace, collection: &Collection) -> Result<Option<PathBuf>, SearchError> {
        let folder = self.path(workspace, collection);
        let bytes = match fs::read(folder.join(NAMES)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&folder, error)),
        };
        let names: Names = serde_json::from_slice(&bytes).map_err(|error| failed(&folder, error.into()))?;
        if names.format != FORMAT {
            let why = format!("{} was written by another version of this program", folder.display());
            return Err(SearchError::Index { doing: "opened", why });
        }
        let expected = names_of(workspace, collection);
        if names != expected {
            let why = format!("{} belongs to {}/{}", folder.display(), names.workspace, names.collection);
            return Err(SearchError::Index { doing: "opened", why });
        }
        Ok(Some(folder))
    }

    /// Makes the folder of a collection. It counts once its names are in it.
    pub(crate) fn make(&self, workspace: &Workspace, collection: &Collection) -> Result<PathBuf, SearchError> {
        let folder = self.path(workspace, collection);
        self.write(workspace, collection, &folder).map_err(|error| failed(&folder, error))?;
        Ok(folder)
    }

    fn write(&self, workspace: &Workspace, collection: &Collection, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let names = serde_json::to_vec(&names_of(workspace, collection))?;
        let (new, name) = (folder.join("collection.new"), folder.join(NAMES));
        fs::write(&new, names)?;
        File::open(&new)?.sync_all()?;
        fs::rename(new, name)?;
        for above in [folder, &self.of_workspace(workspace), &self.root] {
            sync_folder(above)?;
        }
        self.root.parent().map_or(Ok(()), sync_folder)
    }

    /// Removes a collection's folder: at once by its name, then its files. What a crash leaves of them goes the next time.
    pub(crate) fn remove(&self, workspace: &Workspace, collection: &Collection) -> Result<(), SearchError> {
        let (above, folder) = (self.of_workspace(workspace), self.path(workspace, collection));
        let unnamed = above.join(format!("{REMOVED}{}", short_hash(collection.as_str())));
        let remove = || {
            delete(&unnamed)?;
            fs::rename(&folder, &unnamed)?;
            sync_folder(&above)?;
            delete(&unnamed)
        };
        remove().map_err(|error| failed(&folder, error))
    }
}

/// Whether a folder is only there because a crash came before all of it was deleted.
pub(crate) fn is_removed(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with(REMOVED))
}

/// That a folder says whose it is, and is called so.
pub(crate) fn read_names(folder: &Path) -> Result<(), String> {
    let file = folder.join(NAMES);
    let read = || -> io::Result<Names> { Ok(serde_json::from_slice(&fs::read(&file)?)?) };
    let names = read().map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    let (above, called) = (folder.parent().and_then(Path::file_name), folder.file_name());
    let is_called =
        |part: Option<&std::ffi::OsStr>, name: &str| part.is_some_and(|part| part == short_hash(name).as_str());
    if names.format == FORMAT && is_called(above, &names.workspace) && is_called(called, &names.collection) {
        return Ok(());
    }
    Err(format!("{} is not what was written", file.display()))
}

fn names_of(workspace: &Workspace, collection: &Collection) -> Names {
    Names { format: FORMAT, workspace: workspace.to_string(), collection: collection.to_string() }
}

fn short_hash(name: &str) -> String {
    Hash::of(name).to_string()[..32].to_owned()
}

fn delete(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// New names in a folder are durable after this.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn failed(folder: &Path, error: io::Error) -> SearchError {
    SearchError::Index { doing: "opened", why: format!("{}: {error}", folder.display()) }
}
