//! How documents are put and removed. A call is one transaction. What is new is written before the collection is held, so
//! that others wait only for what follows: predecessors leave, the documents are listed, and the numbers are changed.

use super::changes::Changes;
use super::encoded::{Encoded, Part, groups};
use super::{PLACES, PostgresSearch, can_be_id};
use crate::error::failed;
use crate::graph::tables::{execute, rows};
use deadpool_postgres::Transaction;
use std::sync::Arc;
use trellis_domain::{Collection, Workspace};
use trellis_orchestrator::documents::{MOST_PASSAGES_OF_COLLECTION, check_documents};
use trellis_orchestrator::ports::{IndexedDocument, JournalError, SearchDocument, SearchError};

/// Somebody else may take a while with the same collection. And a server without statistics must not think that reading a
/// whole table is cheap: others are in it, too.
const BEGIN: &str = "SET LOCAL lock_timeout = '25s'; SET LOCAL enable_seqscan = off; SET LOCAL jit = off";
/// Blocks that are removed in one statement.
const BLOCKS_AT_ONCE: usize = 64;

impl PostgresSearch {
    pub(super) async fn put_all(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        documents: Vec<SearchDocument>,
    ) -> Result<(), SearchError> {
        check_documents(&documents)?;
        let _turn = self.changing.enter(workspace).await.ok_or(SearchError::Busy)?;
        let documents: Arc<[SearchDocument]> = documents.into();
        // If somebody removes the collection meanwhile, these documents begin it anew.
        while !self.try_put(workspace, collection, &documents).await? {}
        PLACES.sweep_a_little(&self.database).await;
        Ok(())
    }

    /// False if the collection was removed meanwhile: nothing is put then.
    async fn try_put(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        documents: &Arc<[SearchDocument]>,
    ) -> Result<bool, SearchError> {
        let mut lease = self.lease().await?;
        let transaction = lease.transaction().await.map_err(failed).map_err(unwritten)?;
        let put = async {
            transaction.batch_execute(BEGIN).await.map_err(failed)?;
            let begun = self.find_or_begin(&transaction, workspace, collection).await?;
            let Some(place) = begun else { return Ok::<_, JournalError>(None) };
            let (blocks, mut changes) = write(&transaction, place, documents).await?;
            let Some(passages) = hold(&transaction, place).await? else { return Ok(None) };
            let ids: Vec<_> = documents.iter().map(|document| document.info.id.as_str()).collect();
            remove_blocks(&transaction, place, &ids, &blocks, &mut changes).await?;
            list(&transaction, place, documents).await?;
            changes.apply(&transaction, place).await?;
            Ok(Some(passages + changes.passages))
        };
        let Some(passages) = put.await.map_err(unwritten)? else {
            transaction.rollback().await.map_err(failed).map_err(unwritten)?;
            lease.release();
            return Ok(false);
        };
        if passages.unsigned_abs() > MOST_PASSAGES_OF_COLLECTION {
            let why = format!("the collection is full: it holds at most {MOST_PASSAGES_OF_COLLECTION} passages");
            return Err(SearchError::Invalid(format!("{why}; use another collection")));
        }
        transaction.commit().await.map_err(failed).map_err(unwritten)?;
        lease.release();
        Ok(true)
    }

    /// The place of a collection. None if it went, or came, this very moment.
    async fn find_or_begin(
        &self,
        transaction: &Transaction<'_>,
        workspace: &Workspace,
        collection: &Collection,
    ) -> Result<Option<i64>, JournalError> {
        let [kind, workspace, collection] = self.names(workspace, collection);
        let find = "SELECT place FROM search_collections WHERE kind = $1 AND workspace = $2 AND collection = $3";
        let begin = "INSERT INTO search_collections (kind, workspace, collection) VALUES ($1, $2, $3) \
            ON CONFLICT DO NOTHING RETURNING place";
        for statement in [find, begin] {
            let found = rows(transaction, statement, &[&kind, &workspace, &collection]).await?;
            if let Some(row) = found.first() {
                return Ok(Some(row.get(0)));
            }
        }
        Ok(None)
    }

