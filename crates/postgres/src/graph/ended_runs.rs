//! What a view follows that is kept outside the database.

use super::PostgresGraph;
use super::absorbing::{LEAVES, places};
use crate::reading::hash;
use std::collections::BTreeSet;
use trellis_domain::{Hash, RunId, Workspace};
use trellis_orchestrator::ports::{BoxFuture, JournalError};
use trellis_queries::{EndedPage, EndedRuns};

const HASH_BYTES: usize = 32;

impl PostgresGraph {
    async fn ended_behind(&self, behind: u64, limit: usize) -> Result<EndedPage, JournalError> {
        let leaves = i64::try_from(limit).unwrap_or(i64::MAX).min(LEAVES);
        // One statement, so that all of it is of one moment. A run that goes on behind these leaves comes with its last one.
        let query = "WITH page AS (SELECT number, workspace, run FROM leaves WHERE number >= $1 ORDER BY number LIMIT $2), \
            last AS (SELECT max(number) AS number FROM page) \
            SELECT DISTINCT r.workspace, r.run, last.number FROM last \
            LEFT JOIN (SELECT DISTINCT p.workspace, p.run FROM page p \
                JOIN runs r ON r.workspace = p.workspace AND r.run = p.run WHERE r.has_ended AND NOT EXISTS ( \
                    SELECT 1 FROM leaves n WHERE n.workspace = p.workspace AND n.run = p.run \
                        AND n.number > (SELECT max(number) FROM page))) r ON true";
        let rows = self.database().query(query, &[&place(behind), &leaves]).await?;
        let last = rows.first().and_then(|row| row.get::<_, Option<i64>>(2));
        let runs: Vec<_> = rows.into_iter().filter(|row| row.get::<_, Option<&str>>(1).is_some()).collect();
        Ok(EndedPage { runs: places(&runs)?, next: last.map_or(behind, |last| last.unsigned_abs() + 1) })
    }

    async fn newer_than(&self, workspace: &Workspace, behind: u64) -> Result<BTreeSet<RunId>, JournalError> {
        let query = "SELECT run FROM runs WHERE workspace = $1 AND NOT has_ended \
            UNION SELECT run FROM leaves WHERE number >= $2 AND workspace = $1 AND run IS NOT NULL \
            UNION SELECT run FROM unsequenced WHERE workspace = $1 AND run IS NOT NULL \
            UNION SELECT run FROM view_waiting WHERE workspace = $1";
        let rows = self.database().query(query, &[&workspace.as_str(), &place(behind)]).await?;
        Ok(rows.iter().filter_map(|row| RunId::new(row.get::<_, &str>(0)).ok()).collect())
    }

    async fn leaf_before(&self, place_of_next: u64) -> Result<Option<Hash>, JournalError> {
        let Some(last) = place_of_next.checked_sub(1) else { return Ok(None) };
        let row = self.database().find("SELECT nodes FROM leaves WHERE number = $1", &[&place(last)]).await?;
        // The leaf itself is the first of the nodes that are whole with it.
        row.and_then(|row| row.get::<_, &[u8]>(0).get(..HASH_BYTES).map(hash)).transpose()
    }
}

/// A place is the first leaf that was not looked at.
impl EndedRuns for PostgresGraph {
    fn ended(&self, behind: u64, limit: usize) -> BoxFuture<'_, Result<EndedPage, JournalError>> {
        Box::pin(self.ended_behind(behind, limit))
    }

    fn newer<'a>(
        &'a self,
        workspace: &'a Workspace,
        behind: u64,
    ) -> BoxFuture<'a, Result<BTreeSet<RunId>, JournalError>> {
        Box::pin(self.newer_than(workspace, behind))
    }

    fn identity(&self, place: u64) -> BoxFuture<'_, Result<Option<Hash>, JournalError>> {
        Box::pin(self.leaf_before(place))
    }
}

fn place(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
