//! Documents by id.

use super::{BoxFuture, JournalError};
use trellis_domain::{ConversationId, Hash, Workspace};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDocument {
    pub id: String,
    pub title: String,
    pub text: String,
    pub sha256: Hash,
    pub conversation: Option<ConversationId>,
}

pub trait Library: Send + Sync + std::fmt::Debug {
    fn document<'a>(
        &'a self,
        workspace: &'a Workspace,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredDocument>, JournalError>>;
}