    /// How many of the documents were there.
    pub(super) async fn remove_documents<'a>(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        ids: impl IntoIterator<Item = &'a str>,
    ) -> Result<u64, SearchError> {
        let ids: Vec<_> = ids.into_iter().filter(|id| can_be_id(id)).collect();
        let _turn = self.changing.enter(workspace).await.ok_or(SearchError::Busy)?;
        let mut lease = self.lease().await?;
        let transaction = lease.transaction().await.map_err(failed).map_err(unwritten)?;
        let remove = async {
            transaction.batch_execute(BEGIN).await.map_err(failed)?;
            let names = self.names(workspace, collection);
            let Some(place) = hold_named(&transaction, names).await? else { return Ok::<_, JournalError>(0) };
            let remove = "DELETE FROM search_documents WHERE place = $1 AND id = ANY ($2::text[])";
            let removed = execute(&transaction, remove, &[&place, &ids]).await?;
            if removed > 0 {
                let mut changes = Changes::default();
                remove_blocks(&transaction, place, &ids, &[], &mut changes).await?;
                changes.apply(&transaction, place).await?;
                let forget = "DELETE FROM search_collections WHERE place = $1 \
                    AND NOT EXISTS (SELECT 1 FROM search_documents WHERE place = $1)";
                execute(&transaction, forget, &[&place]).await?;
            }
            Ok(removed)
        };
        let removed = remove.await.map_err(unwritten)?;
        transaction.commit().await.map_err(failed).map_err(unwritten)?;
        lease.release();
        PLACES.sweep_a_little(&self.database).await;
        Ok(removed)
    }

    /// Gives up the place of a collection, and then what lies there.
    pub(super) async fn give_up(&self, workspace: &Workspace, collection: &Collection) -> Result<(), SearchError> {
        let _turn = self.changing.enter(workspace).await.ok_or(SearchError::Busy)?;
        let mut lease = self.lease().await?;
        let transaction = lease.transaction().await.map_err(failed).map_err(unwritten)?;
        let give_up = async {
            transaction.batch_execute(BEGIN).await.map_err(failed)?;
            let [kind, workspace, collection] = self.names(workspace, collection);
            let give_up = "WITH gone AS (DELETE FROM search_collections \
                    WHERE kind = $1 AND workspace = $2 AND collection = $3 RETURNING place) \
                INSERT INTO search_removed (place) SELECT place FROM gone RETURNING place";
            let gone = rows(&transaction, give_up, &[&kind, &workspace, &collection]).await?;
            Ok::<_, JournalError>(gone.first().map(|row| row.get(0)))
        };
        let place: Option<i64> = give_up.await.map_err(unwritten)?;
        transaction.commit().await.map_err(failed).map_err(unwritten)?;
        lease.release();
        if let Some(place) = place {
            PLACES.sweep_place(&self.database, place).await;
        }
        PLACES.sweep_a_little(&self.database).await;
        Ok(())
    }
}

pub(super) fn unwritten(error: JournalError) -> SearchError {
    if crate::error::is_locked(&error) {
        return SearchError::Busy;
    }
    SearchError::Index { doing: "written", why: error.to_string() }
}

/// Keeps others from changing a collection. How many passages it has; none if it is not there any more.
async fn hold(transaction: &Transaction<'_>, place: i64) -> Result<Option<i64>, JournalError> {
    let hold = "SELECT passages FROM search_collections WHERE place = $1 FOR UPDATE";
    Ok(rows(transaction, hold, &[&place]).await?.first().map(|row| row.get(0)))
}

/// The same for one whose place is not known.
async fn hold_named(transaction: &Transaction<'_>, names: [&str; 3]) -> Result<Option<i64>, JournalError> {
    let hold = "SELECT place FROM search_collections \
        WHERE kind = $1 AND workspace = $2 AND collection = $3 FOR UPDATE";
    let found = rows(transaction, hold, &[&names[0], &names[1], &names[2]]).await?;
    Ok(found.first().map(|row| row.get(0)))
}

