//! Loaded knowledge in the tables of the view: the same dictionary, orders and readers, in trees of their own.
//!
//! A collection has a place of its own, under which its quads and terms lie together, as those of a workspace do in the
//! view. So reading one collection is reading one range of keys, a workspace is several of them merged, and a collection
//! goes by giving up its place. A catalogue in the tree of quads says which place a collection has, how many quads it
//! has and what they add up to, and which of its sources are finished; it changes in the batch that it describes.
//!
//! Nothing here can be derived again. What is on disk and cannot be read is left as it is, and told.

mod catalogue;
mod check;
mod graphs;

use super::additions::Additions;
use super::order::{Order, quad_key};
use super::query::Cancellation;
use super::reader::{TermKey, ViewReader};
use super::recent_terms::RecentTerms;
use super::sources::{LoadedReaders, loaded_failed};
use super::term_id::WorkspaceId;
use super::trees::Trees;
use super::{RECENT_TERMS, ViewError, trees};
use catalogue::{Entry, Source, collection_key, place_of, removed_key, source_key};
use lsm_tree::Guard;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard};
use trellis_domain::rdf::Quad;
use trellis_domain::{Caller, Collection, Workspace};
use trellis_orchestrator::knowledge::{MOST_COLLECTIONS, MOST_SOURCES, check, check_source, too_many_collections};
use trellis_orchestrator::ports::{Added, JournalError, KnowledgeError, KnowledgePlace, LoadedBy, LoadedCollection};

/// Keys that are removed in one batch.
const REMOVED_TOGETHER: usize = 10_000;

pub(crate) struct Asserted {
    path: PathBuf,
    trees: Arc<Trees>,
    /// Held while writing; knows which terms need no second write.
    recent_terms: Mutex<RecentTerms<TermKey>>,
    visited: Arc<AtomicU64>,
}

impl Asserted {
    /// Opens what is there, or begins. What was being removed is removed.
    pub(crate) fn open(path: &Path) -> Result<Self, ViewError> {
        let asserted = Self {
            path: path.to_owned(),
            trees: Arc::new(Trees::open_asserted(path)?),
            recent_terms: Mutex::new(RecentTerms::new(RECENT_TERMS)),
            visited: Arc::default(),
        };
        for (key, place) in catalogue::all_removed(&asserted.trees.snapshot())? {
            asserted.sweep(&key, place)?;
        }
        Ok(asserted)
    }

    /// Every file against its checksum: what is wrong with which. None if there is nothing.
    pub(crate) fn damages(path: &Path) -> std::io::Result<Option<Vec<String>>> {
        trees::asserted_damages(path)
    }

    pub(crate) fn add(&self, place: &KnowledgePlace, source: &str, quads: &[Quad]) -> Result<Added, KnowledgeError> {
        check_source(source).map_err(KnowledgeError::Refused)?;
        quads.iter().try_for_each(check).map_err(KnowledgeError::Refused)?;
        let mut recent_terms = self.writer();
        // Before anything is added: what finds no room on disk must not fill the memory.
        self.trees.make_room().map_err(unwritten)?;
        let workspace = WorkspaceId::of(place.workspace.as_str());
        let snapshot = self.trees.snapshot();
        let found = catalogue::entry(&snapshot, workspace, &place.collection).map_err(loaded_failed)?;
        let is_new_collection = found.is_none();
        if is_new_collection
            && catalogue::entries(&snapshot, workspace).map_err(loaded_failed)?.len() >= MOST_COLLECTIONS
        {
            return Err(KnowledgeError::Refused(too_many_collections()));
        }
        let mut entry = found.unwrap_or_else(|| Entry::new(self.trees.next_number()));
        let here = place_of(workspace, &place.collection, entry.generation);
        let mut additions = Additions::to(here, quads.iter(), &mut recent_terms);
        additions.keep_new(&snapshot).map_err(loaded_failed)?;
        for quad in additions.quads() {
            entry.sum.add(&quad_key(here, Order::Spog, quad));
        }
        let new = additions.quads().len() as u64;
        let known = catalogue::source(&snapshot, here, source).map_err(loaded_failed)?;
        let marks = known.as_ref().is_none_or(|known| known.finished && new > 0);
        if new == 0 && !marks {
            return Ok(Added { new });
        }
        if known.is_none() {
            entry.sources += 1;
            if entry.sources > MOST_SOURCES as u64 {
                let most = format!("a collection remembers at most {MOST_SOURCES} sources; load into another one");
                return Err(KnowledgeError::Refused(most));
            }
        }
        let writing = self.trees.write();
        writing.put_quad(&collection_key(workspace, &place.collection), &entry.to_bytes());
        if marks {
            let by = known.and_then(|known| known.by);
            writing.put_quad(&source_key(here, source), &Source { by, ..Source::new(source) }.to_bytes());
        }
        let (written, _) = additions.write(&writing);
        for key in written {
            recent_terms.remember(key);
        }
        writing.show();
        Ok(Added { new })
    }

