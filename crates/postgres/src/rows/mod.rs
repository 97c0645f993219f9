//! Rows of tables, with what finds them. A batch is one transaction, durable when it returns; who writes to a table holds
//! its row in the catalogue, so that what is noted there is right whichever process writes.

mod finding;
mod vectors;
mod writing;

use crate::database::{Database, Lease};
use crate::error::{damaged, failed};
use crate::graph::reading::Reading;
use crate::graph::tables::{execute, rows};
use crate::sweeping::Places;
use deadpool_postgres::Transaction;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::Row as Found;
use trellis_domain::table::{Row, TableLayout, TableSchema};
use trellis_domain::{Caller, Collection, Workspace};
use trellis_orchestrator::documents::Gate;
use trellis_orchestrator::ports::{
    FoundRows, GraphError, JournalError, LoadedBy, LoadedTable, NearValues, PutRows, RowQuery, TablePlace, Tables,
    TablesError, TablesFuture, ValueQuery, ValueVector, Vectorless,
};
use trellis_orchestrator::tables::{note_loader, sorted};
use trellis_queries::{CancelOnDrop, Cancellation, QueryError};

/// Batches that are written and queries that are answered at once, in all and of one workspace, and how long one waits.
const WRITERS: (usize, usize) = (2, 1);
const READERS: (usize, usize) = (4, 2);
const WAITING: Duration = Duration::from_secs(30);

const PLACES: Places = Places { removed: "row_removed", tables: &["row_rows", "row_entries", "row_vectors"] };

/// Tables of all processes that share a database.
#[derive(Debug)]
pub struct PostgresTables {
    database: Database,
    writers: Gate,
    readers: Gate,
}

/// What is noted of a table.
#[derive(Debug)]
struct Entry {
    place: i64,
    layout: TableLayout,
    unfinished: Vec<String>,
    loaded_by: Vec<LoadedBy>,
}

const ENTRY: &str = "SELECT place, layout, unfinished, loaded_by FROM row_tables \
    WHERE workspace = $1 AND collection = $2 AND name = $3";

impl Entry {
    fn of(found: &Found) -> Result<Self, JournalError> {
        Ok(Self {
            place: found.get(0),
            layout: from_json(found.get(1))?,
            unfinished: from_json(found.get(2))?,
            loaded_by: from_json(found.get(3))?,
        })
    }

    /// The number of a field in the entries that find rows.
    fn index_of(&self, field: &str) -> Option<i16> {
        let position = self.layout.indexed.iter().position(|(known, _)| known == field)?;
        i16::try_from(position).ok()
    }
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("names and values of rows are always JSON")
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, JournalError> {
    serde_json::from_slice(bytes).map_err(|error| damaged(format!("what is noted of a table cannot be read: {error}")))
}

/// How a place is named in statements.
fn names(place: &TablePlace) -> (&str, &str, &[u8]) {
    (place.workspace.as_str(), place.collection.as_str(), place.table.as_bytes())
}

/// A table as of a reading.
fn entry_in(reading: &Reading, place: &TablePlace) -> Result<Option<Entry>, QueryError> {
    let (workspace, collection, name) = names(place);
    let found = reading.rows(ENTRY, &[&workspace, &collection, &name])?;
    Ok(found.first().map(Entry::of).transpose()?)
}

/// A table, as long as nobody else may write to it.
async fn hold(transaction: &Transaction<'_>, place: &TablePlace) -> Result<Option<Entry>, JournalError> {
    let (workspace, collection, name) = names(place);
    let found = rows(transaction, &format!("{ENTRY} FOR UPDATE"), &[&workspace, &collection, &name]).await?;
    found.first().map(Entry::of).transpose()
}

async fn note(transaction: &Transaction<'_>, entry: &Entry, more: i64) -> Result<(), JournalError> {
    let note = "UPDATE row_tables SET rows = rows + $2, unfinished = $3, loaded_by = $4 WHERE place = $1";
    let (unfinished, loaded_by) = (to_json(&entry.unfinished), to_json(&entry.loaded_by));
    execute(transaction, note, &[&entry.place, &more, &unfinished, &loaded_by]).await.map(drop)
}

impl PostgresTables {
    pub fn new(database: Database) -> Self {
        let gate = |(all, of_one)| Gate::new(all, of_one, WAITING);
        Self { database, writers: gate(WRITERS), readers: gate(READERS) }
    }

    async fn lease(&self) -> Result<Lease, JournalError> {
        self.database.within(self.database.lease()).await
    }

    /// Changes what is noted of a table that is there.
    async fn renote(
        &self,
        place: &TablePlace,
        change: impl FnOnce(&mut Entry) -> bool + Send,
    ) -> Result<(), TablesError> {
        let _turn = self.writers.enter(&place.workspace).await.ok_or(TablesError::Busy)?;
        let mut lease = self.lease().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        if let Some(mut entry) = hold(&transaction, place).await?
            && change(&mut entry)
        {
            note(&transaction, &entry, 0).await?;
        }
        transaction.commit().await.map_err(failed)?;
        lease.release();
        Ok(())
    }

    async fn listed(&self, workspace: &Workspace) -> Result<Vec<LoadedTable>, JournalError> {
        let query = "SELECT collection, name, rows, unfinished, loaded_by FROM row_tables WHERE workspace = $1 \
            ORDER BY collection, name";
        let listed = |found: &Found| {
            Ok(LoadedTable {
                collection: Collection::new(found.get::<_, &str>(0)).map_err(damaged)?,
                table: String::from_utf8(found.get(1)).map_err(damaged)?,
                rows: found.get::<_, i64>(2).unsigned_abs(),
                unfinished: sorted(from_json(found.get(3))?),
                loaded_by: from_json(found.get(4))?,
            })
        };
        self.database.query(query, &[&workspace.as_str()]).await?.iter().map(listed).collect()
    }

