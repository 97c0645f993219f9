//! Loaded knowledge whose entities can be found by their names: every load passes here.

use super::names::{EntityName, EntityNames, names_in};
use crate::ports::{
    Added, BoxFuture, JournalError, Knowledge, KnowledgeError, KnowledgePlace, LoadedCollection, QuadPattern,
    SearchError,
};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use trellis_domain::Workspace;
use trellis_domain::rdf::Quad;

/// Names that are collected before they are written: each writing waits for the disk.
const FULL: usize = 8_192;
/// Names of a source that are remembered, so that they are not written again and again. More are written twice, which
/// changes nothing but the room that they take.
const REMEMBERED: usize = 65_536;
/// Sources that are loaded at once. Whoever comes when there are more has the oldest written, which may be abandoned.
const MOST_SOURCES: usize = 32;

/// Knowledge with an index of its entities' names. A source that is finished is in both; of one that is not, some first
/// part may be in either, and loading it again completes it.
#[derive(Debug, Clone)]
pub struct IndexedKnowledge {
    knowledge: Arc<dyn Knowledge>,
    names: EntityNames,
    open: Arc<Mutex<Vec<OpenSource>>>,
}

/// What is not written yet of a source.
#[derive(Debug)]
struct OpenSource {
    place: KnowledgePlace,
    source: String,
    names: Vec<EntityName>,
    seen: HashSet<u64>,
}

impl OpenSource {
    fn take(&mut self, names: impl IntoIterator<Item = EntityName>) {
        for name in names {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            if self.seen.len() >= REMEMBERED {
                self.seen.clear();
            }
            if self.seen.insert(hasher.finish()) {
                self.names.push(name);
            }
        }
    }
}

type Due = (KnowledgePlace, Vec<EntityName>);

impl IndexedKnowledge {
    pub fn new(knowledge: Arc<dyn Knowledge>, names: EntityNames) -> Self {
        Self { knowledge, names, open: Arc::default() }
    }

    /// Collects names; gives those that are due to be written.
    fn collect(&self, place: &KnowledgePlace, source: &str, names: impl IntoIterator<Item = EntityName>) -> Vec<Due> {
        let mut open = self.open.lock();
        let mut due = Vec::new();
        let at = open.iter().position(|known| known.place == *place && known.source == source);
        let mut entry = at.map_or_else(
            || OpenSource { place: place.clone(), source: source.to_owned(), names: Vec::new(), seen: HashSet::new() },
            |at| open.remove(at),
        );
        entry.take(names);
        if entry.names.len() >= FULL {
            due.push((entry.place.clone(), std::mem::take(&mut entry.names)));
        }
        if open.len() >= MOST_SOURCES {
            let oldest = open.remove(0);
            due.push((oldest.place, oldest.names));
        }
        open.push(entry);
        due
    }

    /// What is left of a source.
    fn rest(&self, place: &KnowledgePlace, source: &str) -> Option<Due> {
        let mut open = self.open.lock();
        let at = open.iter().position(|known| known.place == *place && known.source == source)?;
        let OpenSource { place, names, .. } = open.remove(at);
        Some((place, names))
    }

    async fn write(&self, due: impl IntoIterator<Item = Due>) -> Result<(), KnowledgeError> {
        for (place, names) in due {
            match self.names.put(&place, &names).await {
                Ok(()) => {}
                // There are more entities than an index holds: the quads are there all the same.
                Err(SearchError::Invalid(why)) => {
                    let KnowledgePlace { workspace, collection } = &place;
                    tracing::warn!(%workspace, %collection, why, "some entities cannot be found by their names");
                }
                Err(error @ SearchError::Busy) => return Err(KnowledgeError::Busy(error.to_string())),
                Err(error @ SearchError::Index { .. }) => return Err(JournalError::Read(error.to_string()).into()),
            }
        }
        Ok(())
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
            let due = self.collect(place, source, names);
            self.write(due).await?;
            Ok(added)
        })
    }

    fn finish<'a>(&'a self, place: &'a KnowledgePlace, source: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        Box::pin(async move {
            let rest = self.rest(place, source);
            self.write(rest).await?;
            self.knowledge.finish(place, source).await
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
            self.open.lock().retain(|open| open.place != *place);
            let removed = self.knowledge.remove(place).await?;
            // Also if there was nothing: a crash may have left names behind.
            self.names.remove(place).await.map_err(|error| JournalError::Read(error.to_string()))?;
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
