//! Rows by meaning: values of their fields that are near to a text.

use super::rules::MOST_FOUND;
use crate::ports::{
    Condition, EmbedError, Embedder, NearValue, RowQuery, TablePlace, Tables, TablesError, Test, TextRole, ValueQuery,
};
use serde_json::Value;
use std::sync::Arc;

/// How many more values are looked at than are wanted: those of rows that have changed are passed over.
const MORE: usize = 4;
/// Rows that are read to see whether one has a value, where no index tells.
const LOOKED_AT: u64 = 20_000;

/// Finds values by meaning.
#[derive(Debug, Clone)]
pub struct RowFinder {
    pub tables: Arc<dyn Tables>,
    pub embedder: Arc<dyn Embedder>,
}

#[derive(Debug, thiserror::Error)]
pub enum NearError {
    #[error(transparent)]
    Tables(#[from] TablesError),
    #[error("the embedding model failed: {0}")]
    Embed(#[from] EmbedError),
    /// The rows are there, and were never given to this model.
    #[error("the table `{table}` has no vectors of {model}; load it again")]
    NoVectors { table: String, model: String },
}

impl RowFinder {
    /// Values near to a text, the best first.
    pub async fn find(
        &self,
        place: &TablePlace,
        field: Option<&str>,
        text: &str,
        limit: usize,
    ) -> Result<Vec<NearValue>, NearError> {
        let vectors = self.embedder.embed(vec![text.to_owned()], TextRole::Question).await?;
        let vector = vectors.into_iter().next().unwrap_or_default();
        self.near(place, field, vector, limit).await
    }

    /// The same for a text of which somebody has the vector.
    pub async fn near(
        &self,
        place: &TablePlace,
        field: Option<&str>,
        vector: Vec<f32>,
        limit: usize,
    ) -> Result<Vec<NearValue>, NearError> {
        let model = self.embedder.model().to_owned();
        let limit = limit.clamp(1, MOST_FOUND);
        let asked = limit.saturating_mul(MORE).min(MOST_FOUND);
        let field = field.map(str::to_owned);
        let query = ValueQuery { model: model.clone(), vector, field: field.clone(), limit: asked };
        let found = self.tables.near(place, query).await?;
        if found.compared == 0 && field.is_none() && self.has_rows(place).await? {
            return Err(NearError::NoVectors { table: place.table.clone(), model });
        }
        let mut values = Vec::new();
        for value in found.values {
            if values.len() >= limit {
                break;
            }
            if self.is_there(place, &value).await {
                values.push(value);
            }
        }
        Ok(values)
    }

    async fn has_rows(&self, place: &TablePlace) -> Result<bool, TablesError> {
        let found = self.tables.find(place, RowQuery { limit: 1, ..RowQuery::default() }).await?;
        Ok(!found.rows.is_empty())
    }

    /// Whether a row has this value now. What cannot be found out counts as there.
    async fn is_there(&self, place: &TablePlace, value: &NearValue) -> bool {
        // Numbers and truth have their vectors as texts.
        let said = serde_json::from_str(&value.text).ok();
        let said = said.filter(|value: &Value| value.is_number() || value.is_boolean());
        let test = Test::In([value.text.as_str().into()].into_iter().chain(said).collect());
        let conditions = vec![Condition { field: value.field.clone(), test }];
        let query = RowQuery { conditions, limit: 1, budget: LOOKED_AT, ..RowQuery::default() };
        self.tables.find(place, query).await.map_or(true, |found| !found.rows.is_empty())
    }
}
