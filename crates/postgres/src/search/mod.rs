//! Passages of documents and names of entities, found by their words and by their meaning. The server needs no extension:
//! which passages have a word lies in a table of our own, with what their ranks are computed from.
//!
//! A call is one transaction, durable when it returns. A search is one as well, so that it sees the whole of what one
//! moment had, whichever process writes.

mod blocks;
mod changes;
mod encoded;
mod finding;
mod nearest;
mod ranking;
mod writing;

use crate::database::{Database, Lease};
use crate::error::damaged;
use crate::graph::reading::Reading;
use crate::sweeping::Places;
use std::rc::Rc;
use std::time::Duration;
use tokio_postgres::Row;
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::documents::Gate;
use trellis_orchestrator::ports::{
    FoundPassages, IndexedDocument, JournalError, Search, SearchDocument, SearchError, SearchFuture, SearchQuery,
};
use trellis_queries::{CancelOnDrop, Cancellation, QueryError};
use writing::unwritten;

/// Searches at once of this process, in all and of one workspace; the same for changes.
const FINDING: (usize, usize) = (4, 2);
const CHANGING: (usize, usize) = (2, 1);
/// How long somebody waits for that, and how long a search may take.
const WAITING: Duration = Duration::from_secs(30);
const LONGEST_SEARCH: Duration = Duration::from_secs(30);

const PLACES: Places = Places {
    removed: "search_removed",
    tables: &[
        "search_words",
        "search_frequencies",
        "search_passages",
        "search_vectors",
        "search_spaces",
        "search_documents",
        "search_blocks",
    ],
};

/// The search index of all processes that share a database.
#[derive(Debug, Clone)]
pub struct PostgresSearch {
    database: Database,
    kind: &'static str,
    finding: Gate,
    changing: Gate,
}

impl PostgresSearch {
    /// The index of documents.
    pub fn of_documents(database: Database) -> Self {
        let gate = |(all, of_one)| Gate::new(all, of_one, WAITING);
        Self { database, kind: "documents", finding: gate(FINDING), changing: gate(CHANGING) }
    }

    /// The index of what entities are called, beside that of documents. Whoever searches one waits for the other's turns.
    #[must_use]
    pub fn of_entities(&self) -> Self {
        Self { kind: "entities", ..self.clone() }
    }

    /// What a collection is found by.
    fn names<'a>(&self, workspace: &'a Workspace, collection: &'a Collection) -> [&'a str; 3] {
        [self.kind, workspace.as_str(), collection.as_str()]
    }

    async fn lease(&self) -> Result<Lease, SearchError> {
        self.database.within(self.database.lease()).await.map_err(unwritten)
    }

    /// Looks on a thread, in one transaction, when it is the workspace's turn and for as long as somebody waits.
    async fn look<T: Send + 'static>(
        &self,
        workspace: &Workspace,
        look: impl FnOnce(&Rc<Reading>) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, SearchError> {
        let turn = self.finding.enter(workspace).await.ok_or(SearchError::Busy)?;
        let (database, cancellation) = (self.database.clone(), Cancellation::default());
        let _waiting = CancelOnDrop(cancellation.clone());
        let looking = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            Reading::with(&database, &cancellation, look).map_err(unsearched)
        });
        let Ok(looked) = tokio::time::timeout(LONGEST_SEARCH, looking).await else {
            return Err(unsearched(format!("it took longer than {} s", LONGEST_SEARCH.as_secs())));
        };
        looked.map_err(unsearched)?
    }

    async fn listed(&self, statement: &str, parameters: crate::database::Parameters<'_>) -> Listed {
        let found = self.database.query(statement, parameters).await.map_err(unsearched)?;
        found.iter().map(|row| listed(row, 0).map_err(unsearched)).collect()
    }
}

type Listed = Result<Vec<IndexedDocument>, SearchError>;

/// No id has a character that no text of the database can have.
fn can_be_id(id: &str) -> bool {
    !id.contains('\0')
}

fn unsearched(error: impl std::fmt::Display) -> SearchError {
    SearchError::Index { doing: "searched", why: error.to_string() }
}

/// A document as it was listed.
fn listed(row: &Row, column: usize) -> Result<IndexedDocument, JournalError> {
    serde_json::from_slice(row.get(column)).map_err(damaged)
}

const OF_COLLECTION: &str = "SELECT d.listed FROM search_collections c JOIN search_documents d USING (place) \
    WHERE c.kind = $1 AND c.workspace = $2 AND c.collection = $3";

impl Search for PostgresSearch {
    fn put<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        documents: Vec<SearchDocument>,
    ) -> SearchFuture<'a, ()> {
        Box::pin(self.put_all(workspace, collection, documents))
    }

    fn remove<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        document: &'a str,
    ) -> SearchFuture<'a, bool> {
        Box::pin(async move { Ok(self.remove_documents(workspace, collection, [document]).await? > 0) })
    }

    fn remove_all<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        documents: &'a [String],
    ) -> SearchFuture<'a, u64> {
        Box::pin(
            async move { self.remove_documents(workspace, collection, documents.iter().map(String::as_str)).await },
        )
    }

    fn remove_collection<'a>(&'a self, workspace: &'a Workspace, collection: &'a Collection) -> SearchFuture<'a, ()> {
        Box::pin(self.give_up(workspace, collection))
    }

    fn find<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        query: SearchQuery,
    ) -> SearchFuture<'a, FoundPassages> {
        let names = self.names(workspace, collection).map(str::to_owned);
        Box::pin(self.look(workspace, move |reading| finding::find(reading, &names, &query)))
    }

    fn document<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        id: &'a str,
    ) -> SearchFuture<'a, Option<IndexedDocument>> {
        Box::pin(async move {
            if !can_be_id(id) {
                return Ok(None);
            }
            let [kind, workspace, collection] = self.names(workspace, collection);
            let statement = format!("{OF_COLLECTION} AND d.id = $4");
            Ok(self.listed(&statement, &[&kind, &workspace, &collection, &id]).await?.pop())
        })
    }

    fn documents<'a>(
        &'a self,
        workspace: &'a Workspace,
        collection: &'a Collection,
        after: Option<&'a str>,
        limit: usize,
    ) -> SearchFuture<'a, Vec<IndexedDocument>> {
        Box::pin(async move {
            let [kind, workspace, collection] = self.names(workspace, collection);
            let (after, limit) = (after.unwrap_or_default(), i64::try_from(limit).unwrap_or(i64::MAX));
            let statement = format!("{OF_COLLECTION} AND d.id > $4 ORDER BY d.id LIMIT $5");
            self.listed(&statement, &[&kind, &workspace, &collection, &after, &limit]).await
        })
    }
}