    /// Gives up the places of tables, all of a collection if none is named, and then what lies there. Their rows.
    async fn give_up(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        name: Option<&str>,
    ) -> Result<Vec<u64>, JournalError> {
        let give_up = "WITH gone AS (DELETE FROM row_tables \
                WHERE workspace = $1 AND collection = $2 AND ($3::bytea IS NULL OR name = $3) RETURNING place, rows), \
            noted AS (INSERT INTO row_removed (place) SELECT place FROM gone) \
            SELECT rows FROM gone";
        let name = name.map(str::as_bytes);
        let gone = self.database.query(give_up, &[&workspace.as_str(), &collection.as_str(), &name]).await?;
        PLACES.sweep_all(&self.database).await;
        Ok(gone.iter().map(|row| row.get::<_, i64>(0).unsigned_abs()).collect())
    }

    /// Looks on a thread, in one transaction, when it is the workspace's turn and for as long as somebody waits.
    async fn look<T: Send + 'static>(
        &self,
        workspace: &Workspace,
        look: impl FnOnce(&Rc<Reading>) -> Result<T, Unanswered> + Send + 'static,
    ) -> Result<T, TablesError> {
        let turn = self.readers.enter(workspace).await.ok_or(TablesError::Busy)?;
        let (database, cancellation) = (self.database.clone(), Cancellation::default());
        let _waiting = CancelOnDrop(cancellation.clone());
        let look = move || {
            let _turn = turn;
            Reading::with(&database, &cancellation, look).map_err(|Unanswered(error)| error)
        };
        tokio::task::spawn_blocking(look).await.map_err(|error| JournalError::Read(error.to_string()))?
    }
}

/// Why a look gives nothing.
struct Unanswered(TablesError);

impl From<QueryError> for Unanswered {
    fn from(error: QueryError) -> Self {
        Self(match GraphError::from(error) {
            GraphError::Store(error) => error.into(),
            error @ (GraphError::Query(_)
            | GraphError::TooLarge(_)
            | GraphError::TimedOut(_)
            | GraphError::Busy(_)
            | GraphError::Index(_)
            | GraphError::NoSparql) => TablesError::Refused(error.to_string()),
        })
    }
}

impl From<TablesError> for Unanswered {
    fn from(error: TablesError) -> Self {
        Self(error)
    }
}

impl From<JournalError> for Unanswered {
    fn from(error: JournalError) -> Self {
        Self(error.into())
    }
}

impl Tables for PostgresTables {
    fn put<'a>(
        &'a self,
        place: &'a TablePlace,
        schema: Arc<TableSchema>,
        source: &'a str,
        rows: Vec<Row>,
    ) -> TablesFuture<'a, PutRows> {
        Box::pin(async move { self.put_rows(place, &schema, source, rows).await })
    }

    fn finish<'a>(&'a self, place: &'a TablePlace, source: &'a str) -> TablesFuture<'a, ()> {
        Box::pin(self.renote(place, move |entry| {
            let before = entry.unfinished.len();
            entry.unfinished.retain(|known| known != source);
            entry.unfinished.len() < before
        }))
    }

    fn note_loader<'a>(&'a self, place: &'a TablePlace, caller: &'a Caller) -> TablesFuture<'a, ()> {
        Box::pin(self.renote(place, move |entry| note_loader(&mut entry.loaded_by, caller)))
    }

    fn find<'a>(&'a self, place: &'a TablePlace, query: RowQuery) -> TablesFuture<'a, FoundRows> {
        let owned = place.clone();
        Box::pin(self.look(&place.workspace, move |reading| finding::find(reading, &owned, &query)))
    }

    fn tables<'a>(&'a self, workspace: &'a Workspace) -> TablesFuture<'a, Vec<LoadedTable>> {
        Box::pin(async move { Ok(self.listed(workspace).await?) })
    }

    fn remove<'a>(&'a self, place: &'a TablePlace) -> TablesFuture<'a, Option<u64>> {
        Box::pin(async move { Ok(self.give_up(&place.workspace, &place.collection, Some(&place.table)).await?.pop()) })
    }

    fn remove_collection<'a>(&'a self, workspace: &'a Workspace, collection: &'a Collection) -> TablesFuture<'a, u64> {
        Box::pin(async move { Ok(self.give_up(workspace, collection, None).await?.len() as u64) })
    }

    fn without_vectors<'a>(
        &'a self,
        place: &'a TablePlace,
        model: &'a str,
        values: Vec<(String, String)>,
    ) -> TablesFuture<'a, Vectorless> {
        let (owned, model) = (place.clone(), model.to_owned());
        Box::pin(self.look(&place.workspace, move |reading| vectors::without(reading, &owned, &model, values)))
    }

    fn put_vectors<'a>(
        &'a self,
        place: &'a TablePlace,
        model: &'a str,
        vectors: Vec<ValueVector>,
    ) -> TablesFuture<'a, u64> {
        Box::pin(async move { self.put_values(place, model, vectors).await })
    }

    fn near<'a>(&'a self, place: &'a TablePlace, query: ValueQuery) -> TablesFuture<'a, NearValues> {
        let owned = place.clone();
        Box::pin(self.look(&place.workspace, move |reading| vectors::near(reading, &owned, &query)))
    }
}
