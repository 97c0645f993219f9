//! Loaded knowledge of a folder, opened when somebody needs it.

use crate::tables::{OpenRefused, catching_panics};
use crate::view::{Asserted, Bounds, CancelOnDrop, Cancellation, LoadedReaders, QueryError, ViewError};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use trellis_domain::rdf::Quad;
use trellis_domain::{Caller, Collection, Workspace};
use trellis_orchestrator::documents::Gate;
use trellis_orchestrator::ports::{
    Added, BoxFuture, GraphError, JournalError, Knowledge, KnowledgeError, KnowledgePlace, LoadedCollection,
    QuadPattern,
};

/// Batches that are written or waited for on threads. Whoever comes later waits without one, in the order of coming, so
/// that a large load leaves room for others.
static WRITERS: Semaphore = Semaphore::const_new(2);
static READERS: Semaphore = Semaphore::const_new(4);
/// Looks for quads at once, in all and of one workspace, and how long one may take, the wait for its place included.
const LOOKS: (usize, usize) = (4, 2);
const LOOKING: Duration = Duration::from_secs(30);

/// Loaded knowledge. Its own methods block; those of the port do not.
#[derive(Debug, Clone)]
pub struct EmbeddedKnowledge(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    opened: Mutex<Option<Arc<Asserted>>>,
    /// Why nothing can be written, if the folder is only read.
    unwritable: Option<JournalError>,
    looks: Gate,
}

/// What was found in loaded knowledge, and what is wrong with it. Nothing of it can be derived anew.
#[derive(Debug, Default)]
pub struct CheckedKnowledge {
    pub collections: u64,
    pub quads: u64,
    pub faults: Vec<String>,
}

impl EmbeddedKnowledge {
    pub(crate) fn new(path: PathBuf, unwritable: Option<JournalError>) -> Self {
        Self(Arc::new(Inner {
            path,
            opened: Mutex::default(),
            unwritable,
            looks: Gate::new(LOOKS.0, LOOKS.1, LOOKING),
        }))
    }

    /// What there is; nothing if nothing was ever loaded.
    fn existing(&self) -> Result<Option<Arc<Asserted>>, JournalError> {
        if self.0.opened.lock().is_none() && !self.0.path.exists() { Ok(None) } else { self.open().map(Some) }
    }

    fn open(&self) -> Result<Arc<Asserted>, JournalError> {
        let mut opened = self.0.opened.lock();
        if let Some(asserted) = &*opened {
            return Ok(Arc::clone(asserted));
        }
        let refused = |why: &dyn std::fmt::Display| {
            let path = self.0.path.display();
            JournalError::Damaged(format!(
                "the loaded knowledge in {path} cannot be opened: {why}; restore it from a copy, or move it away and \
                 load again"
            ))
        };
        let asserted = match catching_panics(|| Asserted::open(&self.0.path)) {
            Some(Ok(asserted)) => asserted,
            Some(Err(error)) => return Err(refused(&error)),
            None => return Err(refused(&OpenRefused::Panicked)),
        };
        Ok(Arc::clone(opened.insert(Arc::new(asserted))))
    }

    fn writable(&self) -> Result<Arc<Asserted>, JournalError> {
        self.0.unwritable.clone().map_or(Ok(()), Err)?;
        self.open()
    }

    /// What a reading of the workspace looks at besides what runs say: one collection, or all.
    pub(crate) fn readers(
        &self,
        workspace: &Workspace,
        collection: Option<&Collection>,
        cancellation: &Cancellation,
    ) -> Result<LoadedReaders, JournalError> {
        match self.existing()? {
            Some(asserted) => asserted.readers(workspace, collection, cancellation).map_err(ViewError::of_loaded),
            None => Ok(LoadedReaders::default()),
        }
    }

    /// Reads every file and every row.
    pub fn check(&self) -> CheckedKnowledge {
        let look = || -> Result<CheckedKnowledge, String> {
            let damages = Asserted::damages(&self.0.path).map_err(|error| error.to_string())?;
            let Some(faults) = damages else { return Ok(CheckedKnowledge::default()) };
            if !faults.is_empty() {
                return Ok(CheckedKnowledge { faults, ..CheckedKnowledge::default() });
            }
            let found = self.open().map_err(|error| error.to_string())?.check().map_err(|error| error.to_string())?;
            Ok(CheckedKnowledge { collections: found.collections, quads: found.quads, faults: found.faults })
        };
        let faulty = |fault| CheckedKnowledge { faults: vec![fault], ..CheckedKnowledge::default() };
        match catching_panics(look) {
            Some(Ok(checked)) => checked,
            Some(Err(fault)) => faulty(fault),
            None => faulty(OpenRefused::Panicked.to_string()),
        }
    }

