//! Loaded knowledge whose entities can be found by their names: every load passes here.

use super::names::{EntityName, EntityNames, names_in};
use super::open_sources::{Due, OpenSources, SourceKey};
use crate::documents::document_of_passage;
use crate::ports::{
    Added, BoxFuture, JournalError, Knowledge, KnowledgeError, KnowledgePlace, LoadedCollection, QuadPattern,
    SearchError,
};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::{Caller, Workspace};

/// Quads of a graph that are looked at for names, and names that leave at once. What is beyond stays in the index: around
/// it, nothing is found.
const MOST_QUADS: usize = 2_000;
const MOST_LEAVING: usize = 50_000;

/// Knowledge with an index of its entities' names. A source that is finished is in both; of one that is not, some first
/// part may be in either, and loading it again completes it.
#[derive(Debug, Clone)]
pub struct IndexedKnowledge {
    knowledge: Arc<dyn Knowledge>,
    names: EntityNames,
    open: Arc<Mutex<OpenSources>>,
}

impl IndexedKnowledge {
    pub fn new(knowledge: Arc<dyn Knowledge>, names: EntityNames) -> Self {
        Self { knowledge, names, open: Arc::default() }
    }

    /// Names that cannot be written now are kept for another attempt.
    async fn write(&self, due: Due) -> Result<(), KnowledgeError> {
        let mut writing = Writing { open: &self.open, unwritten: due };
        let Due { key, names } = &writing.unwritten;
        let KnowledgePlace { workspace, collection } = &key.place;
        match self.names.put(&key.place, names).await {
            Ok(()) => {}
            // There are more entities than an index holds: the quads are there all the same.
            Err(SearchError::Invalid(why)) => {
                tracing::warn!(%workspace, %collection, why, "some entities cannot be found by their names");
            }
            Err(error @ SearchError::Busy) => return Err(KnowledgeError::Busy(error.to_string())),
            Err(error @ SearchError::Index { .. }) => return Err(JournalError::Read(error.to_string()).into()),
        }
        writing.unwritten.names.clear();
        Ok(())
    }

