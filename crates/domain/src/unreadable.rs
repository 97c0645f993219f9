//! Why stored bytes are not a record.

use crate::name::Name;
use crate::upgrade::FORMAT;
use crate::{Hash, SessionId};

/// Why stored bytes are not a record.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableRecord {
    #[error("the record has no header line")]
    NoHeader,
    #[error("the record was written in format {found}, this program knows up to {FORMAT}; use a newer version")]
    NewerFormat { found: u16 },
    #[error("the record's JSON does not fit format {FORMAT}: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the record's texts do not fit its body: {0}")]
    Texts(&'static str),
    #[error("the stored text {hash} {what}")]
    Stored { hash: Hash, what: &'static str },
    #[error("the record {name} of session {session} does not have the content that its hash says")]
    Content { session: SessionId, name: Name },
}
