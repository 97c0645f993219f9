//! The library of a journal that keeps documents inside its records.

use crate::ports::{BoxFuture, Journal, JournalError, Library, StoredDocument};
use std::sync::Arc;
use trellis_domain::{SessionId, Workspace};
use trellis_provenance::{documents, iri};

/// Documents are the texts of records, so they need no store of their own.
#[derive(Debug, Clone)]
pub struct RecordLibrary {
    journal: Arc<dyn Journal>,
}

impl RecordLibrary {
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal }
    }

    async fn find(&self, workspace: &Workspace, id: &str) -> Result<Option<StoredDocument>, JournalError> {
        let Some(session) = iri::session_of(id).and_then(|session| SessionId::new(session).ok()) else {
            return Ok(None);
        };
        let Some(log) = self.journal.load(workspace, &session).await? else { return Ok(None) };
        Ok(documents(&log.records).into_iter().find(|document| document.id == id).map(|document| StoredDocument {
            id: document.id,
            title: document.title,
            text: document.text.text().to_owned(),
            sha256: document.sha256,
            conversation: document.conversation,
        }))
    }
}

impl Library for RecordLibrary {
    fn document<'a>(
        &'a self,
        workspace: &'a Workspace,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredDocument>, JournalError>> {
        Box::pin(self.find(workspace, id))
    }
}
