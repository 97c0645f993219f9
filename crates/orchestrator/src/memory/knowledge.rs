//! Loaded knowledge as plain sets.

use crate::knowledge::{MOST_COLLECTIONS, check, check_source, too_many_collections};
use crate::ports::{
    Added, BoxFuture, Knowledge, KnowledgeError, KnowledgePlace, LoadedBy, LoadedCollection, QuadPattern,
};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use trellis_domain::rdf::{Quad, Term, Triple};
use trellis_domain::{Caller, Collection, Workspace};
use trellis_provenance::vocabulary::GRAPH_RETRIEVAL;

#[derive(Debug, Default)]
struct Kept {
    quads: BTreeSet<Quad>,
    /// Whether everything of a source is there.
    sources: BTreeMap<String, bool>,
    loaders: BTreeMap<String, LoadedBy>,
}

/// The twin of a store of knowledge.
#[derive(Debug, Default)]
pub struct MemoryKnowledge(Mutex<BTreeMap<KnowledgePlace, Kept>>);

impl MemoryKnowledge {
    /// What a workspace has, of one collection or of all, each quad once.
    pub(super) fn of(&self, workspace: &Workspace, collection: Option<&Collection>) -> BTreeSet<Quad> {
        let kept = self.0.lock();
        let wanted = |place: &KnowledgePlace| {
            place.workspace == *workspace && collection.is_none_or(|collection| place.collection == *collection)
        };
        kept.iter().filter(|(place, _)| wanted(place)).flat_map(|(_, kept)| kept.quads.iter().cloned()).collect()
    }

    fn put(&self, place: &KnowledgePlace, source: &str, quads: Vec<Quad>) -> Result<Added, KnowledgeError> {
        check_source(source).map_err(KnowledgeError::Refused)?;
        quads.iter().try_for_each(check).map_err(KnowledgeError::Refused)?;
        let mut all = self.0.lock();
        let others = all.keys().filter(|other| other.workspace == place.workspace && *other != place).count();
        if others >= MOST_COLLECTIONS {
            return Err(KnowledgeError::Refused(too_many_collections()));
        }
        let kept = all.entry(place.clone()).or_default();
        kept.sources.insert(source.to_owned(), false);
        let before = kept.quads.len();
        kept.quads.extend(quads.into_iter().map(canonical_quad));
        Ok(Added { new: (kept.quads.len() - before) as u64 })
    }

    fn take_graphs(&self, place: &KnowledgePlace, source: &str, graphs: &[String]) -> u64 {
        let mut all = self.0.lock();
        let Some(kept) = all.get_mut(place) else { return 0 };
        let before = kept.quads.len();
        kept.quads.retain(|quad| {
            let graph = quad.g.as_deref().unwrap_or_default();
            graph == GRAPH_RETRIEVAL || !graphs.iter().any(|gone| gone == graph)
        });
        kept.sources.remove(source);
        kept.loaders.remove(source);
        let removed = before - kept.quads.len();
        if kept.quads.is_empty() && kept.sources.is_empty() {
            all.remove(place);
        }
        removed as u64
    }
}

fn canonical_quad(quad: Quad) -> Quad {
    let g = quad.g.filter(|graph| !graph.is_empty());
    Quad { s: canonical(quad.s), p: canonical(quad.p), o: canonical(quad.o), g }
}

/// Equal terms as one: `xsd:string` is no datatype at all, and language tags have no case.
fn canonical(term: Term) -> Term {
    match term {
        Term::Literal { value, language, .. } if !language.is_empty() => {
            Term::Literal { value, datatype: String::new(), language: language.to_ascii_lowercase() }
        }
        Term::Literal { value, datatype, .. } if datatype == "http://www.w3.org/2001/XMLSchema#string" => {
            Term::literal(value)
        }
        Term::Quoted { triple } => {
            let Triple { s, p, o } = *triple;
            Term::Quoted { triple: Box::new(Triple { s: canonical(s), p: canonical(p), o: canonical(o) }) }
        }
        term @ (Term::Iri { .. } | Term::Blank { .. } | Term::Literal { .. }) => term,
    }
}

impl Knowledge for MemoryKnowledge {
    fn add<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        quads: Vec<Quad>,
    ) -> BoxFuture<'a, Result<Added, KnowledgeError>> {
        Box::pin(std::future::ready(self.put(place, source, quads)))
    }

    fn finish<'a>(&'a self, place: &'a KnowledgePlace, source: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        let finished = self.put(place, source, Vec::new()).map(|_| {
            if let Some(kept) = self.0.lock().get_mut(place) {
                kept.sources.insert(source.to_owned(), true);
            }
        });
        Box::pin(std::future::ready(finished))
    }

    fn note_loader<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        caller: &'a Caller,
    ) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        if let Some(kept) = self.0.lock().get_mut(place).filter(|kept| kept.sources.contains_key(source)) {
            kept.loaders.insert(source.to_owned(), caller.into());
        }
        Box::pin(std::future::ready(Ok(())))
    }

    fn save<'a>(&'a self, _: &'a KnowledgePlace, _: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn collections<'a>(
        &'a self,
        workspace: &'a Workspace,
    ) -> BoxFuture<'a, Result<Vec<LoadedCollection>, KnowledgeError>> {
        let all = self.0.lock();
        let listed = all.iter().filter(|(place, _)| place.workspace == *workspace).map(|(place, kept)| {
            let unfinished = kept.sources.iter().filter(|(_, finished)| !**finished);
            let loader = |source: &String| kept.loaders.get(source).cloned().unwrap_or(LoadedBy::UNRECORDED);
            let loaded_by: BTreeSet<_> = kept.sources.keys().map(loader).collect();
            LoadedCollection {
                collection: place.collection.clone(),
                quads: kept.quads.len() as u64,
                sources: kept.sources.values().filter(|finished| **finished).count() as u64,
                unfinished: unfinished.map(|(source, _)| source.clone()).collect(),
                loaded_by: loaded_by.into_iter().collect(),
            }
        });
        Box::pin(std::future::ready(Ok(listed.collect())))
    }

    fn remove<'a>(&'a self, place: &'a KnowledgePlace) -> BoxFuture<'a, Result<Option<u64>, KnowledgeError>> {
        let removed = self.0.lock().remove(place).map(|kept| kept.quads.len() as u64);
        Box::pin(std::future::ready(Ok(removed)))
    }

    fn remove_graphs<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        graphs: &'a [String],
    ) -> BoxFuture<'a, Result<u64, KnowledgeError>> {
        Box::pin(std::future::ready(Ok(self.take_graphs(place, source, graphs))))
    }

    fn matching<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        pattern: &'a QuadPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Quad>, KnowledgeError>> {
        let all = self.of(&place.workspace, Some(&place.collection));
        let found = all.into_iter().filter(|quad| pattern.matches(quad)).take(limit).collect();
        Box::pin(std::future::ready(Ok(found)))
    }
}
