//! Loaded knowledge: quads of collections, in tables like the view's.
//!
//! A batch is one transaction, durable when it returns. Who writes to a collection holds its row, so that its numbers add
//! up whichever process writes.

mod removing;

use crate::database::{Database, Lease};
use crate::error::{damaged, failed};
use crate::graph::reading::Reading;
use crate::graph::stored::Stored;
use crate::graph::tables::{Encoded, KNOWLEDGE, execute, rows};
use deadpool_postgres::Transaction;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_postgres::Row;
use trellis_domain::rdf::Quad;
use trellis_domain::{Caller, Collection, Workspace};
use trellis_orchestrator::documents::Gate;
use trellis_orchestrator::knowledge::{MOST_COLLECTIONS, MOST_SOURCES, check, check_source, too_many_collections};
use trellis_orchestrator::ports::{
    Added, BoxFuture, GraphError, JournalError, Knowledge, KnowledgeError, KnowledgePlace, LoadedBy, LoadedCollection,
    QuadPattern,
};
use trellis_queries::find::find;
use trellis_queries::{Bounds, CancelOnDrop, NoOverlay, QueryError};

/// Batches of this process that are written at once: a large load leaves room for others.
const WRITERS: usize = 2;
/// Looks for quads at once, in all and of one workspace, and how long one may take, the wait for its place included.
const LOOKS: (usize, usize) = (4, 2);
const LOOKING: Duration = Duration::from_secs(30);

/// Loaded knowledge of all processes that share a database.
#[derive(Debug)]
pub struct PostgresKnowledge {
    database: Database,
    writing: Semaphore,
    looks: Gate,
}

/// A collection, as long as nobody else may write to it.
#[derive(Debug, Clone, Copy)]
struct Held {
    place: i64,
    sources: i64,
}

const HOLD: &str =
    "SELECT place, sources FROM knowledge_collections WHERE workspace = $1 AND collection = $2 FOR UPDATE";

impl PostgresKnowledge {
    pub fn new(database: Database) -> Self {
        let looks = Gate::new(LOOKS.0, LOOKS.1, LOOKING);
        Self { database, writing: Semaphore::new(WRITERS), looks }
    }

    async fn lease(&self) -> Result<Lease, JournalError> {
        self.database.within(self.database.lease()).await
    }

    async fn put(&self, place: &KnowledgePlace, source: &str, quads: Vec<Quad>) -> Result<Added, KnowledgeError> {
        check_source(source).map_err(KnowledgeError::Refused)?;
        quads.iter().try_for_each(check).map_err(KnowledgeError::Refused)?;
        let _writing = self.writing.acquire().await.map_err(|_| JournalError::Closed)?;
        let encoded = tokio::task::spawn_blocking(move || Encoded::of(&quads)).await;
        let encoded = encoded.map_err(|error| JournalError::Read(error.to_string()))?;
        let mut lease = self.lease().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        let held = self.hold_or_begin(&transaction, place).await?;
        let new = encoded.write(&transaction, KNOWLEDGE, held.place).await?;
        let is_new = note(&transaction, held, source, new).await?;
        let count = "UPDATE knowledge_collections SET quads = quads + $2, sources = sources + $3 WHERE place = $1";
        if new > 0 || is_new {
            let counts = (i64::try_from(new).unwrap_or(i64::MAX), i64::from(is_new));
            execute(&transaction, count, &[&held.place, &counts.0, &counts.1]).await?;
        }
        transaction.commit().await.map_err(failed)?;
        lease.release();
        Ok(Added { new })
    }

