//! GraphQL over tables, as TrustGraph makes it of schemas: a field for each table, with `where`, `order_by`, `direction`
//! and `limit`, and the fields of its rows below. Only reading, and bounded in everything.

mod arguments;
mod document;
mod filters;
mod guard;
mod selection;

pub use selection::described;
pub(super) use selection::written_name;

use super::rules::{BUDGET, MOST_FOUND};
use crate::ports::{RowQuery, TablePlace, Tables, TablesError};
use document::Operation;
use selection::{Column, Root};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::table::{Row, TableSchema};
use trellis_domain::{Collection, Workspace};

/// Bytes of an answer.
const LARGEST_ANSWER: usize = 4 << 20;
/// Rows that are given if a query names no number.
pub const USUAL_LIMIT: u64 = 100;

/// What tables there are, by name.
pub type Schemas = BTreeMap<String, Arc<TableSchema>>;

/// What is asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GraphqlRequest {
    pub query: String,
    pub variables: Map<String, Value>,
    /// Which operation is meant, if there are several.
    pub operation: Option<String>,
}

/// What is wrong with a query, or went wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct GraphqlError {
    pub message: String,
    /// The field of the answer that it concerns, if it concerns one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
}

impl GraphqlError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), path: Vec::new() }
    }

    fn at(position: graphql_parser::Pos, message: impl std::fmt::Display) -> Self {
        Self::new(format!("line {}: {message}", position.line))
    }
}

/// What came of a query: data, or errors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GraphqlAnswer {
    pub data: Option<Map<String, Value>>,
    pub errors: Vec<GraphqlError>,
    /// The fields that have more rows than are given here, because nobody gets more at once.
    pub cut: Vec<String>,
}

impl GraphqlAnswer {
    fn failed(error: GraphqlError) -> Self {
        Self { errors: vec![error], ..Self::default() }
    }
}

/// A query that was held against the schemas, and may run.
#[derive(Debug)]
pub struct Prepared {
    roots: Vec<Root>,
}

impl Prepared {
    /// Reads a query and checks all of it, before anything is read.
    pub fn new(schemas: &Schemas, request: &GraphqlRequest) -> Result<Self, GraphqlError> {
        guard::check(&request.query)?;
        let document = graphql_parser::parse_query::<String>(&request.query);
        let document = document.map_err(|error| GraphqlError::new(in_one_line(&error.to_string())))?;
        let operation = Operation::find(&document, request)?;
        selection::roots(schemas, &operation).map(|roots| Self { roots })
    }

    /// The tables that are asked, by name.
    pub fn tables(&self) -> Vec<String> {
        let mut names: Vec<_> = self.roots.iter().filter_map(|root| root.table().map(str::to_owned)).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Lowers the limit of every table to this.
    pub fn at_most(&mut self, rows: u64) {
        for root in &mut self.roots {
            if let Root::Table { limit, .. } = root {
                *limit = (*limit).min(rows);
            }
        }
    }

    pub async fn run(&self, tables: &dyn Tables, workspace: &Workspace, collection: &Collection) -> GraphqlAnswer {
        let mut answer = GraphqlAnswer::default();
        let (mut data, mut budget, mut bytes) = (Map::new(), BUDGET, 0);
        for root in &self.roots {
            let (key, schema, query, limit, columns) = match root {
                Root::TypeName { key } => {
                    data.insert(key.clone(), json!("Query"));
                    continue;
                }
                Root::Table { key, schema, query, limit, columns } => (key, schema, query, *limit, columns),
            };
            let place =
                TablePlace { workspace: workspace.clone(), collection: collection.clone(), table: schema.name.clone() };
            match rows(tables, &place, query, limit, budget).await {
                Ok(found) => {
                    budget = budget.saturating_sub(found.visited).max(1);
                    if found.is_cut {
                        answer.cut.push(key.clone());
                    }
                    let mut listed = Vec::with_capacity(found.rows.len());
                    for row in &found.rows {
                        // Before it is written: one field may be asked for under many names.
                        bytes += size(row, columns);
                        if bytes > LARGEST_ANSWER {
                            let message = "the answer is larger than 4 MiB; ask for fewer fields or rows".to_owned();
                            return GraphqlAnswer::failed(GraphqlError { message, path: vec![key.clone()] });
                        }
                        listed.push(written(row, schema, columns));
                    }
                    data.insert(key.clone(), Value::Array(listed));
                }
                Err(error) => {
                    return GraphqlAnswer::failed(GraphqlError { message: error.to_string(), path: vec![key.clone()] });
                }
            }
        }
        GraphqlAnswer { data: Some(data), ..answer }
    }
}

/// Answers a query. What is wrong with it is in the answer.
pub async fn answer(
    tables: &dyn Tables,
    (workspace, collection): (&Workspace, &Collection),
    schemas: &Schemas,
    request: &GraphqlRequest,
) -> GraphqlAnswer {
    match Prepared::new(schemas, request) {
        Ok(prepared) => prepared.run(tables, workspace, collection).await,
        Err(error) => GraphqlAnswer::failed(error),
    }
}

struct Found {
    rows: Vec<Row>,
    visited: u64,
    /// There are more than anybody gets at once.
    is_cut: bool,
}

async fn rows(
    tables: &dyn Tables,
    place: &TablePlace,
    query: &RowQuery,
    limit: u64,
    budget: u64,
) -> Result<Found, TablesError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if limit == 0 {
        return Ok(Found { rows: Vec::new(), visited: 0, is_cut: false });
    }
    let is_bounded = limit > MOST_FOUND;
    // One more tells whether there are more.
    let asked = if is_bounded { MOST_FOUND + 1 } else { limit };
    let found = tables.find(place, RowQuery { limit: asked, budget, ..query.clone() }).await?;
    let mut rows = found.rows;
    let is_cut = is_bounded && rows.len() > MOST_FOUND;
    rows.truncate(MOST_FOUND);
    Ok(Found { rows, visited: found.visited, is_cut })
}

/// About how many bytes a row takes, as it is asked for.
fn size(row: &Row, columns: &[(String, Column)]) -> usize {
    const OTHER: usize = 24;
    let of_value = |value: &Value| value.as_str().map_or(OTHER, str::len);
    let cell = |column: &Column| match column {
        Column::Field(name) => row.get(name).map_or(4, of_value),
        Column::TypeName => OTHER,
    };
    columns.iter().map(|(key, column)| key.len() + cell(column) + 6).sum()
}

fn written(row: &Row, schema: &TableSchema, columns: &[(String, Column)]) -> Value {
    let cell = |column: &Column| match column {
        Column::Field(name) => row.get(name).cloned().unwrap_or(Value::Null),
        Column::TypeName => json!(selection::type_name(schema, "Type")),
    };
    columns.iter().map(|(key, column)| (key.clone(), cell(column))).collect::<Map<_, _>>().into()
}

/// The parser's messages are several lines with what else could stand there.
fn in_one_line(message: &str) -> String {
    const SHOWN: usize = 400;
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(SHOWN).collect()
}

#[cfg(test)]
#[path = "graphql_tests.rs"]
mod tests;
