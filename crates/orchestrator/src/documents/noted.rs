//! What the library notes of documents that were loaded: as what, where, and by whom. When is noted by itself.

use crate::ports::DocumentMetadata;
use trellis_domain::{Caller, Collection};

const LOADED_AS: &str = "loaded as ";
const COLLECTION: &str = "collection:";

/// How the library notes what a document was loaded as.
pub(super) fn comment(id: &str) -> String {
    format!("{LOADED_AS}{id}")
}

/// How it notes where, and by whom.
pub(super) fn tags(collection: &Collection, by: Option<&Caller>) -> Vec<String> {
    let mut tags = vec![format!("{COLLECTION}{collection}"), "searchable".to_owned()];
    if let Some(Caller { name, surface }) = by {
        tags.extend(name.as_ref().map(|name| format!("loaded-by:{name}")));
        tags.push(format!("loaded-over:{surface}"));
    }
    tags
}

/// The collection and the id that a document was loaded with, if it is one of ours.
pub(super) fn loaded_as(metadata: &DocumentMetadata) -> Option<(&str, &str)> {
    let collection = metadata.tags.iter().find_map(|tag| tag.strip_prefix(COLLECTION))?;
    Some((collection, metadata.comments.strip_prefix(LOADED_AS)?))
}
