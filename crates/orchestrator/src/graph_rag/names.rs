//! What entities are called, and which of them a question is about.
//!
//! The names lie in a search index, in a collection for each collection of knowledge: found by words and, if a model is
//! configured for it, by meaning.

use crate::documents::{MOST_DOCUMENTS_AT_ONCE, MOST_FOUND, is_notes};
use crate::ports::{
    DocumentInfo, Embedder, KnowledgePlace, Passage, PassageVectors, Place, Search, SearchDocument, SearchError,
    SearchQuery, TextRole,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::Hash;
use trellis_domain::rdf::{Quad, Term};

/// Bytes of a name and of an IRI that are kept. What is longer is nobody's name.
const LONGEST_NAME: usize = 300;
const LONGEST_IRI: usize = 900;
/// Names that are kept as one document of the index.
const AT_ONCE: usize = 8_192;
/// So few names are kept one by one. Entities that many small sources tell of, as documents do, are in the index once.
const FEW: usize = 1_024;

/// Properties whose values are names.
const NAMING: [&str; 9] = [
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://www.w3.org/2004/02/skos/core#altLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
    "http://purl.org/dc/elements/1.1/title",
    "http://purl.org/dc/terms/title",
    "http://schema.org/alternateName",
];

/// One of the names that an entity has.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityName {
    pub iri: String,
    pub name: String,
}

/// Entities for concepts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FoundEntities {
    /// Each once, in the order of the concepts.
    pub(super) entities: Vec<EntityName>,
    /// Why meaning was left out, if it was.
    pub(super) words_only: Option<String>,
}

/// The index of names.
#[derive(Debug, Clone)]
pub struct EntityNames {
    pub search: Arc<dyn Search>,
    pub embedder: Option<Arc<dyn Embedder>>,
}

impl EntityNames {
    /// Keeps names. Those that are there already are not there twice if they come together again, as they do when the
    /// same source is loaded anew.
    pub async fn put(&self, place: &KnowledgePlace, names: &[EntityName]) -> Result<(), SearchError> {
        if names.len() <= FEW {
            return self.put_each(place, names).await;
        }
        for names in names.chunks(AT_ONCE) {
            let vectors = self.vectors(names).await;
            let document = document(names, vectors);
            self.search.put(&place.workspace, &place.collection, vec![document]).await?;
        }
        Ok(())
    }

    /// Keeps those names that are not there yet.
    async fn put_each(&self, place: &KnowledgePlace, names: &[EntityName]) -> Result<(), SearchError> {
        let model = self.embedder.as_ref().map(|embedder| embedder.model());
        let mut new = Vec::new();
        for name in names {
            let id = id(std::slice::from_ref(name));
            let known = self.search.document(&place.workspace, &place.collection, &id).await?;
            if known.is_none_or(|known| model.is_some() && known.model.as_deref() != model) {
                new.push(name.clone());
            }
        }
        for names in new.chunks(MOST_DOCUMENTS_AT_ONCE) {
            let vectors = self.vectors(names).await;
            let of_one = |at: usize| {
                let PassageVectors { model, vectors } = vectors.as_ref()?;
                Some(PassageVectors { model: model.clone(), vectors: vec![vectors.get(at)?.clone()] })
            };
            let documents = names.iter().enumerate().map(|(at, name)| document(std::slice::from_ref(name), of_one(at)));
            self.search.put(&place.workspace, &place.collection, documents.collect()).await?;
        }
        Ok(())
    }

    /// Takes names out that were kept one by one, as those of documents are. Names of large files stay.
    pub(super) async fn remove_each(&self, place: &KnowledgePlace, names: &[EntityName]) -> Result<(), SearchError> {
        for names in names.chunks(AT_ONCE) {
            let ids: Vec<_> = names.iter().map(|name| id(std::slice::from_ref(name))).collect();
            self.search.remove_all(&place.workspace, &place.collection, &ids).await?;
        }
        Ok(())
    }

    pub async fn remove(&self, place: &KnowledgePlace) -> Result<(), SearchError> {
        self.search.remove_collection(&place.workspace, &place.collection).await
    }

    /// Whether there is any name.
    pub(super) async fn knows_any(&self, place: &KnowledgePlace) -> Result<bool, SearchError> {
        Ok(!self.search.documents(&place.workspace, &place.collection, None, 1).await?.is_empty())
    }

    /// Names are found by their words if the model is not there: a load does not fail because of it.
    async fn vectors(&self, names: &[EntityName]) -> Option<PassageVectors> {
        let embedder = self.embedder.as_ref()?;
        let texts = names.iter().map(|name| name.name.clone()).collect();
        match embedder.embed(texts, TextRole::Passage).await {
            Ok(vectors) => Some(PassageVectors { model: embedder.model().to_owned(), vectors }),
            Err(error) => {
                tracing::warn!(%error, "entities are indexed by their words only; loading again adds vectors");
                None
            }
        }
    }

