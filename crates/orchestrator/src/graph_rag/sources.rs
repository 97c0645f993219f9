//! Which documents edges were taken from, if whoever extracted them has said so.

use super::edges::GRAPH_SOURCE;
use crate::ports::{Knowledge, KnowledgeError, KnowledgePlace, QuadPattern};
use serde::Serialize;
use std::collections::BTreeSet;
use trellis_domain::rdf::{Term, Triple};
use trellis_provenance::vocabulary::{prov, rdfs};

/// What a piece of extracted knowledge has as its parts.
const CONTAINS: &str = "https://trustgraph.ai/ns/contains";
const TITLE: &str = "http://purl.org/dc/elements/1.1/title";
/// How far a chunk can be from its document: chunk, page, section, document.
const DEEPEST: usize = 4;
/// Documents that are named.
const MOST: usize = 50;
/// What something derives from, that is looked at.
const MOST_PARENTS: usize = 5;

/// A document that an answer rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    pub uri: String,
    /// Empty if it has none.
    pub title: String,
}

/// The documents behind edges, by IRI.
pub(super) async fn sources(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    edges: &[Triple],
) -> Result<Vec<Source>, KnowledgeError> {
    let look = async |s: Option<Term>, p: &str, o: Option<Term>, g: Option<&str>, limit: usize| {
        let pattern = QuadPattern { s, p: Some(Term::iri(p)), o, g: g.map(str::to_owned), collection: None };
        knowledge.matching(place, &pattern, limit).await
    };
    // Most graphs say nothing of the kind.
    if look(None, CONTAINS, None, Some(GRAPH_SOURCE), 1).await?.is_empty() {
        return Ok(Vec::new());
    }
    let mut pieces = BTreeSet::new();
    for edge in edges {
        let quoted = Term::Quoted { triple: Box::new(edge.clone()) };
        let found = look(None, CONTAINS, Some(quoted), Some(GRAPH_SOURCE), 1).await?;
        pieces.extend(found.into_iter().map(|quad| quad.s));
    }
    let mut documents = BTreeSet::new();
    for _ in 0..DEEPEST {
        let mut next = BTreeSet::new();
        for piece in std::mem::take(&mut pieces).into_iter().take(MOST) {
            let above =
                look(Some(piece.clone()), prov::WAS_DERIVED_FROM, None, Some(GRAPH_SOURCE), MOST_PARENTS).await?;
            if above.is_empty() {
                documents.insert(piece);
            } else {
                next.extend(above.into_iter().map(|quad| quad.o));
            }
        }
        pieces = next.into_iter().filter(|above| !documents.contains(above)).collect();
    }
    let mut sources = Vec::new();
    for document in documents.into_iter().take(MOST) {
        let Some(uri) = document.as_iri().map(str::to_owned) else { continue };
        let mut title = String::new();
        for property in [TITLE, rdfs::LABEL] {
            if title.is_empty() {
                let found = look(Some(document.clone()), property, None, None, 1).await?;
                title = found.first().map(|quad| quad.o.text().to_owned()).unwrap_or_default();
            }
        }
        sources.push(Source { uri, title });
    }
    Ok(sources)
}
