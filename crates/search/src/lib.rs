//! The embedded search index: documents in a folder, found by words and by vectors.
//!
//! Each collection has a folder of its own, with an index of its words ([`collection`]) and a file of vectors for each
//! model ([`vectors`]). So nothing that others keep is looked at, ranks differently or is slower because of it. The index
//! of words decides what exists: vectors of documents that it does not have are free space.
//!
//! Owns the files below its folder. Does not read documents and asks no model: whoever loads documents does.

mod check;
mod collection;
mod finding;
mod folders;
mod live_rows;
mod schema;
mod sketches;
mod vectors;

pub use check::{CheckedSearch, check};

use collection::{ChangeError, Opened};
use folders::Folders;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::documents::{Gate, check_documents};
use trellis_orchestrator::ports::{
    FoundPassages, IndexedDocument, Search, SearchDocument, SearchError, SearchFuture, SearchQuery,
};

/// Collections that are kept open. Each holds a few files, threads that merge, and memory while documents are added.
const OPEN_COLLECTIONS: usize = 8;
/// Searches at once, in all and of one workspace; the same for changes.
const FINDING: (usize, usize) = (8, 4);
const CHANGING: (usize, usize) = (2, 1);
/// How long somebody waits for that.
const WAITING: Duration = Duration::from_secs(30);

/// The search index of a data folder. Whoever opens it has the folder's lock.
#[derive(Debug, Clone)]
pub struct EmbeddedSearch {
    inner: Arc<Inner>,
    finding: Gate,
    changing: Gate,
}

type CollectionPlace = (Workspace, Collection);

#[derive(Debug)]
struct Inner {
    folders: Folders,
    /// The last used is the last.
    open: Mutex<Vec<(CollectionPlace, Arc<Opened>)>>,
}

impl EmbeddedSearch {
    /// Nothing is read or made before it is needed.
    pub fn new(folder: &Path) -> Self {
        let inner = Inner { folders: Folders::new(folder), open: Mutex::default() };
        let gate = |(all, of_one)| Gate::new(all, of_one, WAITING);
        Self { inner: Arc::new(inner), finding: gate(FINDING), changing: gate(CHANGING) }
    }

    /// Does something on a thread that may wait for the disk. What is begun is done to its end.
    async fn perform<T: Send + 'static>(
        &self,
        gate: &Gate,
        workspace: &Workspace,
        work: impl FnOnce(&Inner) -> Result<T, SearchError> + Send + 'static,
    ) -> Result<T, SearchError> {
        let place = gate.enter(workspace).await.ok_or(SearchError::Busy)?;
        let inner = Arc::clone(&self.inner);
        let working = tokio::task::spawn_blocking(move || {
            let _place = place;
            work(&inner)
        });
        let failed = |why: tokio::task::JoinError| SearchError::Index { doing: "used", why: why.to_string() };
        working.await.map_err(failed)?
    }
}

impl Inner {
    /// An open collection. None if there is none and none is to be made.
    fn collection(&self, key: &(Workspace, Collection), make: bool) -> Result<Option<Arc<Opened>>, SearchError> {
        let mut open = self.open.lock();
        if let Some(at) = open.iter().position(|(known, _)| known == key) {
            let entry = open.remove(at);
            let found = Arc::clone(&entry.1);
            open.push(entry);
            return Ok(Some(found));
        }
        let folder = match self.folders.find(&key.0, &key.1)? {
            Some(folder) => folder,
            None if make => self.folders.make(&key.0, &key.1)?,
            None => return Ok(None),
        };
        let opened = Arc::new(Opened::open(&folder)?);
        // One that is in use stays: a collection must not be open twice.
        if open.len() >= OPEN_COLLECTIONS
            && let Some(idle) = open.iter().position(|(_, opened)| Arc::strong_count(opened) == 1)
        {
            open.remove(idle);
        }
        open.push((key.clone(), Arc::clone(&opened)));
        Ok(Some(opened))
    }

