//! Rows of tables, on the folder and at a server.

use super::Desk;
use super::knowledge::{SILENT, Upload};
use super::server::{Server, ServerTrouble};
use crate::failure::{Exit, Failure};
use crate::person;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_domain::Collection;
use trellis_domain::table::TableSchema;
use trellis_orchestrator::ports::{Embedder, LoadedTable, TablePlace, TablesError};
use trellis_orchestrator::tables::graphql::{GraphqlRequest, answer};
use trellis_orchestrator::tables::{LoadedRows, TableLoadError};
use trellis_tabular::{Rows, Source};

/// A file of rows, opened.
pub(crate) struct RowsFile {
    pub(crate) source: Source,
    pub(crate) schema: Arc<TableSchema>,
    /// What its load is remembered by.
    pub(crate) stored_as: String,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
}

#[derive(Debug, Deserialize)]
struct Listed {
    tables: Vec<LoadedTable>,
}

#[derive(Debug, Deserialize)]
struct Removed {
    rows: u64,
}

impl From<TablesError> for Failure {
    fn from(error: TablesError) -> Self {
        match error {
            TablesError::Refused(message) => Self::usage(message),
            TablesError::Busy => Self::new(Exit::Limit, error.to_string()),
            TablesError::Store(error) => error.into(),
        }
    }
}

impl Desk {
    /// Loads a file into a table, and tells how far it is.
    pub(crate) async fn load_rows(
        &self,
        collection: &Collection,
        file: RowsFile,
        progress: impl Fn(LoadedRows) + Send + 'static,
    ) -> Result<LoadedRows, Failure> {
        match self {
            Self::Local(app) => {
                let RowsFile { source, schema, stored_as, embedder } = file;
                let place = TablePlace {
                    workspace: app.workspace().clone(),
                    collection: collection.clone(),
                    table: schema.name.clone(),
                };
                let rows = Rows::new(source, Arc::clone(&schema));
                let loaded = app
                    .table_loader(embedder)
                    .by(person::caller())
                    .load(place, schema, stored_as, rows, progress)
                    .await;
                loaded.map_err(|error| match error {
                    TableLoadError::Source(error) => Failure::usage(error.to_string()),
                    TableLoadError::Tables(error) => error.into(),
                    error @ TableLoadError::Embed(_) => Failure::new(Exit::Unreachable, error.to_string()),
                })
            }
            Self::Remote(server) => server.load_rows(collection, file).await,
        }
    }

    /// Tables by collection and name.
    pub(crate) async fn tables(&self) -> Result<Vec<LoadedTable>, Failure> {
        match self {
            Self::Local(app) => Ok(app.store.material.tables.tables(app.workspace()).await?),
            Self::Remote(server) => {
                let listed: Listed = server.ask(server.request(Method::GET, &["tables"], &[])).await?;
                Ok(listed.tables)
            }
        }
    }

    /// How many rows a table had.
    pub(crate) async fn remove_table(&self, collection: &Collection, table: &str) -> Result<u64, Failure> {
        match self {
            Self::Local(app) => {
                let (workspace, collection) = (app.workspace().clone(), collection.clone());
                let place = TablePlace { workspace, collection, table: table.to_owned() };
                let nothing =
                    format!("there is no table `{table}` in `{}`; `trellis tables list` lists all", place.collection);
                app.store.material.tables.remove(&place).await?.ok_or_else(|| Failure::new(Exit::NotFound, nothing))
            }
            Self::Remote(server) => {
                let path = ["tables", collection.as_str(), table];
                let removed: Removed = server.ask(server.request(Method::DELETE, &path, &[])).await?;
                Ok(removed.rows)
            }
        }
    }

    /// What a query in GraphQL finds, as the API gives it.
    pub(crate) async fn query_tables(&self, collection: &Collection, query: String) -> Result<Value, Failure> {
        match self {
            Self::Local(app) => {
                let settings = app.store.config.pin(app.workspace()).await?;
                let request = GraphqlRequest { query, ..GraphqlRequest::default() };
                let place = (app.workspace(), collection);
                let answer = answer(&*app.store.material.tables, place, &settings.schemas, &request).await;
                Ok(json!({"data": answer.data, "errors": answer.errors, "cut": answer.cut}))
            }
            Self::Remote(server) => {
                let mut body = json!({"query": query, "collection": collection});
                if let Some(workspace) = server.named_workspace() {
                    body["workspace"] = json!(workspace);
                }
                let request = server.request(Method::POST, &["flow", "default", "service", "rows"], &[]);
                server.ask(request.body(body.to_string())).await
            }
        }
    }
}

impl Server {
    async fn load_rows(&self, collection: &Collection, file: RowsFile) -> Result<LoadedRows, Failure> {
        let RowsFile { source, schema, stored_as, embedder: _ } = file;
        let query =
            [("format", source.format.name()), ("encoding", source.encoding.name()), ("source", stored_as.as_str())];
        let path = ["tables", collection.as_str(), &schema.name, "rows"];
        let (upload, sent) = Upload::of(source.reader);
        let request = self.request(Method::POST, &path, &query).body(reqwest::Body::wrap(upload));
        let name = source.name;
        self.json_while::<LoadedRows>(request, &sent, SILENT).await.map_err(|trouble| match trouble {
            // The server knows the file by another name than the one who types.
            ServerTrouble::Refused(refusal) if refusal.status == StatusCode::UNPROCESSABLE_ENTITY => {
                Failure::usage(refusal.message.replacen(&stored_as, &name, 1))
            }
            trouble @ (ServerTrouble::Lost(_) | ServerTrouble::Refused(_) | ServerTrouble::Foreign(_)) => {
                self.failure(trouble)
            }
        })
    }
}
