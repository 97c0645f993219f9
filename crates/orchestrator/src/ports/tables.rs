//! Rows of tables, by workspace, collection and schema.

use super::{BoxFuture, JournalError, LoadedBy};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use trellis_domain::table::{Row, RowKey, TableSchema};
use trellis_domain::{Caller, Collection, Workspace};
use utoipa::ToSchema;

/// Where rows are kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TablePlace {
    pub workspace: Workspace,
    pub collection: Collection,
    /// The name of the schema.
    pub table: String,
}

/// What one batch came to. Rows that were there as they are count as neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PutRows {
    pub new: u64,
    /// Rows that took the place of others with the same key.
    pub changed: u64,
}

/// A table that has rows, or of which a load has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoadedTable {
    #[schema(value_type = String)]
    pub collection: Collection,
    /// The name of its schema.
    pub table: String,
    pub rows: u64,
    /// Sources of which only a part may be there, by name: loading them again completes them.
    pub unfinished: Vec<String>,
    /// Who loaded rows, each once, the last one last.
    #[serde(default)]
    pub loaded_by: Vec<LoadedBy>,
}

/// What a row has to be like.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub field: String,
    pub test: Test,
}

/// What is asked of a value. A row that has none passes no test.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    Is(Value),
    IsNot(Value),
    In(Vec<Value>),
    NotIn(Vec<Value>),
    Above(Value),
    AtLeast(Value),
    Below(Value),
    AtMost(Value),
    Contains(String),
    StartsWith(String),
    EndsWith(String),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Direction {
    #[default]
    Ascending,
    Descending,
}

/// Which rows are wanted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowQuery {
    /// All of them hold.
    pub conditions: Vec<Condition>,
    /// By the values of a field; else in the order of their keys. Rows without a value come first, or last if descending;
    /// equals in the order of their keys.
    pub order: Option<(String, Direction)>,
    /// Only rows behind this key. Not together with an order.
    pub after: Option<RowKey>,
    pub limit: usize,
    /// Rows that may be looked at for it.
    pub budget: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundRows {
    pub rows: Vec<Row>,
    /// The key of the last one, if there may be more behind it.
    pub next: Option<RowKey>,
    /// Rows that were looked at.
    pub visited: u64,
}

/// The vector of a value of a field.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueVector {
    pub field: String,
    pub text: String,
    pub vector: Vec<f32>,
}

/// Values without vectors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vectorless {
    /// As pairs of field and text.
    pub values: Vec<(String, String)>,
    /// How many others there are, which the table has no room for.
    pub no_room: u64,
}

impl Vectorless {
    /// Of all values that have none, as many as there is room for.
    pub fn within(mut values: Vec<(String, String)>, room: u64) -> Self {
        let kept = usize::try_from(room).unwrap_or(usize::MAX).min(values.len());
        let no_room = (values.len() - kept) as u64;
        values.truncate(kept);
        Self { values, no_room }
    }
}

/// What is near in meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueQuery {
    /// Vectors of different models are never compared.
    pub model: String,
    pub vector: Vec<f32>,
    /// None for all fields.
    pub field: Option<String>,
    pub limit: usize,
}

/// A value that some row has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NearValue {
    pub field: String,
    pub text: String,
    /// The cosine of the angle between the vectors.
    pub score: f64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct NearValues {
    /// The best first; equals by field and text.
    pub values: Vec<NearValue>,
    /// How many were compared. None means that the table has no vectors of that model.
    pub compared: u64,
}

/// Why rows were not taken, or cannot be given.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TablesError {
    /// The caller's own fault; nothing of the call was done.
    #[error("{0}")]
    Refused(String),
    #[error("too much is asked of the tables at once; ask again in a moment")]
    Busy,
    #[error(transparent)]
    Store(#[from] JournalError),
}

pub type TablesFuture<'a, T> = BoxFuture<'a, Result<T, TablesError>>;

/// What keeps tables promises:
///
/// - a batch is whole or absent, also after a crash, with everything that finds its rows;
/// - a row takes the place of the one with the same key, and putting the same again changes nothing;
/// - what was put is seen at once, and is on disk when its source is finished;
/// - nothing is found from another workspace, collection or table;
/// - no answer depends on which fields are indexed, only the work that it costs.
pub trait Tables: Send + Sync + std::fmt::Debug {
    /// Keeps rows of a source: all of them, or none if one is refused. The first rows of a table settle what it is told
    /// apart and found by; rows of a schema with another key are refused until the table is removed.
    fn put<'a>(
        &'a self,
        place: &'a TablePlace,
        schema: Arc<TableSchema>,
        source: &'a str,
        rows: Vec<Row>,
    ) -> TablesFuture<'a, PutRows>;

    /// Notes that everything of a source is there. It is on disk when this returns.
    fn finish<'a>(&'a self, place: &'a TablePlace, source: &'a str) -> TablesFuture<'a, ()>;

    /// Notes who loads rows into a table that is there.
    fn note_loader<'a>(&'a self, place: &'a TablePlace, caller: &'a Caller) -> TablesFuture<'a, ()>;

    /// Rows that fit. A query that would look at more than its budget is refused, and says what would help.
    fn find<'a>(&'a self, place: &'a TablePlace, query: RowQuery) -> TablesFuture<'a, FoundRows>;

    /// The tables of a workspace, by collection and name.
    fn tables<'a>(&'a self, workspace: &'a Workspace) -> TablesFuture<'a, Vec<LoadedTable>>;

    /// Takes a table away, at once for all who ask afterwards. How many rows it had; none if there was no such table.
    fn remove<'a>(&'a self, place: &'a TablePlace) -> TablesFuture<'a, Option<u64>>;

    /// The same for all tables of a collection: how many there were.
    fn remove_collection<'a>(&'a self, workspace: &'a Workspace, collection: &'a Collection) -> TablesFuture<'a, u64>;

    /// Those of these values, as pairs of field and text, of which a model's vectors are not known yet, as far as there is
    /// room for them.
    fn without_vectors<'a>(
        &'a self,
        place: &'a TablePlace,
        model: &'a str,
        values: Vec<(String, String)>,
    ) -> TablesFuture<'a, Vectorless>;

    /// Keeps vectors of values, as far as there is room; says how many there was none for. A table that was never begun has
    /// none.
    fn put_vectors<'a>(
        &'a self,
        place: &'a TablePlace,
        model: &'a str,
        vectors: Vec<ValueVector>,
    ) -> TablesFuture<'a, u64>;

    /// Values near to a vector. Some of them may be those of rows that have changed since.
    fn near<'a>(&'a self, place: &'a TablePlace, query: ValueQuery) -> TablesFuture<'a, NearValues>;
}