    async fn hold_or_begin(
        &self,
        transaction: &Transaction<'_>,
        place: &KnowledgePlace,
    ) -> Result<Held, KnowledgeError> {
        if let Some(held) = hold(transaction, place).await? {
            return Ok(held);
        }
        // One collection of a workspace is begun at a time, so that they can be counted.
        let workspace = place.workspace.as_str();
        let lock = self.database.lock_of(&format!("knowledge\0{workspace}"));
        rows(transaction, "SELECT pg_advisory_xact_lock($1)", &[&lock]).await?;
        if let Some(held) = hold(transaction, place).await? {
            return Ok(held);
        }
        let count = "SELECT count(*) FROM knowledge_collections WHERE workspace = $1";
        let count = rows(transaction, count, &[&workspace]).await?.first().map_or(0, |row| row.get::<_, i64>(0));
        if count.unsigned_abs() >= MOST_COLLECTIONS as u64 {
            return Err(KnowledgeError::Refused(too_many_collections()));
        }
        let insert =
            "INSERT INTO knowledge_collections (workspace, collection) VALUES ($1, $2) RETURNING place, sources";
        let begun = rows(transaction, insert, &[&workspace, &place.collection.as_str()]).await?;
        let row = begun.first().ok_or_else(|| damaged("a new collection has no row"))?;
        Ok(Held { place: row.get(0), sources: row.get(1) })
    }

    /// Changes something of a source that is there. False if it is not.
    async fn change(
        &self,
        place: &KnowledgePlace,
        source: &str,
        what: &str,
        value: &(dyn tokio_postgres::types::ToSql + Sync),
    ) -> Result<bool, KnowledgeError> {
        let change = format!(
            "UPDATE knowledge_sources SET {what} = $4 WHERE name = $3 AND place = \
             (SELECT place FROM knowledge_collections WHERE workspace = $1 AND collection = $2)"
        );
        let names: [&str; 2] = [place.workspace.as_str(), place.collection.as_str()];
        let changed = self.database.execute(&change, &[&names[0], &names[1], &source.as_bytes(), value]).await?;
        Ok(changed > 0)
    }

    async fn listed(&self, workspace: &Workspace) -> Result<Vec<LoadedCollection>, JournalError> {
        let query = "SELECT c.collection, c.quads, count(*) FILTER (WHERE s.finished), \
                array_agg(s.name ORDER BY s.name) FILTER (WHERE NOT s.finished), \
                array_agg(DISTINCT s.loader) FILTER (WHERE s.place IS NOT NULL) \
            FROM knowledge_collections c LEFT JOIN knowledge_sources s USING (place) \
            WHERE c.workspace = $1 GROUP BY c.collection, c.quads ORDER BY c.collection";
        self.database.query(query, &[&workspace.as_str()]).await?.iter().map(listed).collect()
    }

    /// Looks on a thread, when it is the workspace's turn, for as long as somebody waits.
    async fn look(
        &self,
        place: KnowledgePlace,
        pattern: QuadPattern,
        limit: usize,
    ) -> Result<Vec<Quad>, KnowledgeError> {
        let busy = || KnowledgeError::Busy("others look into knowledge, too; ask again in a moment".to_owned());
        let entered = self.looks.enter(&place.workspace).await.ok_or_else(busy)?;
        let bounds = Bounds { max_rows: limit, ..Bounds::default() };
        let _waiting = CancelOnDrop(bounds.cancellation.clone());
        let database = self.database.clone();
        let look = move || {
            let _entered = entered;
            let found = Reading::with(&database, &bounds.cancellation, |reading| {
                let loaded = Stored::loaded(reading, &place.workspace, Some(&place.collection))?;
                find(&loaded, &pattern, &NoOverlay, &bounds)
            });
            found.map_err(unanswered)
        };
        tokio::task::spawn_blocking(look).await.map_err(|error| JournalError::Read(error.to_string()))?
    }
}

/// A collection that is there, held until the end of the transaction.
async fn hold(transaction: &Transaction<'_>, place: &KnowledgePlace) -> Result<Option<Held>, JournalError> {
    let names: [&str; 2] = [place.workspace.as_str(), place.collection.as_str()];
    let found = rows(transaction, HOLD, &[&names[0], &names[1]]).await?;
    Ok(found.first().map(|row| Held { place: row.get(0), sources: row.get(1) }))
}

