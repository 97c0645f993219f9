//! Folders that cannot be written are read all the same.

use crate::folder::{Holder, OpenError, hold, unusable};
use crate::shadow::{Shadow, ShadowError, need_mb, obstacle, places, reason_of};
use crate::store::Store;
use std::path::Path;
use std::sync::Arc;
use trellis_orchestrator::ports::World;

impl Store {
    /// Opens a folder for a command that changes nothing: if it cannot be written, everything is read all the same, and
    /// nothing in it changes.
    pub fn open_to_read(path: &Path, holder: &Holder, world: Arc<dyn World>) -> Result<Self, OpenError> {
        if !path.join("format").exists() && !path.join("journal").exists() {
            return Self::open(path, holder, world);
        }
        let mut lock = hold(path)?;
        let reason = if let Some(error) = obstacle(path) {
            error.to_string()
        } else {
            drop(lock.take());
            match Self::open(path, holder, Arc::clone(&world)) {
                Err(error) if error.is_unwritable() => {
                    lock = hold(path)?;
                    reason_of(error)
                }
                opened => return opened,
            }
        };
        let lock = lock.map(Arc::new);
        let mut tried = Vec::new();
        for place in places() {
            let shadow = match Shadow::make(path, &reason, &place, lock.clone()) {
                Ok(shadow) => shadow,
                Err(ShadowError::Original(error)) => return Err(unusable(path, error)),
                Err(ShadowError::Shadow(error)) => {
                    tried.push(format!("{} ({error})", place.display()));
                    continue;
                }
            };
            match Self::open_shadow(shadow, holder, Arc::clone(&world)) {
                Err(error) if error.is_unwritable() => {
                    tried.push(format!("{} ({})", place.display(), reason_of(error)));
                }
                opened => return opened,
            }
        }
        Err(OpenError::NoRoom { path: path.into(), reason, tried, need_mb: need_mb(path) })
    }
}
