//! From rows of a source to rows of a table, with the vectors of their values.

use super::rules::LONGEST_VALUE;
use crate::ports::{
    EmbedError, Embedder, JournalError, PutRows, TablePlace, Tables, TablesError, TextRole, ValueVector,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use trellis_domain::Caller;
use trellis_domain::table::{Row, TableSchema};

/// Rows of one batch, and the bytes after which it ends earlier.
const BATCH: usize = 2_000;
const BATCH_BYTES: usize = 4 << 20;

/// What a load came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedRows {
    pub rows: u64,
    pub new: u64,
    /// Rows that took the place of others with the same key.
    pub changed: u64,
    /// Values that are not found by meaning, because the table has as many that are as it can have.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub without_vectors: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl LoadedRows {
    fn add(&mut self, batch: Self) {
        self.rows += batch.rows;
        self.new += batch.new;
        self.changed += batch.changed;
        self.without_vectors += batch.without_vectors;
    }
}

/// Why a load ended before its time. What was put before stays.
#[derive(Debug, thiserror::Error)]
pub enum TableLoadError<E> {
    /// The source cannot be read further, or has a row that does not fit.
    #[error("{0}")]
    Source(E),
    #[error("no vectors could be made: {0}")]
    Embed(EmbedError),
    #[error(transparent)]
    Tables(TablesError),
}

impl<E> From<TablesError> for TableLoadError<E> {
    fn from(error: TablesError) -> Self {
        Self::Tables(error)
    }
}

/// Puts rows into tables. Loading the same again changes nothing; after a crash, loading again completes it.
#[derive(Debug, Clone)]
pub struct TableLoader {
    tables: Arc<dyn Tables>,
    /// Without one, rows are not found by meaning.
    embedder: Option<Arc<dyn Embedder>>,
    /// Who is noted with what is loaded.
    by: Option<Caller>,
}

impl TableLoader {
    pub fn new(tables: Arc<dyn Tables>, embedder: Option<Arc<dyn Embedder>>) -> Self {
        Self { tables, embedder, by: None }
    }

    /// The same for somebody who is on record with what they load.
    #[must_use]
    pub fn by(&self, caller: Caller) -> Self {
        Self { by: Some(caller), ..self.clone() }
    }

    pub fn tables(&self) -> &Arc<dyn Tables> {
        &self.tables
    }

    pub fn embedder(&self) -> Option<&Arc<dyn Embedder>> {
        self.embedder.as_ref()
    }

    /// One batch, with its vectors. Should they fail, the rows are there and are completed by putting them again.
    pub async fn put<E>(
        &self,
        place: &TablePlace,
        schema: &Arc<TableSchema>,
        source: &str,
        rows: Vec<Row>,
    ) -> Result<LoadedRows, TableLoadError<E>> {
        let count = rows.len() as u64;
        let values = if self.embedder.is_some() { values(schema, &rows) } else { Vec::new() };
        let PutRows { new, changed } = self.tables.put(place, Arc::clone(schema), source, rows).await?;
        if let Some(by) = &self.by {
            self.tables.note_loader(place, by).await?;
        }
        let mut loaded = LoadedRows { rows: count, new, changed, without_vectors: 0 };
        if let Some(embedder) = self.embedder.as_ref().filter(|_| !values.is_empty()) {
            let model = embedder.model();
            let unknown = self.tables.without_vectors(place, model, values).await?;
            loaded.without_vectors += unknown.no_room;
            let unknown = unknown.values;
            if !unknown.is_empty() {
                let texts = unknown.iter().map(|(_, text)| text.clone()).collect();
                let made = embedder.embed(texts, TextRole::Passage).await.map_err(TableLoadError::Embed)?;
                let vectors = unknown.into_iter().zip(made);
                let vectors = vectors.map(|((field, text), vector)| ValueVector { field, text, vector }).collect();
                // Others may have loaded meanwhile, too.
                loaded.without_vectors += self.tables.put_vectors(place, model, vectors).await?;
            }
        }
        Ok(loaded)
    }

    /// Puts what a source has, batch by batch, and tells how far it is. Reading a source blocks, so it has a thread of its
    /// own; it is not read ahead of what is stored.
    pub async fn load<E: Send + 'static>(
        &self,
        place: TablePlace,
        schema: Arc<TableSchema>,
        source: String,
        rows: impl Iterator<Item = Result<Row, E>> + Send + 'static,
        progress: impl Fn(LoadedRows) + Send + 'static,
    ) -> Result<LoadedRows, TableLoadError<E>> {
        let (runtime, this) = (tokio::runtime::Handle::current(), self.clone());
        let work = move || {
            let (mut loaded, mut batch, mut bytes) = (LoadedRows::default(), Vec::new(), 0);
            let put = |batch: &mut Vec<Row>, loaded: &mut LoadedRows| {
                // A source of which nothing can be read leaves no trace.
                if batch.is_empty() {
                    return Ok(());
                }
                let full = std::mem::take(batch);
                loaded.add(runtime.block_on(this.put(&place, &schema, &source, full))?);
                progress(*loaded);
                Ok::<_, TableLoadError<E>>(())
            };
            for row in rows {
                let row = match row {
                    Ok(row) => row,
                    Err(error) => {
                        // What is right up to there is kept: a load of the mended file has less to do.
                        put(&mut batch, &mut loaded)?;
                        return Err(TableLoadError::Source(error));
                    }
                };
                bytes += row.size();
                batch.push(row);
                if batch.len() >= BATCH || bytes >= BATCH_BYTES {
                    bytes = 0;
                    put(&mut batch, &mut loaded)?;
                }
            }
            put(&mut batch, &mut loaded)?;
            runtime.block_on(this.tables.finish(&place, &source))?;
            Ok(loaded)
        };
        let failed = |error: tokio::task::JoinError| TablesError::from(JournalError::Read(error.to_string()));
        tokio::task::spawn_blocking(work).await.map_err(|error| TableLoadError::Tables(failed(error)))?
    }
}

/// The different values of fields that are found by meaning.
fn values(schema: &TableSchema, rows: &[Row]) -> Vec<(String, String)> {
    let fields = || schema.fields.iter().filter(|field| field.by_meaning);
    let of_row = |row: &Row| {
        let value = |name: &String| match row.get(name)? {
            Value::String(text) => Some(text.clone()),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                Some(other.to_string())
            }
        };
        let of_field = |name: &String| value(name).map(|text| (name.clone(), text));
        fields().filter_map(|field| of_field(&field.name)).collect::<Vec<_>>()
    };
    let different: BTreeSet<_> = rows.iter().flat_map(of_row).collect();
    different.into_iter().filter(|(_, text)| !text.trim().is_empty() && text.len() <= LONGEST_VALUE).collect()
}
