//! The documents that the graph refers to, as a librarian keeps them.

use crate::node::StoredText;
use crate::project::drafts;
use crate::session::Session;
use std::borrow::Borrow;
use trellis_domain::document::Payload;
use trellis_domain::record::Record;
use trellis_domain::{ConversationId, Hash, SessionId, Timestamp};

/// One stored text with the id that the graph has for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRef {
    pub id: String,
    pub title: String,
    pub sha256: Hash,
    pub text: Payload,
    /// When it was recorded.
    pub time: Timestamp,
    pub session: SessionId,
    pub conversation: Option<ConversationId>,
}

/// Every stored document of these records, in order of their sequence.
///
/// ```
/// use trellis_domain::record::Record;
///
/// assert!(trellis_provenance::documents::<Record>(&[]).is_empty());
/// ```
pub fn documents<R: Borrow<Record>>(records: &[R]) -> Vec<DocumentRef> {
    drafts(records).flat_map(|draft| draft.documents).collect()
}

impl DocumentRef {
    pub(crate) fn new(session: &Session, time: Timestamp, StoredText { id, title, document }: StoredText) -> Self {
        Self {
            id,
            title,
            sha256: document.sha256,
            text: document.text,
            time,
            session: session.id.clone(),
            conversation: session.conversation().cloned(),
        }
    }
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
