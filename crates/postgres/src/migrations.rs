//! The tables, and how they came to be as they are. A migration is never changed after it was published.

use crate::database::quoted;
use crate::error::{OpenError, failed};
use deadpool_postgres::Object;

const ALL: [&str; 5] = [
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
];

/// What advisory locks of migrations are taken by: locks of this kind have two keys, all others here have one.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7472, 656)";

/// Brings the tables to the newest version. Several processes may start at once: one does it, the others wait.
pub(crate) async fn run(client: &mut Object, schema: &str) -> Result<(), OpenError> {
    let wrong = |error| OpenError::Migration(failed(error).to_string());
    look(client).await?;
    let schema = quoted(schema);
    let transaction = client.transaction().await.map_err(wrong)?;
    // Migrations may take as long as they need, and so may whoever waits for them.
    transaction.batch_execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0").await.map_err(wrong)?;
    transaction.execute(LOCK, &[]).await.map_err(wrong)?;
    let table = format!("{schema}.migrations");
    let found = transaction.query_one("SELECT to_regclass($1)::text", &[&table]).await.map_err(wrong)?;
    // Nothing is made where it is there: whoever may not make tables may use them.
    if found.get::<_, Option<String>>(0).is_none() {
        let begin = format!(
            "CREATE SCHEMA IF NOT EXISTS {schema}; \
             CREATE TABLE {schema}.migrations (version int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())"
        );
        transaction.batch_execute(&begin).await.map_err(wrong)?;
    }
    let row = transaction.query_one("SELECT coalesce(max(version), 0) FROM migrations", &[]).await.map_err(wrong)?;
    let (found, known): (i32, usize) = (row.get(0), ALL.len());
    let known = i32::try_from(known).unwrap_or(i32::MAX);
    if found > known {
        return Err(OpenError::Newer { found, known });
    }
    for (version, statements) in (1..=known).zip(ALL).filter(|(version, _)| *version > found) {
        transaction.batch_execute(statements).await.map_err(wrong)?;
        transaction.execute("INSERT INTO migrations (version) VALUES ($1)", &[&version]).await.map_err(wrong)?;
    }
    transaction.commit().await.map_err(wrong)
}

/// Whether this server can be used at all.
async fn look(client: &Object) -> Result<(), OpenError> {
    let query = "SELECT current_setting('server_version_num')::int, current_setting('server_version'), \
        current_setting('server_encoding'), current_setting('fsync') = 'on' AND current_setting('full_page_writes') = 'on' \
        AND current_setting('synchronous_commit') <> 'off'";
    let row = client.query_one(query, &[]).await.map_err(failed)?;
    if row.get::<_, i32>(0) < 140_000 {
        return Err(OpenError::TooOld(row.get(1)));
    }
    let encoding: String = row.get(2);
    if encoding != "UTF8" {
        return Err(OpenError::Encoding(encoding));
    }
    if !row.get::<_, bool>(3) {
        tracing::warn!(
            "the server does not wait for its disk (fsync, full_page_writes or synchronous_commit is off): what is committed may be lost when it stops"
        );
    }
    Ok(())
}
