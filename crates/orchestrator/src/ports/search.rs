//! Passages of documents, found by their words and by their meaning.

use super::BoxFuture;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use trellis_domain::{Collection, Hash, Workspace};

/// A part of a document's text that is found as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    pub text: String,
    #[serde(flatten)]
    pub place: Place,
}

/// Where a passage stands in its document's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The headings that it stands under, outermost first.
    pub headings: Vec<String>,
    pub bytes: Range<u64>,
    /// The first and the last line that it touches, counted from 1.
    pub lines: (u64, u64),
}

/// What is known of a document besides its passages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentInfo {
    /// What it was loaded as. A document with the same id takes its place.
    pub id: String,
    pub title: String,
    /// The library's document that the places of the passages refer to.
    pub text: String,
    /// Of everything that the passages were made from; the same hash means that they would be the same.
    pub hash: Hash,
}

/// A document with all its passages.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchDocument {
    pub info: DocumentInfo,
    pub passages: Vec<Passage>,
    /// None if the document is found by its words only.
    pub vectors: Option<PassageVectors>,
}

/// A vector for each passage of a document, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct PassageVectors {
    /// Vectors of different models are never compared.
    pub model: String,
    pub vectors: Vec<Vec<f32>>,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SearchQuery {
    pub text: String,
    /// The same in the form of a vector, by the model that is named with it.
    pub vector: Option<(String, Vec<f32>)>,
    pub limit: usize,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundPassage {
    pub document: DocumentInfo,
    /// Which passage of its document it is, counted from 0.
    pub number: u64,
    #[serde(flatten)]
    pub passage: Passage,
    /// Of its ranks by words and by meaning, see [`crate::documents::fuse`]. Only good for comparing.
    pub score: f64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct FoundPassages {
    /// The best first; those with equal scores by document and number.
    pub passages: Vec<FoundPassage>,
    /// How many passages were compared with the query's vector. With a vector and none, the collection has no vectors
    /// of that model.
    pub compared: u64,
}

/// A document in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedDocument {
    #[serde(flatten)]
    pub info: DocumentInfo,
    pub passages: u64,
    /// The model of its vectors, if it has any.
    pub model: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// Nothing of the call was done.
    #[error("{0}")]
    Invalid(String),
    #[error("too many searches at once; ask again in a moment")]
    Busy,
    #[error("the search index cannot be {doing}: {why}")]
    Index { doing: &'static str, why: String },
}

pub type SearchFuture<'a, T> = BoxFuture<'a, Result<T, SearchError>>;

/// What a search index promises:
///
/// - documents are whole or absent, also after a crash; what a call acknowledged is durable;
/// - a document takes the place of the one with the same id, and putting the same again changes nothing;
/// - nothing is found from another workspace or collection, and what others keep does not change what is found;
/// - the same question to the same documents gets the same passages in the same order.
pub trait Search: Send + Sync + std::fmt::Debug {
    /// Keeps documents: all of them, or none if one cannot be kept. Many at once are faster than one by one.
    fn put<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        documents: Vec<SearchDocument>,
    ) -> SearchFuture<'a, ()>;

    /// False if there was none with that id.
    fn remove<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        document: &'a str,
    ) -> SearchFuture<'a, bool>;

    /// Removes several; those that are not there are none. How many there were. An index that waits for its disk each
    /// time does better than this.
    fn remove_all<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        documents: &'a [String],
    ) -> SearchFuture<'a, u64> {
        Box::pin(async move {
            let mut removed = 0;
            for document in documents {
                removed += u64::from(self.remove(workspace, collection, document).await?);
            }
            Ok(removed)
        })
    }

    fn remove_collection<'a>(&'a self, workspace: &'a Workspace, collection: &'a Collection) -> SearchFuture<'a, ()>;

    fn find<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        query: SearchQuery,
    ) -> SearchFuture<'a, FoundPassages>;

    fn document<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        id: &'a str,
    ) -> SearchFuture<'a, Option<IndexedDocument>>;

    /// Documents by id, those behind `after`, at most `limit` of them.
    fn documents<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        after: Option<&'a str>,
        limit: usize,
    ) -> SearchFuture<'a, Vec<IndexedDocument>>;
}