    fn put(&self, key: &(Workspace, Collection), documents: &[SearchDocument]) -> Result<(), SearchError> {
        check_documents(documents)?;
        loop {
            let Some(collection) = self.collection(key, true)? else { continue };
            match collection.put(documents) {
                // Somebody has removed the collection meanwhile: these documents begin it anew.
                Err(ChangeError::CollectionRemoved) => {}
                Err(ChangeError::Failed(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
        }
    }

    fn remove_collection(&self, key: &(Workspace, Collection)) -> Result<(), SearchError> {
        let Some(collection) = self.collection(key, false)? else { return Ok(()) };
        // Waits for changes that are under way, and lets no others begin.
        collection.close(|| {
            self.open.lock().retain(|(known, _)| known != key);
            self.folders.remove(&key.0, &key.1)
        })
    }
}

fn key(workspace: &Workspace, collection: &Collection) -> (Workspace, Collection) {
    (workspace.clone(), collection.clone())
}

impl Search for EmbeddedSearch {
    fn put<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        documents: Vec<SearchDocument>,
    ) -> SearchFuture<'a, ()> {
        let key = key(workspace, collection);
        Box::pin(self.perform(&self.changing, workspace, move |inner| inner.put(&key, &documents)))
    }

    fn remove<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        document: &'a str,
    ) -> SearchFuture<'a, bool> {
        let (key, document) = (key(workspace, collection), document.to_owned());
        Box::pin(self.perform(&self.changing, workspace, move |inner| {
            let Some(collection) = inner.collection(&key, false)? else { return Ok(false) };
            match collection.remove(&document) {
                Ok(removed) => Ok(removed),
                Err(ChangeError::CollectionRemoved) => Ok(false),
                Err(ChangeError::Failed(error)) => Err(error),
            }
        }))
    }

    fn remove_all<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        documents: &'a [String],
    ) -> SearchFuture<'a, u64> {
        let (key, documents) = (key(workspace, collection), documents.to_vec());
        Box::pin(self.perform(&self.changing, workspace, move |inner| {
            let Some(collection) = inner.collection(&key, false)? else { return Ok(0) };
            match collection.remove_all(&documents) {
                Ok(removed) => Ok(removed),
                Err(ChangeError::CollectionRemoved) => Ok(0),
                Err(ChangeError::Failed(error)) => Err(error),
            }
        }))
    }

    fn remove_collection<'a>(&'a self, workspace: &'a Workspace, collection: &'a Collection) -> SearchFuture<'a, ()> {
        let key = key(workspace, collection);
        Box::pin(self.perform(&self.changing, workspace, move |inner| inner.remove_collection(&key)))
    }

    fn find<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        query: SearchQuery,
    ) -> SearchFuture<'a, FoundPassages> {
        let key = key(workspace, collection);
        Box::pin(self.perform(&self.finding, workspace, move |inner| {
            let collection = inner.collection(&key, false)?;
            collection.map_or_else(|| Ok(FoundPassages::default()), |collection| collection.find(&query))
        }))
    }

    fn document<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        id: &'a str,
    ) -> SearchFuture<'a, Option<IndexedDocument>> {
        let (key, id) = (key(workspace, collection), id.to_owned());
        Box::pin(self.perform(&self.finding, workspace, move |inner| {
            let collection = inner.collection(&key, false)?;
            collection.map_or(Ok(None), |collection| collection.document(&id))
        }))
    }

    fn documents<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        after: Option<&'a str>,
        limit: usize,
    ) -> SearchFuture<'a, Vec<IndexedDocument>> {
        let (key, after) = (key(workspace, collection), after.map(str::to_owned));
        Box::pin(self.perform(&self.finding, workspace, move |inner| {
            let collection = inner.collection(&key, false)?;
            collection.map_or_else(|| Ok(Vec::new()), |collection| collection.documents(after.as_deref(), limit))
        }))
    }
}