    pub(crate) fn finish(&self, place: &KnowledgePlace, source: &str) -> Result<(), KnowledgeError> {
        self.add(place, source, &[])?;
        let _alone = self.writer();
        let workspace = WorkspaceId::of(place.workspace.as_str());
        let snapshot = self.trees.snapshot();
        // Somebody may have removed the collection meanwhile: then there is nothing to finish.
        if let Some(entry) = catalogue::entry(&snapshot, workspace, &place.collection).map_err(loaded_failed)? {
            let here = place_of(workspace, &place.collection, entry.generation);
            let known = catalogue::source(&snapshot, here, source).map_err(loaded_failed)?;
            let finished = Source { finished: true, ..known.unwrap_or_else(|| Source::new(source)) };
            let writing = self.trees.write();
            writing.put_quad(&source_key(here, source), &finished.to_bytes());
            writing.show();
        }
        self.trees.persist().map_err(|error| unwritten(error).into())
    }

    /// Notes who loads a source that is there.
    pub(crate) fn note_loader(
        &self,
        place: &KnowledgePlace,
        source: &str,
        caller: &Caller,
    ) -> Result<(), KnowledgeError> {
        let _alone = self.writer();
        self.trees.make_room().map_err(unwritten)?;
        let workspace = WorkspaceId::of(place.workspace.as_str());
        let snapshot = self.trees.snapshot();
        let found = catalogue::entry(&snapshot, workspace, &place.collection).map_err(loaded_failed)?;
        let Some(entry) = found else { return Ok(()) };
        let here = place_of(workspace, &place.collection, entry.generation);
        let known = catalogue::source(&snapshot, here, source).map_err(loaded_failed)?;
        if let Some(known) = known.filter(|known| known.by.as_ref() != Some(caller)) {
            let writing = self.trees.write();
            let noted = Source { by: Some(caller.clone()), ..known };
            writing.put_quad(&source_key(here, source), &noted.to_bytes());
            writing.show();
        }
        Ok(())
    }

    /// Everything that was added is on disk.
    pub(crate) fn save(&self) -> Result<(), JournalError> {
        let _alone = self.writer();
        self.trees.persist().map_err(unwritten)
    }

    pub(crate) fn collections(&self, workspace: &Workspace) -> Result<Vec<LoadedCollection>, ViewError> {
        let snapshot = self.trees.snapshot();
        let workspace = WorkspaceId::of(workspace.as_str());
        let mut listed = Vec::new();
        for (collection, entry) in catalogue::entries(&snapshot, workspace)? {
            let sources = catalogue::sources(&snapshot, place_of(workspace, &collection, entry.generation))?;
            let loader = |source: &Source| source.by.as_ref().map_or(LoadedBy::UNRECORDED, LoadedBy::from);
            let loaded_by: BTreeSet<_> = sources.iter().map(loader).collect();
            let (finished, unfinished): (Vec<_>, Vec<_>) = sources.into_iter().partition(|source| source.finished);
            let mut unfinished: Vec<_> = unfinished.into_iter().map(|source| source.name).collect();
            unfinished.sort();
            let (quads, sources) = (entry.sum.rows, finished.len() as u64);
            listed.push(LoadedCollection {
                collection,
                quads,
                sources,
                unfinished,
                loaded_by: loaded_by.into_iter().collect(),
            });
        }
        Ok(listed)
    }

