//! Records as they are read.

use crate::database::{Database, Parameters};
use crate::error::damaged;
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::Row;
use trellis_domain::record::{Record, UnreadableRecord};
use trellis_domain::{Hash, Workspace};
use trellis_orchestrator::ports::JournalError;

/// The large texts of records, by their hashes.
pub(crate) type Texts = HashMap<Hash, Arc<str>>;

/// The records that a condition describes.
pub(crate) async fn records(
    database: &Database,
    workspace: &Workspace,
    condition: &str,
    parameters: Parameters<'_>,
) -> Result<Vec<Arc<Record>>, JournalError> {
    let rows = database.query(&format!("SELECT stored, texts FROM records WHERE {condition}"), parameters).await?;
    let texts = texts(database, workspace, rows.iter().map(|row| row.get(1))).await?;
    rows.iter().map(|row| record(row.get(0), &texts)).collect()
}

pub(crate) fn record(stored: &[u8], texts: &Texts) -> Result<Arc<Record>, JournalError> {
    let mut fetch = |hash| text(texts, hash);
    Record::fetched(stored, &mut fetch).map(Arc::new).map_err(damaged)
}

/// A large text. Whether it is what was written is checked by whoever unseals it.
pub(crate) fn text(texts: &Texts, hash: Hash) -> Result<Arc<str>, UnreadableRecord> {
    texts.get(&hash).cloned().ok_or(UnreadableRecord::Stored { hash, what: "is missing" })
}

/// The large texts that these columns name, their hashes one behind the other.
pub(crate) async fn texts<'a>(
    database: &Database,
    workspace: &Workspace,
    columns: impl Iterator<Item = &'a [u8]>,
) -> Result<Texts, JournalError> {
    let hashes: Vec<&[u8]> = columns.flat_map(|hashes| hashes.chunks(32)).collect();
    if hashes.is_empty() {
        return Ok(Texts::new());
    }
    let query = "SELECT hash, text FROM texts WHERE workspace = $1 AND hash = ANY ($2::bytea[])";
    let rows = database.query(query, &[&workspace.as_str(), &hashes]).await?;
    let text = |row: &Row| Ok((hash(row.get(0))?, Arc::from(String::from_utf8_lossy(row.get(1)))));
    rows.iter().map(text).collect()
}

/// A hash out of a column.
pub(crate) fn hash(bytes: &[u8]) -> Result<Hash, JournalError> {
    let bytes = bytes.try_into().map_err(|_| damaged("a hash has not 32 bytes"))?;
    Ok(Hash::from_bytes(bytes))
}
