//! The view, opened when somebody needs it: most commands do not.

use super::identity::identity_at;
use crate::tables::{OpenRefused, Tables, catching_panics};
use crate::view::{Cursor, View, ViewError};
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trellis_orchestrator::ports::GraphError;

#[derive(Debug)]
pub(super) struct LazyView {
    path: PathBuf,
    opened: Mutex<Option<Arc<View>>>,
}

impl LazyView {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, opened: Mutex::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The view of this journal. What was derived from another one, or from a part of it that is gone, is forgotten.
    pub(super) fn get(&self, journal: &Tables) -> Result<Arc<View>, GraphError> {
        let mut opened = self.opened.lock();
        if let Some(view) = &*opened {
            return Ok(Arc::clone(view));
        }
        let view = open(&self.path).map_err(super::unusable)?;
        let cursor = view.cursor().map_err(super::unusable)?;
        if cursor != Cursor::START && identity_at(journal, cursor.number)? != Some(cursor.identity) {
            tracing::warn!("the graph view was derived from another log; it is derived anew");
            view.clear().map_err(super::unusable)?;
        }
        Ok(Arc::clone(opened.insert(Arc::new(view))))
    }
}

/// Opens what is there. It is derived, so a damaged view is removed and begun anew.
fn open(path: &Path) -> Result<View, ViewError> {
    let reason = match catching_panics(|| View::open(path).and_then(|view| view.cursor().map(|_| view))) {
        Some(Ok(view)) => return Ok(view),
        Some(Err(error)) => error.to_string(),
        None => OpenRefused::Panicked.to_string(),
    };
    tracing::error!(reason, "the graph view cannot be opened; it is derived anew");
    remove(path)?;
    View::open(path)
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
