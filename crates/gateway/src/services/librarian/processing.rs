//! What becomes of a document that is processed: its passages are searched.

use super::Desk;
use crate::error::ServiceError;
use trellis_domain::Collection;
use trellis_orchestrator::documents::NewDocument;
use trellis_orchestrator::ports::{LibraryError, Processing};

/// Bytes of a document that can be searched.
const LARGEST: u64 = 64 << 20;

impl Desk<'_> {
    /// Loads the document into the collection. Where nothing is searched, nothing is done.
    pub(super) async fn load(&self, processing: &Processing) -> Result<(), ServiceError> {
        let Some(loader) = self.call.inside.documents() else { return Ok(()) };
        let (library, workspace, id) = (self.library(), self.workspace(), &processing.document);
        let collection = Collection::new(&processing.collection);
        let collection = collection.map_err(|error| ServiceError::request(error.to_string()))?;
        let found = library.find(workspace, id).await?.ok_or_else(|| LibraryError::NotFound(id.clone()))?;
        if found.size > LARGEST {
            let (size, most) = (found.size, LARGEST >> 20);
            return Err(ServiceError::request(format!(
                "the document has {size} bytes; at most {most} MiB can be searched"
            )));
        }
        // Held until it is found: those that wait hold nothing. Its facts take longer, and have a gate of their own.
        let busy = || ServiceError::gateway("other documents are being processed; ask again in a while");
        let permit = self.call.inside.begin_processing().ok_or_else(busy)?;
        let content = library.read(workspace, &found, 0..found.size).await?;
        let title = Some(found.metadata.title).filter(|title| !title.is_empty());
        let document = NewDocument { id: id.clone(), title, kind: found.metadata.kind, content };
        let loader = loader.by(self.call.inside.caller(self.call.surface));
        let found = loader.make_searchable(workspace, &collection, document).await?;
        drop(permit);
        loader.take_facts(found).await?;
        Ok(())
    }
}
