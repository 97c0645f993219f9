//! Rows of tables, in a database of their own that is opened when somebody needs it.
//!
//! Nothing here can be derived again. What is on disk and cannot be read is left as it is, and told.

mod catalogue;
mod check;
mod database;
mod finding;
mod vectors;

pub use check::CheckedTables;

use crate::tables::{OpenRefused, catching_panics};
use database::Database;
use finding::Wanted;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::table::{Row, TableSchema};
use trellis_domain::{Caller, Collection, Workspace};
use trellis_orchestrator::documents::Gate;
use trellis_orchestrator::ports::{
    FoundRows, JournalError, LoadedTable, NearValues, PutRows, RowQuery, TablePlace, Tables, TablesError, TablesFuture,
    ValueQuery, ValueVector, Vectorless,
};
use trellis_orchestrator::tables::MOST_VECTORS;

/// Batches that are written and queries that are answered at once, in all and of one workspace, and how long one waits.
const WRITERS: (usize, usize) = (2, 1);
const READERS: (usize, usize) = (8, 4);
const WAITING: Duration = Duration::from_secs(30);

/// Tables. Its own methods block; those of the port do not.
#[derive(Debug, Clone)]
pub struct EmbeddedTables(Arc<Inner>);

struct Inner {
    path: PathBuf,
    opened: Mutex<Option<Arc<Database>>>,
    /// Why nothing can be written, if the folder is only read.
    unwritable: Option<JournalError>,
    writers: Gate,
    readers: Gate,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedTables").field("path", &self.path).finish_non_exhaustive()
    }
}

impl EmbeddedTables {
    pub(crate) fn new(path: PathBuf, unwritable: Option<JournalError>) -> Self {
        let gate = |(all, of_one)| Gate::new(all, of_one, WAITING);
        let (writers, readers) = (gate(WRITERS), gate(READERS));
        Self(Arc::new(Inner { path, opened: Mutex::default(), unwritable, writers, readers }))
    }

    /// What there is; nothing if nothing was ever loaded.
    fn existing(&self) -> Result<Option<Arc<Database>>, JournalError> {
        if self.0.opened.lock().is_none() && !self.0.path.exists() { Ok(None) } else { self.open().map(Some) }
    }

    /// The engine writes when it opens, so that tables of a folder that is only read stay closed.
    fn open(&self) -> Result<Arc<Database>, JournalError> {
        self.0.unwritable.clone().map_or(Ok(()), Err)?;
        let mut opened = self.0.opened.lock();
        if let Some(database) = &*opened {
            return Ok(Arc::clone(database));
        }
        let refused = |why: &dyn std::fmt::Display| {
            let path = self.0.path.display();
            JournalError::Damaged(format!(
                "the tables in {path} cannot be opened: {why}; restore them from a copy, or move them away and load again"
            ))
        };
        let database = match catching_panics(|| Database::open(&self.0.path)) {
            Some(Ok(database)) => database,
            Some(Err(error)) => return Err(refused(&error)),
            None => return Err(refused(&OpenRefused::Panicked)),
        };
        Ok(Arc::clone(opened.insert(Arc::new(database))))
    }

    /// Reads every row and every index.
    pub fn check(&self) -> CheckedTables {
        let faulty = |fault: String| CheckedTables { faults: vec![fault], ..CheckedTables::default() };
        let look = || match self.existing()? {
            Some(database) => database.check(),
            None => Ok(CheckedTables::default()),
        };
        match catching_panics(look) {
            Some(Ok(checked)) => checked,
            Some(Err(error)) => faulty(error.to_string()),
            None => faulty(OpenRefused::Panicked.to_string()),
        }
    }

    /// Work on a thread, when it is the workspace's turn.
    async fn work<T: Send + 'static>(
        &self,
        gate: &Gate,
        workspace: &Workspace,
        work: impl FnOnce(&Self) -> Result<T, TablesError> + Send + 'static,
    ) -> Result<T, TablesError> {
        let place = gate.enter(workspace).await.ok_or(TablesError::Busy)?;
        let tables = self.clone();
        let work = move || {
            let _place = place;
            work(&tables)
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| JournalError::Read(error.to_string()))?
    }

    /// The same for what nobody needs if nobody waits for it.
    async fn look<T: Default + Send + 'static>(
        &self,
        workspace: &Workspace,
        look: impl FnOnce(&Database, &Wanted) -> Result<T, TablesError> + Send + 'static,
    ) -> Result<T, TablesError> {
        let wanted = Wanted::default();
        let _waiting = wanted.waiting();
        let work = move |tables: &Self| match tables.existing()? {
            Some(database) => look(&database, &wanted),
            None => Ok(T::default()),
        };
        self.work(&self.0.readers, workspace, work).await
    }
}