/// Writes the passages of documents, group by group. Their blocks, and what they add to the collection.
async fn write(
    transaction: &Transaction<'_>,
    place: i64,
    documents: &Arc<[SearchDocument]>,
) -> Result<(Vec<i64>, Changes), JournalError> {
    let (mut blocks, mut changes) = (Vec::new(), Changes::default());
    for group in groups(documents) {
        let numbers = numbers(transaction, &group).await?;
        blocks.extend_from_slice(&numbers);
        let documents = Arc::clone(documents);
        // Words are counted on a thread that nobody else waits for.
        let encode = move || {
            let encoded = Encoded::of(&documents, &group, &numbers, &mut changes);
            (encoded, changes)
        };
        let (encoded, counted) =
            tokio::task::spawn_blocking(encode).await.map_err(|error| JournalError::Write(error.to_string()))?;
        changes = counted;
        encoded.write(transaction, place).await?;
    }
    Ok((blocks, changes))
}

/// Numbers for blocks, that nobody else has.
async fn numbers(transaction: &Transaction<'_>, group: &[Part]) -> Result<Vec<i64>, JournalError> {
    let count = i32::try_from(group.len()).unwrap_or(i32::MAX);
    let next = "SELECT nextval('search_block_numbers') FROM generate_series(1, $1::int)";
    Ok(rows(transaction, next, &[&count]).await?.iter().map(|row| row.get(0)).collect())
}

/// Lists documents, in the place of those with the same ids.
async fn list(transaction: &Transaction<'_>, place: i64, documents: &[SearchDocument]) -> Result<(), JournalError> {
    let listed = |document: &SearchDocument| {
        let listed = IndexedDocument {
            info: document.info.clone(),
            passages: document.passages.len() as u64,
            model: document.vectors.as_ref().map(|vectors| vectors.model.clone()),
        };
        serde_json::to_vec(&listed).expect("what is listed is always JSON")
    };
    let (ids, listed): (Vec<_>, Vec<_>) =
        documents.iter().map(|document| (document.info.id.as_str(), listed(document))).unzip();
    let put = "INSERT INTO search_documents (place, id, listed) \
        SELECT $1::bigint, * FROM unnest($2::text[], $3::bytea[]) \
        ON CONFLICT (place, id) DO UPDATE SET listed = EXCLUDED.listed";
    execute(transaction, put, &[&place, &ids, &listed]).await.map(drop)
}

/// Removes the passages of documents, but for new blocks. What the collection has less is noted.
async fn remove_blocks(
    transaction: &Transaction<'_>,
    place: i64,
    ids: &[&str],
    new: &[i64],
    changes: &mut Changes,
) -> Result<(), JournalError> {
    let old = "SELECT block FROM search_blocks \
        WHERE place = $1 AND document = ANY ($2::text[]) AND block <> ALL ($3::bigint[]) ORDER BY block";
    let old = rows(transaction, old, &[&place, &ids, &new]).await?;
    let old: Vec<i64> = old.iter().map(|row| row.get(0)).collect();
    for some in old.chunks(BLOCKS_AT_ONCE) {
        let blocks = "WITH gone AS (DELETE FROM search_blocks WHERE place = $1 AND block = ANY ($2::bigint[]) \
                RETURNING space, passages, text_words, above_words) \
            SELECT space, sum(passages)::bigint, sum(text_words)::bigint, sum(above_words)::bigint FROM gone GROUP BY space";
        for row in rows(transaction, blocks, &[&place, &some]).await? {
            let passages: i64 = row.get(1);
            changes.passages -= passages;
            changes.lengths[0] -= row.get::<_, i64>(2);
            changes.lengths[1] -= row.get::<_, i64>(3);
            if let Some(space) = row.get(0) {
                *changes.spaces.entry(space).or_default() -= passages;
            }
        }
        for table in ["search_passages", "search_vectors"] {
            let remove = format!("DELETE FROM {table} WHERE place = $1 AND block = ANY ($2::bigint[])");
            execute(transaction, &remove, &[&place, &some]).await?;
        }
        let words = "WITH gone AS (DELETE FROM search_words WHERE block = ANY ($1::bigint[]) RETURNING word, texts, aboves) \
            SELECT word, sum(texts)::bigint, sum(aboves)::bigint FROM gone GROUP BY word";
        for row in rows(transaction, words, &[&some]).await? {
            changes.count(row.get(0), [-row.get::<_, i64>(1), -row.get::<_, i64>(2)]);
        }
    }
    Ok(())
}
