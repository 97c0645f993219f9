//! Notes of what is promised to somebody outside, which processes hold and take over from each other.

use crate::database::Database;
use crate::error::damaged;
use std::time::Duration;
use tokio_postgres::Row;
use trellis_domain::Scope;
use trellis_orchestrator::ports::{BoxFuture, JournalError, Note, Notes, World};

/// So many are taken over at a time.
const AT_ONCE: i64 = 1_000;

/// The notes of one process.
#[derive(Debug, Clone)]
pub struct PostgresNotes {
    database: Database,
    holder: String,
    /// Whoever has not said for so long that it is there has gone.
    patience: Duration,
}

impl PostgresNotes {
    pub fn new(database: &Database, patience: Duration, world: &dyn World) -> Self {
        Self { database: database.clone(), holder: world.fresh_id(), patience }
    }

    async fn begin_note(&self, note: &Note) -> Result<bool, JournalError> {
        let Note { name, kind, scope: Scope { workspace, flow }, text } = note;
        let insert = "INSERT INTO notes (name, kind, workspace, flow, note, holder, held_at) \
            VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp()) ON CONFLICT (name) DO NOTHING";
        let (workspace, flow, text) = (workspace.as_str(), flow.as_str(), text.as_bytes());
        Ok(self.database.execute(insert, &[name, kind, &workspace, &flow, &text, &self.holder]).await? > 0)
    }

    async fn take(&self, kind: &str, scope: &Scope) -> Result<Vec<String>, JournalError> {
        let update = "UPDATE notes SET holder = $1, held_at = clock_timestamp() WHERE name = ANY (ARRAY(\
            SELECT name FROM notes WHERE workspace = $2 AND flow = $3 AND kind = $4 AND \
            (holder IS NULL OR holder <> $1 AND held_at < clock_timestamp() - make_interval(secs => $5)) \
            ORDER BY name LIMIT $6 FOR UPDATE SKIP LOCKED)) RETURNING note";
        let (workspace, flow) = (scope.workspace.as_str(), scope.flow.as_str());
        let seconds = self.patience.as_secs_f64();
        let rows = self.database.query(update, &[&self.holder, &workspace, &flow, &kind, &seconds, &AT_ONCE]).await?;
        rows.iter().map(text_of).collect()
    }
}

fn text_of(row: &Row) -> Result<String, JournalError> {
    String::from_utf8(row.get(0)).map_err(|error| damaged(format!("a note is no text: {error}")))
}

impl Notes for PostgresNotes {
    fn begin<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<bool, JournalError>> {
        Box::pin(self.begin_note(note))
    }

    fn update<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<bool, JournalError>> {
        Box::pin(async move {
            let update = "UPDATE notes SET note = $2 WHERE name = $1 AND holder = $3 RETURNING 1";
            let text = note.text.as_bytes();
            Ok(!self.database.change_casually(update, &[&note.name, &text, &self.holder]).await?.is_empty())
        })
    }

    fn add<'a>(&'a self, note: &'a Note, line: &'a str) -> BoxFuture<'a, Result<bool, JournalError>> {
        Box::pin(async move {
            let insert = "INSERT INTO note_lines (name, line) \
                SELECT name, $2 FROM notes WHERE name = $1 AND holder = $3 RETURNING 1";
            Ok(!self.database.change_casually(insert, &[&note.name, &line.as_bytes(), &self.holder]).await?.is_empty())
        })
    }

    fn lines<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<Vec<String>, JournalError>> {
        Box::pin(async move {
            let lines = "SELECT line FROM note_lines WHERE name = $1 ORDER BY at";
            self.database.query(lines, &[&note.name]).await?.iter().map(text_of).collect()
        })
    }

    fn remove<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let delete = "DELETE FROM notes WHERE name = $1 AND holder = $2";
            self.database.execute(delete, &[&note.name, &self.holder]).await.map(drop)
        })
    }

    fn let_go<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<(), JournalError>> {
        Box::pin(async move {
            let update = "UPDATE notes SET holder = NULL WHERE name = $1 AND holder = $2";
            self.database.execute(update, &[&note.name, &self.holder]).await.map(drop)
        })
    }

    fn leave(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let update = "UPDATE notes SET holder = NULL WHERE holder = $1";
            self.database.execute(update, &[&self.holder]).await.map(drop)
        })
    }

    fn take_over<'a>(
        &'a self,
        kind: &'static str,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Vec<String>, JournalError>> {
        Box::pin(self.take(kind, scope))
    }

    fn hold(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let update = "UPDATE notes SET held_at = clock_timestamp() WHERE holder = $1 RETURNING 1";
            self.database.change_casually(update, &[&self.holder]).await.map(drop)
        })
    }
}
