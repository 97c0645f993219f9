//! Documents leave: their passages first, then the facts that were taken from them, then what is kept of their sources.
//!
//! What is removed is found by what the library knows of it, and that goes last: whoever is stopped in the middle asks
//! again, and the rest leaves.

use super::facts::document_of;
use super::noted::loaded_as;
use super::{LoadError, Loader};
use crate::ports::{LibraryError, Listing};
use trellis_domain::{Collection, Workspace};

/// What was there of a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemovedDocument {
    pub passages: u64,
    /// Versions of it in the library, with what was read of them.
    pub versions: u64,
}

impl Loader {
    /// Removes a document by what it was loaded as: nothing of it is found any more, and no version of it is kept. None if
    /// there is nothing.
    pub async fn remove(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        id: &str,
    ) -> Result<Option<RemovedDocument>, LoadError> {
        let found = self.search.document(workspace, collection, id).await?;
        self.search.remove(workspace, collection, id).await?;
        let mut removed = RemovedDocument { passages: found.as_ref().map_or(0, |found| found.passages), versions: 0 };
        for kept in self.library.list(workspace, &Listing::TopLevel).await? {
            if loaded_as(&kept.metadata) != Some((collection.as_str(), id)) {
                continue;
            }
            let version = [document_of(&kept.metadata.id).to_owned()];
            self.forget_facts(workspace, collection, &version).await?;
            match self.library.remove(workspace, &kept.metadata.id).await {
                Ok(()) => removed.versions += 1,
                // Somebody else asked for the same.
                Err(LibraryError::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok((found.is_some() || removed.versions > 0).then_some(removed))
    }

    /// Takes out of the index what was read of a document of the library, which is about to be removed there. Another
    /// version that has taken its place stays.
    pub async fn forget(&self, workspace: &Workspace, kept: &str) -> Result<(), LoadError> {
        let Some(document) = self.library.find(workspace, kept).await? else { return Ok(()) };
        let Some((collection, id)) = loaded_as(&document.metadata) else { return Ok(()) };
        let Ok(collection) = Collection::new(collection) else { return Ok(()) };
        if let Some(found) = self.search.document(workspace, &collection, id).await?
            && document_of(&found.info.text) == document_of(kept)
        {
            self.search.remove(workspace, &collection, id).await?;
        }
        self.forget_facts(workspace, &collection, &[document_of(kept).to_owned()]).await
    }
}

#[cfg(test)]
#[path = "remove_tests.rs"]
mod tests;
