//! Names of entities that wait to be written, by the source that they were loaded from, and what became of those that
//! could not be.

use super::names::EntityName;
use crate::ports::KnowledgePlace;
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Names that are collected before they are written, and their bytes: each writing waits for the disk.
const FULL: usize = 8_192;
const FULL_BYTES: usize = 2 << 20;
/// Names that are kept for another attempt when they could not be written.
const MOST_KEPT: usize = 4 * FULL;
/// Names of a source that are remembered, so that they are not written again and again. More are written twice, which
/// changes nothing but the room that they take.
const REMEMBERED: usize = 65_536;
/// Sources that are loaded at once. Whoever comes when there are more has the oldest written, which may be abandoned.
const MOST_SOURCES: usize = 32;
/// Sources of which it is known that names are missing. They are few: their index failed while they were not looked at.
const MOST_BROKEN: usize = 10_000;

/// A source in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceKey {
    pub(super) place: KnowledgePlace,
    pub(super) source: String,
}

/// Names that are to be written now.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) key: SourceKey,
    pub(super) names: Vec<EntityName>,
}

#[derive(Debug, Default)]
pub(super) struct OpenSources {
    /// Those that were used last are last.
    open: Vec<OpenSource>,
    broken: VecDeque<Broken>,
}

/// What is not written yet of a source.
#[derive(Debug)]
struct OpenSource {
    key: SourceKey,
    names: Vec<EntityName>,
    bytes: usize,
    seen: HashSet<u64>,
}

/// A source with names that are lost.
#[derive(Debug)]
struct Broken {
    key: SourceKey,
    /// Whoever loads it knows: what comes from now on is a load from the start.
    is_told: bool,
}

impl OpenSource {
    fn new(key: SourceKey) -> Self {
        Self { key, names: Vec::new(), bytes: 0, seen: HashSet::new() }
    }

    fn collect(&mut self, names: impl IntoIterator<Item = EntityName>) {
        for name in names {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            if self.seen.len() >= REMEMBERED {
                self.seen.clear();
            }
            if self.seen.insert(hasher.finish()) {
                self.bytes += size(&name);
                self.names.push(name);
            }
        }
    }

    fn take(&mut self) -> Due {
        self.bytes = 0;
        Due { key: self.key.clone(), names: std::mem::take(&mut self.names) }
    }
}

fn size(name: &EntityName) -> usize {
    name.iri.len() + name.name.len()
}

impl OpenSources {
    /// Collects names. Gives those of this source that are due, and what is left of another that has to make room.
    pub(super) fn collect(
        &mut self,
        key: &SourceKey,
        names: impl IntoIterator<Item = EntityName>,
    ) -> (Option<Due>, Option<Due>) {
        self.broken.retain(|broken| !broken.is_told || broken.key != *key);
        let mut entry = self.remove(key).unwrap_or_else(|| OpenSource::new(key.clone()));
        entry.collect(names);
        let is_full = entry.names.len() >= FULL || entry.bytes >= FULL_BYTES;
        let due = is_full.then(|| entry.take());
        let evicted = (self.open.len() >= MOST_SOURCES).then(|| self.open.remove(0).take());
        self.open.push(entry);
        (due, evicted.filter(|evicted| !evicted.names.is_empty()))
    }

    /// What a source has that is not written yet. It stays open. None if some of it is lost.
    pub(super) fn so_far(&mut self, key: &SourceKey) -> Option<Due> {
        if self.tells_broken(key) {
            return None;
        }
        let open = self.open.iter_mut().find(|known| known.key == *key);
        Some(open.map_or_else(|| Due { key: key.clone(), names: Vec::new() }, OpenSource::take))
    }

    /// What is left of a source. None if some of it is lost: it has to be loaded again.
    pub(super) fn rest(&mut self, key: &SourceKey) -> Option<Due> {
        let mut rest = self.remove(key).unwrap_or_else(|| OpenSource::new(key.clone()));
        if self.tells_broken(key) { None } else { Some(rest.take()) }
    }

    /// Whether names of a source are lost. Whoever asks knows it from then on.
    fn tells_broken(&mut self, key: &SourceKey) -> bool {
        let broken = self.broken.iter_mut().find(|broken| broken.key == *key);
        broken.map(|broken| broken.is_told = true).is_some()
    }

    /// Names that could not be written wait for another attempt.
    pub(super) fn put_back(&mut self, due: Due) {
        let Due { key, mut names } = due;
        let mut entry = self.remove(&key).unwrap_or_else(|| OpenSource::new(key.clone()));
        if self.open.len() >= MOST_SOURCES || names.len() + entry.names.len() > MOST_KEPT {
            return self.lose(key);
        }
        // In their order: the same names in the same order are written once.
        names.append(&mut entry.names);
        entry.bytes = names.iter().map(size).sum();
        entry.names = names;
        self.open.push(entry);
    }

    /// Names of this source are gone.
    pub(super) fn lose(&mut self, key: SourceKey) {
        self.broken.retain(|broken| broken.key != key);
        if self.broken.len() >= MOST_BROKEN {
            self.broken.pop_front();
        }
        self.broken.push_back(Broken { key, is_told: false });
    }

    pub(super) fn forget(&mut self, place: &KnowledgePlace) {
        self.open.retain(|open| open.key.place != *place);
        self.broken.retain(|broken| broken.key.place != *place);
    }

    /// The names of a source are not written any more.
    pub(super) fn forget_source(&mut self, key: &SourceKey) {
        self.open.retain(|open| open.key != *key);
        self.broken.retain(|broken| broken.key != *key);
    }

    fn remove(&mut self, key: &SourceKey) -> Option<OpenSource> {
        let at = self.open.iter().position(|known| known.key == *key)?;
        Some(self.open.remove(at))
    }
}
