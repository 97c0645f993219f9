//! Rows from stock loaders: what one message of an import has, and where it goes.

use crate::error::ServiceError;
use crate::inside::Inside;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use trellis_domain::{Collection, Surface};
use trellis_orchestrator::ports::TablePlace;
use trellis_orchestrator::tables::{MOST_AT_ONCE, TableLoadError};

/// Sources that one connection may load from before they are finished.
const MOST_SOURCES: usize = 100;

/// A batch of rows of one schema.
#[derive(Debug, Deserialize)]
struct Batch {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    schema_name: String,
    /// A row, or several.
    #[serde(default)]
    values: Value,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    id: String,
    #[serde(default)]
    collection: String,
}

/// What came so far and is not finished.
#[derive(Debug, Default)]
pub(crate) struct RowsImport {
    sources: BTreeSet<(TablePlace, String)>,
}

impl RowsImport {
    /// Clients cannot be told of a wrong row and try again for ever if they are refused: such rows are left out, and the
    /// server's log says which.
    pub(crate) async fn take(&mut self, inside: &Inside, message: &[u8]) -> Result<(), ServiceError> {
        let wrong = |error: serde_json::Error| ServiceError::request(format!("not a batch of rows: {error}"));
        let batch: Batch = serde_json::from_slice(message).map_err(wrong)?;
        let collection = match batch.metadata.collection.as_str() {
            "" => Collection::default(),
            name => Collection::new(name).map_err(|error| ServiceError::request(error.to_string()))?,
        };
        let source = if batch.metadata.id.is_empty() { "an import".to_owned() } else { batch.metadata.id };
        let settings = inside.config().pin(inside.workspace()).await?;
        let Some(schema) = settings.schemas.get(&batch.schema_name) else {
            tracing::warn!(schema = batch.schema_name, "rows of a schema that does not exist were left out");
            return Ok(());
        };
        let rows = match batch.values {
            Value::Array(rows) => rows,
            Value::Null => Vec::new(),
            one @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => vec![one],
        };
        let read = |row: &Value| match row {
            Value::Object(cells) => {
                let row = schema.row(cells).map_err(|error| error.to_string())?;
                schema.key(&row).map(|_| row).map_err(|error| error.to_string())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                schema.row(&Map::new()).map_err(|_| "it is no object".to_owned())
            }
        };
        let kept = rows.iter().filter_map(|row| match read(row) {
            Ok(row) => Some(row),
            Err(why) => {
                tracing::warn!(why, schema = schema.name, source, "a row was left out");
                None
            }
        });
        let kept: Vec<_> = kept.collect();
        let table = schema.name.clone();
        let place = TablePlace { workspace: inside.workspace().clone(), collection, table };
        let loader = inside.tables().by(inside.caller(Surface::TrustgraphSocket));
        for batch in kept.chunks(MOST_AT_ONCE) {
            let put = loader.put::<std::convert::Infallible>(&place, schema, &source, batch.to_vec()).await;
            put.map_err(|error| match error {
                TableLoadError::Tables(error) => error.into(),
                TableLoadError::Embed(error) => ServiceError::from(error),
                TableLoadError::Source(never) => match never {},
            })?;
        }
        self.sources.insert((place, source));
        if self.sources.len() > MOST_SOURCES { self.finish(inside).await } else { Ok(()) }
    }

    /// Everything that came is on disk.
    pub(crate) async fn finish(&mut self, inside: &Inside) -> Result<(), ServiceError> {
        for (place, source) in std::mem::take(&mut self.sources) {
            inside.tables().tables().finish(&place, &source).await?;
        }
        Ok(())
    }
}
