//! Loaded knowledge: quads that somebody asserted, by workspace and collection.

use super::{BoxFuture, JournalError, QuadPattern};
use serde::{Deserialize, Serialize};
use std::fmt;
use trellis_domain::rdf::Quad;
use trellis_domain::{Caller, Collection, Surface, Workspace};
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

/// Who loaded something, and the way they came.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct LoadedBy {
    /// None where nobody is asked who they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// None means that it is not recorded: it was loaded before this was noted.
    #[schema(value_type = Option<String>)]
    pub surface: Option<Surface>,
}

impl LoadedBy {
    /// Of what was loaded before this was noted.
    pub const UNRECORDED: Self = Self { name: None, surface: None };
}

impl From<&Caller> for LoadedBy {
    fn from(caller: &Caller) -> Self {
        Self { name: caller.name.clone(), surface: Some(caller.surface) }
    }
}

impl fmt::Display for LoadedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.surface {
            Some(surface) => Caller::new(self.name.clone(), surface).fmt(f),
            None => f.write_str("not recorded"),
        }
    }
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
    /// Who loaded its sources, each once. Of a source it is whoever loaded it last.
    #[serde(default)]
    pub loaded_by: Vec<LoadedBy>,
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

    /// Notes who loads a source of which something is there. It is on disk when the source is finished or saved.
    fn note_loader<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        caller: &'a Caller,
    ) -> BoxFuture<'a, Result<(), KnowledgeError>>;

    /// Has everything that was added so far on disk when this returns. The source stays as unfinished as it is.
    fn save<'a>(&'a self, place: &'a KnowledgePlace, source: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>>;

    /// The collections of a workspace that have knowledge, by name.
    fn collections<'a>(
        &'a self,
        workspace: &'a Workspace,
    ) -> BoxFuture<'a, Result<Vec<LoadedCollection>, KnowledgeError>>;

    /// Takes all knowledge of a collection away, at once for all who ask afterwards. How many quads it had; none if
    /// there was nothing.
    fn remove<'a>(&'a self, place: &'a KnowledgePlace) -> BoxFuture<'a, Result<Option<u64>, KnowledgeError>>;

    /// Takes graphs away with all that is in them, one after the other, and with the last one the source that they came
    /// from. It is on disk when this returns. A process that dies before leaves the last of them whole, which is to be
    /// small, and this is asked again. How many quads there were. The graph of runs cannot be taken away so.
    fn remove_graphs<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        graphs: &'a [String],
    ) -> BoxFuture<'a, Result<u64, KnowledgeError>>;

    /// The first quads of a collection that match, in a stable order. What the pattern says of collections does not
    /// count.
    fn matching<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        pattern: &'a QuadPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Quad>, KnowledgeError>>;
}
