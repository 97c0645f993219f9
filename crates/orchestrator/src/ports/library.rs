//! Documents by id: those that people add, and the texts of runs, which can only be read.

use super::{BoxFuture, JournalError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use trellis_domain::rdf::Triple;
use trellis_domain::{Hash, Timestamp, Workspace};

/// What is said about a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentMetadata {
    pub id: String,
    /// Its MIME type.
    pub kind: String,
    /// `source`, or what was made of one: `page`, `chunk`, `extracted`, `answer`.
    pub document_type: String,
    /// The document that this one was taken from.
    pub parent: Option<String>,
    pub time: Timestamp,
    pub title: String,
    pub comments: String,
    pub metadata: Vec<Triple>,
    pub tags: Vec<String>,
}

/// A document whose content is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredDocument {
    #[serde(flatten)]
    pub metadata: DocumentMetadata,
    pub size: u64,
    pub sha256: Hash,
}

/// New values for what may change of a document; the others stay. Id, kind, parent and content never change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetadataChanges {
    pub time: Option<Timestamp>,
    pub title: Option<String>,
    pub comments: Option<String>,
    pub metadata: Option<Vec<Triple>>,
    pub tags: Option<Vec<String>>,
}

/// Which documents are listed. The texts of runs never are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// Those without a parent that are no answers.
    TopLevel,
    All,
    ChildrenOf(String),
}

/// A document on its way, in pieces of equal size; only the last may be shorter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    pub id: String,
    pub document: DocumentMetadata,
    pub size: u64,
    pub piece: u64,
    pub received: BTreeSet<u32>,
    pub began: Timestamp,
}

/// Somebody wants a document processed by a flow. It is kept and listed; nothing processes documents yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processing {
    pub id: String,
    pub document: String,
    pub time: Timestamp,
    pub flow: String,
    pub collection: String,
    pub tags: Vec<String>,
}

/// Why the library did not do it. Whatever was there before is still there.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LibraryError {
    #[error("Document not found: {0}")]
    NotFound(String),
    #[error("Document already exists: {0}")]
    Exists(String),
    #[error("the document {0} is part of the record of a run; it can be read, not changed")]
    Recorded(String),
    #[error("Document kind (MIME type) is required; write one such as text/plain")]
    NoKind,
    #[error("{what} is too large: {size} bytes, at most {most} are allowed")]
    TooLarge { what: &'static str, size: u64, most: u64 },
    #[error("the {what} {id:?} cannot be used; write 1 to 1000 bytes without control characters")]
    BadId { what: &'static str, id: String },
    #[error("{0} uploads of this workspace are open; complete or abort one of them first")]
    TooManyUploads(usize),
    #[error("Upload not found: {0}; it is completed, aborted or older than a day")]
    NoUpload(String),
    #[error("there is no piece {index}; the pieces are 0 to {last}")]
    NoSuchPiece { index: u64, last: u64 },
    #[error("piece {index} has {found} bytes, {expected} were expected")]
    PieceLength { index: u32, found: u64, expected: u64 },
    #[error("Missing chunks: {0:?}; send them before completing the upload")]
    Incomplete(Vec<u32>),
    #[error("the content's SHA-256 is {found}, {expected} was expected; send the pieces again")]
    WrongContent { expected: Hash, found: Hash },
    #[error("a piece was sent while the upload was being completed; complete it again")]
    PieceMeanwhile,
    #[error("Processing already exists: {0}")]
    ProcessingExists(String),
    #[error("Processing not found: {0}")]
    NoProcessing(String),
    #[error(transparent)]
    Store(#[from] JournalError),
}

pub type LibraryFuture<'a, T> = BoxFuture<'a, Result<T, LibraryError>>;

/// What the library promises:
///
/// - what is acknowledged is durable, and a document is visible only once its content is complete and checked;
/// - content never changes under an id: it is added, read in any ranges, and removed;
/// - no call needs more memory than the piece it carries, however large the document is;
/// - uploads that nobody completes go away by themselves, and their number is limited.
///
/// The texts of runs are found by the ids that the graph has for them. They are not listed and cannot be changed.
pub trait Library: Send + Sync + std::fmt::Debug {
    fn find<'a>(&'a self, workspace: &'a Workspace, id: &'a str) -> LibraryFuture<'a, Option<StoredDocument>>;

    /// A range of the content, cut off at its end. If the document was removed or replaced since it was found, it
    /// counts as not found: ranges of two contents are never mixed.
    fn read<'a>(
        &'a self,
        workspace: &'a Workspace,
        document: &'a StoredDocument,
        range: Range<u64>,
    ) -> LibraryFuture<'a, Vec<u8>>;

    /// Documents by id.
    fn list<'a>(&'a self, workspace: &'a Workspace, listing: &'a Listing) -> LibraryFuture<'a, Vec<StoredDocument>>;

    fn update<'a>(
        &'a self,
        workspace: &'a Workspace,
        id: &'a str,
        changes: MetadataChanges,
    ) -> LibraryFuture<'a, StoredDocument>;

    /// Removes a document and all that was taken from it.
    fn remove<'a>(&'a self, workspace: &'a Workspace, id: &'a str) -> LibraryFuture<'a, ()>;

    /// Begins a document of that many bytes. The size of its pieces is a wish; the upload says what it came to.
    fn begin<'a>(
        &'a self,
        workspace: &'a Workspace,
        document: DocumentMetadata,
        size: u64,
        piece: u64,
    ) -> LibraryFuture<'a, Upload>;

    /// Pieces come in any order; one that comes again replaces the first.
    fn put_piece<'a>(
        &'a self,
        workspace: &'a Workspace,
        upload: &'a str,
        index: u64,
        content: Vec<u8>,
    ) -> LibraryFuture<'a, Upload>;

    fn upload<'a>(&'a self, workspace: &'a Workspace, upload: &'a str) -> LibraryFuture<'a, Option<Upload>>;

    fn uploads<'a>(&'a self, workspace: &'a Workspace) -> LibraryFuture<'a, Vec<Upload>>;

    /// Reads back what was received and makes the document visible. With a hash, the content must have it.
    fn complete<'a>(
        &'a self,
        workspace: &'a Workspace,
        upload: &'a str,
        expected: Option<Hash>,
    ) -> LibraryFuture<'a, StoredDocument>;

    fn abort<'a>(&'a self, workspace: &'a Workspace, upload: &'a str) -> LibraryFuture<'a, ()>;

    fn add_processing<'a>(&'a self, workspace: &'a Workspace, processing: Processing) -> LibraryFuture<'a, ()>;

    fn remove_processing<'a>(&'a self, workspace: &'a Workspace, id: &'a str) -> LibraryFuture<'a, ()>;

    fn processings<'a>(&'a self, workspace: &'a Workspace) -> LibraryFuture<'a, Vec<Processing>>;
}