impl Tables for EmbeddedTables {
    fn put<'a>(
        &'a self,
        place: &'a TablePlace,
        schema: Arc<TableSchema>,
        source: &'a str,
        rows: Vec<Row>,
    ) -> TablesFuture<'a, PutRows> {
        let (owned, source) = (place.clone(), source.to_owned());
        let put = move |tables: &Self| tables.open()?.put(&owned, &schema, &source, rows);
        Box::pin(self.work(&self.0.writers, &place.workspace, put))
    }

    fn finish<'a>(&'a self, place: &'a TablePlace, source: &'a str) -> TablesFuture<'a, ()> {
        let (owned, source) = (place.clone(), source.to_owned());
        let finish = move |tables: &Self| tables.open()?.finish(&owned, &source);
        Box::pin(self.work(&self.0.writers, &place.workspace, finish))
    }

    fn note_loader<'a>(&'a self, place: &'a TablePlace, caller: &'a Caller) -> TablesFuture<'a, ()> {
        let (owned, caller) = (place.clone(), caller.clone());
        let note =
            move |tables: &Self| tables.existing()?.map_or(Ok(()), |database| database.note_loader(&owned, &caller));
        Box::pin(self.work(&self.0.writers, &place.workspace, note))
    }

    fn find<'a>(&'a self, place: &'a TablePlace, query: RowQuery) -> TablesFuture<'a, FoundRows> {
        let owned = place.clone();
        Box::pin(self.look(&place.workspace, move |database, wanted| database.find(&owned, &query, wanted)))
    }

    fn tables<'a>(&'a self, workspace: &'a Workspace) -> TablesFuture<'a, Vec<LoadedTable>> {
        let owned = workspace.clone();
        Box::pin(self.look(workspace, move |database, _| database.tables(&owned)))
    }

    fn remove<'a>(&'a self, place: &'a TablePlace) -> TablesFuture<'a, Option<u64>> {
        let owned = place.clone();
        let remove = move |tables: &Self| tables.existing()?.map_or(Ok(None), |database| database.remove(&owned));
        Box::pin(self.work(&self.0.writers, &place.workspace, remove))
    }

    fn remove_collection<'a>(&'a self, workspace: &'a Workspace, collection: &'a Collection) -> TablesFuture<'a, u64> {
        let (owned, collection) = (workspace.clone(), collection.clone());
        let remove = move |tables: &Self| {
            tables.existing()?.map_or(Ok(0), |database| database.remove_collection(&owned, &collection))
        };
        Box::pin(self.work(&self.0.writers, workspace, remove))
    }

    fn without_vectors<'a>(
        &'a self,
        place: &'a TablePlace,
        model: &'a str,
        values: Vec<(String, String)>,
    ) -> TablesFuture<'a, Vectorless> {
        let (owned, model) = (place.clone(), model.to_owned());
        let look = move |tables: &Self| match tables.existing()? {
            Some(database) => database.without_vectors(&owned, &model, values),
            None => Ok(Vectorless::within(values, MOST_VECTORS)),
        };
        Box::pin(self.work(&self.0.readers, &place.workspace, look))
    }

    fn put_vectors<'a>(
        &'a self,
        place: &'a TablePlace,
        model: &'a str,
        vectors: Vec<ValueVector>,
    ) -> TablesFuture<'a, u64> {
        let (owned, model) = (place.clone(), model.to_owned());
        let put = move |tables: &Self| tables.open()?.put_vectors(&owned, &model, &vectors);
        Box::pin(self.work(&self.0.writers, &place.workspace, put))
    }

    fn near<'a>(&'a self, place: &'a TablePlace, query: ValueQuery) -> TablesFuture<'a, NearValues> {
        let owned = place.clone();
        Box::pin(self.look(&place.workspace, move |database, wanted| database.near(&owned, &query, wanted)))
    }
}
