//! The documents that the graph refers to, as a librarian keeps them.

use crate::node::StoredText;
use trellis_domain::document::Payload;
use trellis_domain::record::Header;
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

impl DocumentRef {
    pub(crate) fn new(header: &Header, conversation: Option<&ConversationId>, stored: StoredText) -> Self {
        let StoredText { id, title, document } = stored;
        Self {
            id,
            title,
            sha256: document.sha256,
            text: document.text,
            time: header.time,
            session: header.session.clone(),
            conversation: conversation.cloned(),
        }
    }
}
