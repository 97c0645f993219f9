//! The texts of runs, as documents. They lie in records, so they need no store of their own.

use crate::ports::{DocumentMetadata, Journal, JournalError, LibraryError, RunFilter, StoredDocument};
use std::ops::Range;
use std::sync::Arc;
use trellis_domain::{ConversationId, SessionId, Workspace};
use trellis_patterns::documents;
use trellis_provenance::{DocumentRef, iri};

/// Finds what was thought, observed and answered by the ids that the graph has for it.
#[derive(Debug, Clone)]
pub struct RunDocuments {
    journal: Arc<dyn Journal>,
}

impl RunDocuments {
    pub fn new(journal: Arc<dyn Journal>) -> Self {
        Self { journal }
    }

    pub async fn find(&self, workspace: &Workspace, id: &str) -> Result<Option<StoredDocument>, JournalError> {
        Ok(self.text(workspace, id).await?.map(described))
    }

    /// Why nobody's own document with that id can be changed: a run has it, or nobody has.
    pub async fn instead(&self, workspace: &Workspace, id: &str) -> LibraryError {
        match self.text(workspace, id).await {
            Ok(Some(_)) => LibraryError::Recorded(id.to_owned()),
            Ok(None) => LibraryError::NotFound(id.to_owned()),
            Err(error) => error.into(),
        }
    }

    pub async fn read(
        &self,
        workspace: &Workspace,
        document: &StoredDocument,
        range: Range<u64>,
    ) -> Result<Vec<u8>, LibraryError> {
        let id = &document.metadata.id;
        let text = self.text(workspace, id).await?.filter(|text| text.sha256 == document.sha256);
        let text = text.ok_or_else(|| LibraryError::NotFound(id.clone()))?;
        Ok(super::cut(text.text.text().as_bytes(), &range).to_vec())
    }

    /// The texts of a session, in the order in which they came to be.
    pub async fn of_session(
        &self,
        workspace: &Workspace,
        session: &SessionId,
    ) -> Result<Vec<StoredDocument>, JournalError> {
        let Some(log) = self.journal.load(workspace, session).await? else { return Ok(Vec::new()) };
        Ok(documents(&log.records).into_iter().map(described).collect())
    }

    /// The texts of all runs of a conversation, those of the newest run first, until there are so many.
    pub async fn of_conversation(
        &self,
        workspace: &Workspace,
        conversation: &ConversationId,
        limit: usize,
    ) -> Result<Vec<StoredDocument>, JournalError> {
        const PAGE: usize = 100;
        let filter = RunFilter { conversation: Some(conversation.clone()), ..RunFilter::default() };
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = self.journal.runs(workspace, &filter, cursor.as_deref(), PAGE).await?;
            for run in page.runs {
                let (mut records, mut after) = (Vec::new(), 0);
                loop {
                    let next = self.journal.events(workspace, &run.run, after, PAGE).await?;
                    let is_last = next.len() < PAGE;
                    after = next.last().map_or(after, |record| record.header.seq);
                    records.extend(next);
                    if is_last {
                        break;
                    }
                }
                found.extend(documents(&records).into_iter().map(described));
                if found.len() >= limit {
                    found.truncate(limit);
                    return Ok(found);
                }
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(found);
            }
        }
    }

    async fn text(&self, workspace: &Workspace, id: &str) -> Result<Option<DocumentRef>, JournalError> {
        let Some(session) = iri::session_of(id).and_then(|session| SessionId::new(session).ok()) else {
            return Ok(None);
        };
        let Some(log) = self.journal.load(workspace, &session).await? else { return Ok(None) };
        Ok(documents(&log.records).into_iter().find(|document| document.id == id))
    }
}

fn described(text: DocumentRef) -> StoredDocument {
    let (about, kind) = (text.about(), text.kind().to_owned());
    let metadata = DocumentMetadata {
        id: text.id,
        kind: "text/plain".to_owned(),
        document_type: "answer".to_owned(),
        parent: None,
        time: text.time,
        title: text.title,
        comments: String::new(),
        metadata: about,
        tags: vec![kind],
    };
    StoredDocument { metadata, size: text.text.text().len() as u64, sha256: text.sha256 }
}