    /// The names in graphs of passages, by entity. Other graphs have names that were written together, or none.
    async fn names_within(
        &self,
        place: &KnowledgePlace,
        graphs: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<EntityName>>, KnowledgeError> {
        let (mut names, mut count) = (BTreeMap::<String, BTreeSet<EntityName>>::new(), 0);
        for graph in graphs.iter().filter(|graph| document_of_passage(graph).is_some()) {
            let within = QuadPattern { g: Some(graph.clone()), ..QuadPattern::default() };
            for name in names_in(&self.knowledge.matching(place, &within, MOST_QUADS).await?) {
                count += usize::from(names.entry(name.iri.clone()).or_default().insert(name));
            }
            if count >= MOST_LEAVING {
                break;
            }
        }
        Ok(names)
    }

    async fn forget_unused(
        &self,
        place: &KnowledgePlace,
        names: BTreeMap<String, BTreeSet<EntityName>>,
    ) -> Result<(), KnowledgeError> {
        let mut unused = Vec::new();
        for (iri, names) in names {
            if !self.is_used(place, &iri).await? {
                unused.extend(names);
            }
        }
        if unused.is_empty() {
            return Ok(());
        }
        let failed = |error: SearchError| match error {
            SearchError::Busy => KnowledgeError::Busy(error.to_string()),
            SearchError::Invalid(_) | SearchError::Index { .. } => JournalError::Read(error.to_string()).into(),
        };
        self.names.remove_each(place, &unused).await.map_err(failed)?;
        // Somebody may have said something of them meanwhile, and found their names still written.
        let mut back = Vec::new();
        for name in unused {
            if self.is_used(place, &name.iri).await? {
                back.push(name);
            }
        }
        self.names.put(place, &back).await.map_err(failed)
    }

    /// Whether anything is said of an entity.
    async fn is_used(&self, place: &KnowledgePlace, iri: &str) -> Result<bool, KnowledgeError> {
        let about = QuadPattern { s: Some(Term::iri(iri)), ..QuadPattern::default() };
        let with = QuadPattern { o: Some(Term::iri(iri)), ..QuadPattern::default() };
        for pattern in [about, with] {
            if !self.knowledge.matching(place, &pattern, 1).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes what is left of a source that had to make room. Whoever came instead has nothing to do with it: a failure is
    /// told to whoever finishes that source.
    async fn write_of_another(&self, due: Due) {
        let key = due.key.clone();
        if let Err(error) = self.write(due).await {
            let (KnowledgePlace { workspace, collection }, source) = (&key.place, &key.source);
            tracing::warn!(%workspace, %collection, source, %error, "names of entities were not written");
        }
    }
}

fn lost(source: &str) -> KnowledgeError {
    let lost = "names of its entities could not be written and are lost; load it again";
    JournalError::Read(format!("the source `{source}` is not whole: {lost}")).into()
}

/// Names on their way. Those that have not arrived when this ends, also because nobody waits any more, are put back.
struct Writing<'a> {
    open: &'a Mutex<OpenSources>,
    unwritten: Due,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let names = std::mem::take(&mut self.unwritten.names);
        if !names.is_empty() {
            self.open.lock().put_back(Due { key: self.unwritten.key.clone(), names });
        }
    }
}

impl Knowledge for IndexedKnowledge {
    fn add<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        quads: Vec<Quad>,
    ) -> BoxFuture<'a, Result<Added, KnowledgeError>> {
        Box::pin(async move {
            let names = names_in(&quads);
            let added = self.knowledge.add(place, source, quads).await?;
            let key = SourceKey { place: place.clone(), source: source.to_owned() };
            let (due, evicted) = self.open.lock().collect(&key, names);
            if let Some(evicted) = evicted {
                self.write_of_another(evicted).await;
            }
            if let Some(due) = due {
                self.write(due).await?;
            }
            Ok(added)
        })
    }

    fn finish<'a>(&'a self, place: &'a KnowledgePlace, source: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        Box::pin(async move {
            let key = SourceKey { place: place.clone(), source: source.to_owned() };
            let rest = self.open.lock().rest(&key).ok_or_else(|| lost(source))?;
            self.write(rest).await?;
            self.knowledge.finish(place, source).await
        })
    }

    fn note_loader<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        caller: &'a Caller,
    ) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        self.knowledge.note_loader(place, source, caller)
    }

    fn save<'a>(&'a self, place: &'a KnowledgePlace, source: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        Box::pin(async move {
            let key = SourceKey { place: place.clone(), source: source.to_owned() };
            let so_far = self.open.lock().so_far(&key).ok_or_else(|| lost(source))?;
            self.write(so_far).await?;
            self.knowledge.save(place, source).await
        })
    }

    fn collections<'a>(
        &'a self,
        workspace: &'a Workspace,
    ) -> BoxFuture<'a, Result<Vec<LoadedCollection>, KnowledgeError>> {
        self.knowledge.collections(workspace)
    }

    fn remove<'a>(&'a self, place: &'a KnowledgePlace) -> BoxFuture<'a, Result<Option<u64>, KnowledgeError>> {
        Box::pin(async move {
            self.open.lock().forget(place);
            let removed = self.knowledge.remove(place).await?;
            // Also if there was nothing: a crash may have left names behind.
            self.names.remove(place).await.map_err(|error| JournalError::Read(error.to_string()))?;
            Ok(removed)
        })
    }

    /// Names of entities that nothing is said of any more leave as well.
    fn remove_graphs<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        graphs: &'a [String],
    ) -> BoxFuture<'a, Result<u64, KnowledgeError>> {
        Box::pin(async move {
            let names = self.names_within(place, graphs).await?;
            let removed = self.knowledge.remove_graphs(place, source, graphs).await?;
            self.open.lock().forget_source(&SourceKey { place: place.clone(), source: source.to_owned() });
            self.forget_unused(place, names).await?;
            Ok(removed)
        })
    }

    fn matching<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        pattern: &'a QuadPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Quad>, KnowledgeError>> {
        self.knowledge.matching(place, pattern, limit)
    }
}

#[cfg(test)]
#[path = "indexed_tests.rs"]
mod tests;