/// Notes that not all of a source may be there. Whether it was not known before.
async fn note(transaction: &Transaction<'_>, held: Held, source: &str, new: u64) -> Result<bool, KnowledgeError> {
    let known = "SELECT finished FROM knowledge_sources WHERE place = $1 AND name = $2";
    let known = rows(transaction, known, &[&held.place, &source.as_bytes()]).await?;
    match known.first().map(|row| row.get::<_, bool>(0)) {
        Some(finished) => {
            if finished && new > 0 {
                let reopen = "UPDATE knowledge_sources SET finished = false WHERE place = $1 AND name = $2";
                execute(transaction, reopen, &[&held.place, &source.as_bytes()]).await?;
            }
            Ok(false)
        }
        None if held.sources.unsigned_abs() >= MOST_SOURCES as u64 => {
            let most = format!("a collection remembers at most {MOST_SOURCES} sources; load into another one");
            Err(KnowledgeError::Refused(most))
        }
        None => {
            let put = "INSERT INTO knowledge_sources (place, name, finished) VALUES ($1, $2, false)";
            execute(transaction, put, &[&held.place, &source.as_bytes()]).await?;
            Ok(true)
        }
    }
}

fn listed(row: &Row) -> Result<LoadedCollection, JournalError> {
    let number = |column| u64::try_from(row.get::<_, i64>(column)).map_err(damaged);
    let names: Option<Vec<Vec<u8>>> = row.get(3);
    let names = names.unwrap_or_default().into_iter().map(|name| String::from_utf8(name).map_err(damaged));
    let loaders: Option<Vec<Option<Vec<u8>>>> = row.get(4);
    let loader = |stored: Option<Vec<u8>>| match stored {
        Some(stored) => {
            serde_json::from_slice::<Caller>(&stored).map(|caller| LoadedBy::from(&caller)).map_err(damaged)
        }
        None => Ok(LoadedBy::UNRECORDED),
    };
    let loaded_by = loaders.unwrap_or_default().into_iter().map(loader).collect::<Result<BTreeSet<_>, _>>()?;
    Ok(LoadedCollection {
        collection: Collection::new(row.get::<_, &str>(0)).map_err(damaged)?,
        quads: number(1)?,
        sources: number(2)?,
        unfinished: names.collect::<Result<_, _>>()?,
        loaded_by: loaded_by.into_iter().collect(),
    })
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

impl Knowledge for PostgresKnowledge {
    fn add<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        quads: Vec<Quad>,
    ) -> BoxFuture<'a, Result<Added, KnowledgeError>> {
        Box::pin(self.put(place, source, quads))
    }

    fn finish<'a>(&'a self, place: &'a KnowledgePlace, source: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        Box::pin(async move {
            self.put(place, source, Vec::new()).await?;
            // Somebody may have removed the collection meanwhile: then there is nothing to finish.
            self.change(place, source, "finished", &true).await?;
            self.sweep_all().await;
            Ok(())
        })
    }

    fn note_loader<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        caller: &'a Caller,
    ) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        let caller = serde_json::to_vec(caller).expect("a caller is always JSON");
        Box::pin(async move { self.change(place, source, "loader", &caller).await.map(drop) })
    }

    /// Every batch is on disk when it was added.
    fn save<'a>(&'a self, _: &'a KnowledgePlace, _: &'a str) -> BoxFuture<'a, Result<(), KnowledgeError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn collections<'a>(
        &'a self,
        workspace: &'a Workspace,
    ) -> BoxFuture<'a, Result<Vec<LoadedCollection>, KnowledgeError>> {
        Box::pin(async move { Ok(self.listed(workspace).await?) })
    }

    fn remove<'a>(&'a self, place: &'a KnowledgePlace) -> BoxFuture<'a, Result<Option<u64>, KnowledgeError>> {
        Box::pin(async move { Ok(self.give_up(place).await?) })
    }

    fn remove_graphs<'a>(
        &'a self,
        place: &'a KnowledgePlace,
        source: &'a str,
        graphs: &'a [String],
    ) -> BoxFuture<'a, Result<u64, KnowledgeError>> {
        Box::pin(async move { Ok(self.take_graphs(place, source, graphs).await?) })
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