    async fn work<T: Send + 'static>(
        &self,
        places: &'static Semaphore,
        work: impl FnOnce(&Self) -> Result<T, KnowledgeError> + Send + 'static,
    ) -> Result<T, KnowledgeError> {
        let place = places.acquire().await.map_err(|_| JournalError::Closed)?;
        let knowledge = self.clone();
        let work = move || {
            let _place = place;
            work(&knowledge)
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| JournalError::Read(error.to_string()))?
    }
}

impl EmbeddedKnowledge {
    /// Looks on a thread, when it is the workspace's turn, for as long as somebody waits.
    async fn look(
        &self,
        place: KnowledgePlace,
        pattern: QuadPattern,
        limit: usize,
    ) -> Result<Vec<Quad>, KnowledgeError> {
        let busy = || KnowledgeError::Busy("others look into knowledge, too; ask again in a moment".to_owned());
        let entered = self.0.looks.enter(&place.workspace).await.ok_or_else(busy)?;
        let bounds = Bounds { max_rows: limit, ..Bounds::default() };
        let _waiting = CancelOnDrop(bounds.cancellation.clone());
        let knowledge = self.clone();
        let look = move || {
            let _entered = entered;
            let readers = knowledge.readers(&place.workspace, Some(&place.collection), &bounds.cancellation)?;
            readers.matching(&pattern, &bounds).map_err(unanswered)
        };
        tokio::task::spawn_blocking(look).await.map_err(|error| JournalError::Read(error.to_string()))?
    }
}

impl Knowledge for EmbeddedKnowledge {
    fn add<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        quads: Vec<Quad>,
    ) -> BoxFuture<'a, Result<Added, KnowledgeError>> {
        let (place, source) = (place.clone(), source.to_owned());
        Box::pin(self.work(&WRITERS, move |knowledge| knowledge.writable()?.add(&place, &source, &quads)))
    }

    fn finish<'a>(&'a self, place: &'a KnowledgePlace, source: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        let (place, source) = (place.clone(), source.to_owned());
        Box::pin(self.work(&WRITERS, move |knowledge| knowledge.writable()?.finish(&place, &source)))
    }

    fn note_loader<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        caller: &'a Caller,
    ) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        let (place, source, caller) = (place.clone(), source.to_owned(), caller.clone());
        Box::pin(self.work(&WRITERS, move |knowledge| knowledge.writable()?.note_loader(&place, &source, &caller)))
    }

    fn save<'a>(&'a self, _: &'a KnowledgePlace, _: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        Box::pin(self.work(&WRITERS, move |knowledge| Ok(knowledge.writable()?.save()?)))
    }

    fn collections<'a>(
        &'a self,
        workspace: &'a Workspace,
    ) -> BoxFuture<'a, Result<Vec<LoadedCollection>, KnowledgeError>> {
        let workspace = workspace.clone();
        Box::pin(self.work(&READERS, move |knowledge| match knowledge.existing()? {
            Some(asserted) => Ok(asserted.collections(&workspace).map_err(ViewError::of_loaded)?),
            None => Ok(Vec::new()),
        }))
    }

    fn remove<'a>(&'a self, place: &'a KnowledgePlace) -> BoxFuture<'a, Result<Option<u64>, KnowledgeError>> {
        let place = place.clone();
        Box::pin(self.work(&WRITERS, move |knowledge| match knowledge.existing()? {
            Some(_) => knowledge.writable()?.remove(&place),
            None => Ok(None),
        }))
    }

    fn remove_graphs<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        graphs: &'a [String],
    ) -> BoxFuture<'a, Result<u64, KnowledgeError>> {
        let (place, source, graphs) = (place.clone(), source.to_owned(), graphs.to_vec());
        Box::pin(self.work(&WRITERS, move |knowledge| match knowledge.existing()? {
            Some(_) => knowledge.writable()?.remove_graphs(&place, &source, &graphs),
            None => Ok(0),
        }))
    }

    fn matching<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        pattern: &'a QuadPattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Quad>, KnowledgeError>> {
        Box::pin(async move {
            let looking = tokio::time::timeout(LOOKING, self.look(place.clone(), pattern.clone(), limit));
            let late =
                || format!("looking for quads took longer than {} s; ask for something rarer", LOOKING.as_secs());
            looking.await.unwrap_or_else(|_| Err(KnowledgeError::Busy(late())))
        })
    }
}

fn unanswered(error: QueryError) -> KnowledgeError {
    match GraphError::from(error) {
        GraphError::Store(error) => error.into(),
        error @ (GraphError::Query(_)
        | GraphError::TooLarge(_)
        | GraphError::TimedOut(_)
        | GraphError::Busy(_)
        | GraphError::Index(_)
        | GraphError::NoSparql) => KnowledgeError::Refused(error.to_string()),
    }
}