    /// Entities that are called like the concepts, at most so many, each concept with an equal share.
    pub(super) async fn find(
        &self,
        place: &KnowledgePlace,
        concepts: &[String],
        limit: usize,
    ) -> Result<FoundEntities, SearchError> {
        let share = (limit / concepts.len().max(1)).max(1);
        let (vectors, words_only) = self.vectors_of(concepts).await;
        let mut found = FoundEntities { entities: Vec::new(), words_only };
        let mut seen = BTreeSet::new();
        for (place_of, concept) in concepts.iter().enumerate() {
            let model = self.embedder.as_ref().map(|embedder| embedder.model().to_owned());
            let vector = model.zip(vectors.get(place_of).cloned());
            // Some entities have several names.
            let query = SearchQuery { text: concept.clone(), vector, limit: (2 * share).min(MOST_FOUND) };
            let passages = self.search.find(&place.workspace, &place.collection, query).await?.passages;
            let names = passages.into_iter().filter_map(|found| {
                let iri = found.passage.place.headings.into_iter().next()?;
                Some(EntityName { iri, name: found.passage.text })
            });
            found.entities.extend(names.filter(|name| seen.insert(name.iri.clone())).take(share));
        }
        found.entities.truncate(limit);
        Ok(found)
    }

    async fn vectors_of(&self, concepts: &[String]) -> (Vec<Vec<f32>>, Option<String>) {
        match &self.embedder {
            None => (Vec::new(), Some("no embedding model is configured".to_owned())),
            Some(embedder) => match embedder.embed(concepts.to_vec(), TextRole::Question).await {
                Ok(vectors) => (vectors, None),
                Err(error) => (Vec::new(), Some(format!("the embedding model failed: {error}"))),
            },
        }
    }
}

/// Names as a document of the index, which is called by its content.
fn document(names: &[EntityName], vectors: Option<PassageVectors>) -> SearchDocument {
    let info = DocumentInfo { id: id(names), title: String::new(), text: String::new(), hash: hash(names) };
    // The words of an IRI are found as those of a heading are.
    let passage = |name: &EntityName| Passage {
        text: name.name.clone(),
        place: Place { headings: vec![name.iri.clone()], bytes: 0..0, lines: (0, 0) },
    };
    SearchDocument { info, passages: names.iter().map(passage).collect(), vectors }
}

fn id(names: &[EntityName]) -> String {
    format!("names:{}", hash(names))
}

fn hash(names: &[EntityName]) -> Hash {
    Hash::of_joined(names.iter().flat_map(|name| [name.iri.as_bytes(), b"\n", name.name.as_bytes(), b"\n"]))
}

/// The names that quads give to entities. One that is given none here is called as its IRI ends.
pub(super) fn names_in(quads: &[Quad]) -> BTreeSet<EntityName> {
    let mut names = BTreeSet::new();
    let mut labelled = BTreeSet::new();
    // Documents are no entities that questions are about.
    let quads = || quads.iter().filter(|quad| !quad.g.as_deref().is_some_and(is_notes));
    for quad in quads() {
        let (Some(iri), Term::Literal { value, .. }) = (quad.s.as_iri(), &quad.o) else { continue };
        let value = value.trim();
        let names_it = quad.p.as_iri().is_some_and(|property| NAMING.contains(&property));
        if names_it && !value.is_empty() && value.len() <= LONGEST_NAME && iri.len() <= LONGEST_IRI {
            labelled.insert(iri);
            names.insert(EntityName { iri: iri.to_owned(), name: value.to_owned() });
        }
    }
    let ends = quads().flat_map(|quad| [&quad.s, &quad.o]).filter_map(Term::as_iri);
    for iri in ends.filter(|iri| iri.len() <= LONGEST_IRI && !labelled.contains(*iri)) {
        let name = in_words(local_name(iri));
        if name.chars().filter(|c| c.is_alphabetic()).count() > 1 && name.len() <= LONGEST_NAME {
            names.insert(EntityName { iri: iri.to_owned(), name });
        }
    }
    names
}

/// What an IRI ends with: the part that people read.
pub(super) fn local_name(iri: &str) -> &str {
    let end = iri.trim_end_matches(['/', '#']);
    let local = end.rfind('#').or_else(|| end.rfind('/')).or_else(|| end.rfind(':')).map_or(end, |at| &end[at + 1..]);
    if local.is_empty() { iri } else { local }
}

/// `bornIn` and `born_in` as `born In` and `born in`.
pub(super) fn in_words(name: &str) -> String {
    let mut words = String::with_capacity(name.len());
    let mut before_is_lower = false;
    for c in name.chars() {
        if before_is_lower && c.is_uppercase() {
            words.push(' ');
        }
        before_is_lower = c.is_lowercase();
        words.push(if matches!(c, '_' | '-' | '+') { ' ' } else { c });
    }
    words.trim().to_owned()
}
