//! Collections that go, and single graphs of them.

use super::{PostgresKnowledge, hold};
use crate::error::failed;
use crate::graph::tables::{MAIN_GRAPH, bytes, execute, id, rows};
use crate::sweeping::Places;
use deadpool_postgres::Transaction;
use std::collections::BTreeSet;
use trellis_orchestrator::ports::{JournalError, KnowledgePlace};
use trellis_queries::TermId;

/// Graphs that go in one transaction, and terms that are looked for at once.
const GRAPHS: usize = 256;
const TERMS: usize = 10_000;

const PLACES: Places =
    Places { removed: "knowledge_removed", tables: &["knowledge_quads", "knowledge_terms", "knowledge_sources"] };

impl PostgresKnowledge {
    /// Gives up the place of a collection, and then what lies there. How many quads it had.
    pub(super) async fn give_up(&self, place: &KnowledgePlace) -> Result<Option<u64>, JournalError> {
        let mut lease = self.lease().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        let Some(held) = hold(&transaction, place).await? else { return Ok(None) };
        let quads = abandon(&transaction, held.place).await?;
        transaction.commit().await.map_err(failed)?;
        lease.release();
        self.sweep_all().await;
        Ok(Some(quads))
    }

    /// Removes what lies in places that nobody has any more.
    pub(super) async fn sweep_all(&self) {
        PLACES.sweep_all(&self.database).await;
    }

    /// Takes graphs away, in their order, and with the last one the source that they came from. A collection that has
    /// nothing more is gone, too. How many quads there were.
    pub(super) async fn take_graphs(
        &self,
        place: &KnowledgePlace,
        source: &str,
        graphs: &[String],
    ) -> Result<u64, JournalError> {
        let graphs: Vec<_> = graphs.iter().map(|graph| TermId::of_graph(Some(graph))).collect();
        let (last, others) = graphs.split_last().map_or((None, &[][..]), |(last, others)| (Some(*last), others));
        let mut removed = 0;
        for some in others.chunks(GRAPHS) {
            removed += self.take(place, some, None).await?;
        }
        removed += self.take(place, last.as_slice(), Some(source)).await?;
        self.sweep_all().await;
        Ok(removed)
    }

    /// One transaction of that, the last of which names the source.
    async fn take(&self, place: &KnowledgePlace, graphs: &[TermId], source: Option<&str>) -> Result<u64, JournalError> {
        let mut lease = self.lease().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        let Some(held) = hold(&transaction, place).await? else {
            drop(transaction);
            lease.release();
            return Ok(0);
        };
        let take = format!(
            "DELETE FROM knowledge_quads WHERE place = $1 AND g = ANY ($2::bytea[]) AND g <> {MAIN_GRAPH} \
             RETURNING s, p, o, g"
        );
        let graphs: Vec<_> = graphs.iter().map(|graph| bytes(*graph)).collect();
        let (mut terms, mut gone) = (BTreeSet::new(), 0_i64);
        for row in rows(&transaction, &take, &[&held.place, &graphs]).await? {
            gone += 1;
            for column in 0..4 {
                terms.insert(id(&row, column)?);
            }
        }
        forget_unused(&transaction, held.place, &terms).await?;
        let forget = "DELETE FROM knowledge_sources WHERE place = $1 AND name = $2";
        let sources = match source {
            Some(source) => execute(&transaction, forget, &[&held.place, &source.as_bytes()]).await?,
            None => 0,
        };
        let count = "UPDATE knowledge_collections SET quads = quads - $2, sources = sources - $3 WHERE place = $1 \
            RETURNING quads = 0 AND sources = 0";
        let sources = i64::try_from(sources).unwrap_or(i64::MAX);
        let left = rows(&transaction, count, &[&held.place, &gone, &sources]).await?;
        if source.is_some() && left.first().is_some_and(|row| row.get(0)) {
            abandon(&transaction, held.place).await?;
        }
        transaction.commit().await.map_err(failed)?;
        lease.release();
        Ok(gone.unsigned_abs())
    }
}

/// Nobody finds the collection any more. How many quads it had.
async fn abandon(transaction: &Transaction<'_>, place: i64) -> Result<u64, JournalError> {
    let forget = "DELETE FROM knowledge_collections WHERE place = $1 RETURNING quads";
    let quads = rows(transaction, forget, &[&place]).await?.first().map_or(0, |row| row.get::<_, i64>(0));
    execute(transaction, "INSERT INTO knowledge_removed (place) VALUES ($1)", &[&place]).await?;
    Ok(quads.unsigned_abs())
}

/// Removes terms, unless quads that are left use them.
async fn forget_unused(
    transaction: &Transaction<'_>,
    place: i64,
    terms: &BTreeSet<TermId>,
) -> Result<(), JournalError> {
    let uses = ["s", "p", "o", "g"].map(|part| {
        let indexed = if part == "g" { format!(" AND q.g <> {MAIN_GRAPH}") } else { String::new() };
        format!(
            " AND NOT EXISTS (SELECT 1 FROM knowledge_quads q WHERE q.place = t.place AND q.{part} = t.id{indexed})"
        )
    });
    // The graph of runs has no index by which it could be found.
    let unused = format!(
        "DELETE FROM knowledge_terms t USING unnest($2::bytea[]) AS n (id) \
         WHERE t.place = $1 AND t.id = n.id AND t.id <> {MAIN_GRAPH}{}",
        uses.concat()
    );
    let terms: Vec<_> = terms.iter().map(|id| bytes(*id)).collect();
    for some in terms.chunks(TERMS) {
        execute(transaction, &unused, &[&place, &some]).await?;
    }
    Ok(())
}