    /// Gives up the place of a collection, on disk as well, and then what lies there.
    pub(crate) fn remove(&self, place: &KnowledgePlace) -> Result<Option<u64>, KnowledgeError> {
        let workspace = WorkspaceId::of(place.workspace.as_str());
        let (entry, here) = {
            let _alone = self.writer();
            let found = catalogue::entry(&self.trees.snapshot(), workspace, &place.collection);
            let Some(entry) = found.map_err(loaded_failed)? else { return Ok(None) };
            let here = place_of(workspace, &place.collection, entry.generation);
            let writing = self.trees.write();
            writing.remove_quad(&collection_key(workspace, &place.collection));
            writing.put_quad(&removed_key(here), b"");
            writing.show();
            self.trees.flush().map_err(unwritten)?;
            (entry, here)
        };
        self.sweep(&removed_key(here), here).map_err(unwritten)?;
        Ok(Some(entry.sum.rows))
    }

    /// Removes everything under a place that nobody has any more.
    fn sweep(&self, key: &[u8], place: WorkspaceId) -> Result<(), ViewError> {
        let end =
            u64::from_be_bytes(place.0).checked_add(1).map_or_else(|| vec![0xff; 32], |end| end.to_be_bytes().to_vec());
        let start = place.0.as_slice();
        {
            let _alone = self.writer();
            self.trees.flush()?;
            self.trees.drop_tables(start, &end)?;
        }
        loop {
            let _alone = self.writer();
            self.trees.make_room()?;
            let snapshot = self.trees.snapshot();
            let left = |keys: trees::Keys| -> Result<Vec<_>, ViewError> {
                let keys = keys.take(REMOVED_TOGETHER).map(|row| Ok(row.key()?));
                keys.take_while(|key| !matches!(key, Ok(key) if !key.starts_with(start))).collect()
            };
            let (quads, terms) = (left(snapshot.quads_from(start))?, left(snapshot.terms_from(start))?);
            let writing = self.trees.write();
            for key in &quads {
                writing.remove_quad(key);
            }
            for key in &terms {
                writing.remove_term(key);
            }
            if quads.is_empty() && terms.is_empty() {
                writing.remove_quad(key);
                writing.show();
                return self.trees.persist();
            }
            writing.show();
        }
    }

    /// What a reading of the workspace looks at: one collection, or all.
    pub(crate) fn readers(
        &self,
        workspace: &Workspace,
        collection: Option<&Collection>,
        cancellation: &Cancellation,
    ) -> Result<LoadedReaders, ViewError> {
        let snapshot = Arc::new(self.trees.snapshot());
        let workspace = WorkspaceId::of(workspace.as_str());
        let entries = match collection {
            Some(collection) => {
                let entry = catalogue::entry(&snapshot, workspace, collection)?;
                entry.map(|entry| (collection.clone(), entry)).into_iter().collect()
            }
            None => catalogue::entries(&snapshot, workspace)?,
        };
        let filled = entries.into_iter().filter(|(_, entry)| entry.sum.rows > 0);
        let reader = |(collection, entry): (Collection, Entry)| {
            let here = place_of(workspace, &collection, entry.generation);
            ViewReader::new(Arc::clone(&snapshot), here, cancellation.clone(), Arc::clone(&self.visited))
        };
        Ok(LoadedReaders(filled.map(reader).collect()))
    }

    fn writer(&self) -> MutexGuard<'_, RecentTerms<TermKey>> {
        self.recent_terms.lock().expect("no holder of this lock panics")
    }
}

/// What could not be written, or was found damaged on the way.
fn unwritten(error: ViewError) -> JournalError {
    if let ViewError::Files(error) = error {
        let advice = "free some space or check the folder's permissions, then load again";
        return JournalError::Write(format!("knowledge was not stored: {error}; {advice}"));
    }
    loaded_failed(error)
}

impl std::fmt::Debug for Asserted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asserted").field("path", &self.path).finish_non_exhaustive()
    }
}
