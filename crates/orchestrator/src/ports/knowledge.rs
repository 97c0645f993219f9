//! Loaded knowledge: quads that somebody asserted, by workspace and collection.

use super::{BoxFuture, JournalError, QuadPattern};
use serde::{Deserialize, Serialize};
use trellis_domain::rdf::Quad;
use trellis_domain::{Collection, Workspace};
use utoipa::ToSchema;

/// Where knowledge is kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnowledgePlace {
    pub workspace: Workspace,
    pub collection: Collection,
}

/// What one batch came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Added {
    /// Quads that were not there before.
    pub new: u64,
}

/// A collection that has knowledge, or of which a load has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoadedCollection {
    #[schema(value_type = String)]
    pub collection: Collection,
    pub quads: u64,
    /// Files and other sources that were loaded to their end.
    pub sources: u64,
    /// Sources of which only a part may be there, by name: loading them again completes them.
    pub unfinished: Vec<String>,
}

/// Why knowledge was not taken, or cannot be given.
#[derive(Debug, Clone, thiserror::Error)]
pub enum KnowledgeError {
    /// The caller's own fault; nothing of the batch was taken.
    #[error("{0}")]
    Refused(String),
    /// Others load, too: this may be tried again.
    #[error("{0}")]
    Busy(String),
    #[error(transparent)]
    Store(#[from] JournalError),
}

/// Quads that do not follow from records: stored as they are, and touched by nothing but what is asked of this port.
///
/// Knowledge is a set. Adding what is there changes nothing, so a load that broke off is completed by loading the same
/// source again. What was added is seen at once; it is on disk when its source is finished. A process that dies before
/// that leaves some first part of the source, and the source among those that are unfinished.
pub trait Knowledge: Send + Sync + std::fmt::Debug {
    /// Adds quads of a source: all of them, or none if one is refused ([`crate::knowledge::check`] says which are).
    fn add<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        quads: Vec<Quad>,
    ) -> BoxFuture<'a, Result<Added, KnowledgeError>>;

    /// Notes that everything of a source is there. It is on disk when this returns.
    fn finish<'a>(&'a self, place: &'a KnowledgePlace, source: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>>;

    /// The collections of a workspace that have knowledge, by name.
    fn collections<'a>(
        &'a self,
        workspace: &'a Workspace,
    ) -> BoxFuture<'a, Result<Vec<LoadedCollection>, KnowledgeError>>;

    /// Takes all knowledge of a collection away, at once for all who ask afterwards. How many quads it had; none if
    /// there was nothing.
    fn remove<'a>(&'a self, place: &'a KnowledgePlace) -> BoxFuture<'a, Result<Option<u64>, KnowledgeError>>;

    /// The first quads of a collection that match, in a stable order. What the pattern says of collections does not
    /// count.
    fn matching<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        pattern: &'a QuadPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Quad>, KnowledgeError>>;
}
