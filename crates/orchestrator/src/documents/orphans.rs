//! Facts whose document is gone. Whoever extracts facts looks at the document after each writing and takes them away if it
//! was removed meanwhile; a process that dies in between leaves them, and nobody would ask for that document again.

use super::facts;
use super::{LoadError, Loader};
use crate::knowledge::DOCUMENT;
use crate::ports::{Config, KnowledgePlace};
use trellis_domain::Workspace;

impl Loader {
    /// Takes away what is left of documents that the library does not have any more, in all workspaces. How many
    /// documents these were.
    pub async fn forget_orphans(&self, config: &dyn Config) -> Result<u64, LoadError> {
        let mut forgotten = 0;
        for workspace in config.workspaces().await.map_err(|error| LoadError::Facts { reason: error.to_string() })? {
            forgotten += self.forget_orphans_of(&workspace).await?;
        }
        Ok(forgotten)
    }

    /// A document is in the library before its facts are written, and leaves it after they are removed. So facts of one
    /// that is not there belong to nobody. Those that were written when the process died are unfinished; what somebody
    /// has brought from elsewhere under such a name is not, and stays.
    async fn forget_orphans_of(&self, workspace: &Workspace) -> Result<u64, LoadError> {
        let mut forgotten = 0;
        for loaded in self.knowledge.collections(workspace).await? {
            let place = KnowledgePlace { workspace: workspace.clone(), collection: loaded.collection };
            for document in loaded.unfinished.iter().filter(|source| source.starts_with(DOCUMENT)) {
                if self.library.find(workspace, document).await?.is_none() {
                    facts::remove(&*self.knowledge, &place, document, None).await?;
                    tracing::info!(%workspace, collection = %place.collection, document, "facts of a removed document are gone");
                    forgotten += 1;
                }
            }
        }
        Ok(forgotten)
    }
}
