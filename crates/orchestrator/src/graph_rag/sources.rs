//! Which documents edges were taken from: ours, by the graphs that they lie in, and those of others, if whoever extracted
//! them has said so.

use super::edges::GRAPH_SOURCE;
use crate::documents::{NotedPassage, document_of_passage, noted};
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

/// A passage of a document that an answer rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePassage {
    /// The graph that its facts lie in is called so.
    pub uri: String,
    pub document: Source,
    /// The library's document that its lines are counted in.
    pub text: String,
    pub lines: Option<(u64, u64)>,
}

impl std::fmt::Display for SourcePassage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (title, text) = (&self.document.title, &self.text);
        match self.lines {
            Some((first, last)) if first == last => write!(f, "{title} (line {first} of {text})"),
            Some((first, last)) => write!(f, "{title} (lines {first}–{last} of {text})"),
            None => write!(f, "{title} ({text})"),
        }
    }
}

/// The passages that say so, for each edge. Most edges were loaded, and have none.
pub(super) async fn passages_of(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    edge: &Triple,
) -> Result<Vec<String>, KnowledgeError> {
    let Triple { s, p, o } = edge.clone();
    let pattern = QuadPattern { s: Some(s), p: Some(p), o: Some(o), ..QuadPattern::default() };
    let found = knowledge.matching(place, &pattern, MOST_PARENTS).await?;
    let graphs = found.into_iter().filter_map(|quad| quad.g);
    Ok(graphs.filter(|graph| document_of_passage(graph).is_some()).collect())
}

/// Where passages stand, each once, in their order.
pub(super) async fn source_passages(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    passages: impl Iterator<Item = &String>,
) -> Result<Vec<SourcePassage>, KnowledgeError> {
    let mut sources: Vec<SourcePassage> = Vec::new();
    for passage in passages {
        if sources.len() >= MOST || sources.iter().any(|known| known.uri == *passage) {
            continue;
        }
        if let Some(NotedPassage { document, title, text, lines }) = noted(knowledge, place, passage).await? {
            let document = Source { uri: document, title };
            sources.push(SourcePassage { uri: passage.clone(), document, text, lines });
        }
    }
    Ok(sources)
}

/// The documents behind edges, by IRI: those of the passages, and what others say they have extracted them from.
pub(super) async fn sources(
    knowledge: &dyn Knowledge,
    place: &KnowledgePlace,
    passages: &[SourcePassage],
    edges: &[Triple],
) -> Result<Vec<Source>, KnowledgeError> {
    let mut sources: Vec<Source> = passages.iter().map(|passage| passage.document.clone()).collect();
    sources.extend(sources_of_others(knowledge, place, edges).await?);
    sources.sort_by(|one, other| one.uri.cmp(&other.uri));
    sources.dedup_by(|one, other| one.uri == other.uri);
    sources.truncate(MOST);
    Ok(sources)
}

async fn sources_of_others(
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
