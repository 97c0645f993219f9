//! Texts inside records: what was thought, observed, answered.

use crate::Hash;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Texts above this size are stored under their hash, beside the record.
pub const INLINE_BYTES: usize = 16 * 1024;

/// A text that is either here or in the store under its hash.
///
/// A record in memory always holds its texts; only the stored form of older ones names blobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Payload {
    Inline(Arc<str>),
    /// Boxed: it is rare, and would double the size of every text.
    Blob(Box<Blob>),
}

/// Where a large text lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    pub blob: Hash,
    pub bytes: u64,
}

impl Payload {
    /// The text, empty if it has not been fetched.
    pub fn text(&self) -> &str {
        match self {
            Self::Inline(text) => text,
            Self::Blob(_) => "",
        }
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Self::Inline(text.into())
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self::Inline(text.into())
    }
}

/// A text that the graph refers to as a document. Whether it was stored is part of the record, so that
/// the projection is the same each time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    pub text: Payload,
    pub sha256: Hash,
    pub stored: bool,
}

impl Document {
    /// A document that lies in the same store as its record.
    ///
    /// ```
    /// use trellis_domain::document::Document;
    ///
    /// assert!(Document::stored("").is_none(), "empty texts make no document");
    /// assert_eq!(Document::stored("x").map(|d| d.stored), Some(true));
    /// ```
    pub fn stored(text: impl Into<Arc<str>>) -> Option<Self> {
        let text = text.into();
        (!text.is_empty()).then(|| Self {
            sha256: Hash::of(text.as_bytes()),
            text: Payload::Inline(text),
            stored: true,
        })
    }

    pub fn text(&self) -> &str {
        self.text.text()
    }
}
