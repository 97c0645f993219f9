//! Files of any kind as text in passages.

use super::{BoxFuture, Passage};

/// What was read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadDocument {
    /// What the file says its title is.
    pub title: Option<String>,
    /// The text that was made of the file, in Markdown. None if the file is its own text, byte for byte.
    pub extracted: Option<String>,
    /// Their places are those in the extracted text, or else in the file.
    pub passages: Vec<Passage>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("documents of type {kind} cannot be read; plain text, Markdown, HTML and PDF can")]
    UnknownKind { kind: String },
    #[error("{0}")]
    Unreadable(String),
    #[error("{what} is too large: {size}, at most {most} can be read; split the document")]
    TooLarge { what: &'static str, size: u64, most: u64 },
    #[error("too many documents are being read; try again in a moment")]
    Busy,
}

/// Reads files. Whatever one contains, reading it takes bounded time and memory; how many are read at once is the
/// caller's business.
pub trait DocumentReader: Send + Sync + std::fmt::Debug {
    /// `kind` is a MIME type.
    fn read<'a>(&'a self, kind: &'a str, content: Vec<u8>) -> BoxFuture<'a, Result<ReadDocument, ReadError>>;

    /// Changes whenever the same file is read differently than before.
    fn version(&self) -> &'static str;
}
