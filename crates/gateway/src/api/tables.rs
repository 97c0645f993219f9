//! `/api/v1/tables`: which there are; loading rows into them, and removing them.

use super::{ApiError, Entered, Place, Placed, Usual};
use crate::inside::Gateway;
use crate::upload;
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};
use std::io::Read;
use std::sync::Arc;
use trellis_domain::{Collection, Surface};
use trellis_orchestrator::ports::{LoadedTable, TablePlace};
use trellis_orchestrator::tables::{LoadedRows, TableLoadError};
use trellis_tabular::{Encoding, Format, ReadError, Rows, Source};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where these paths are.
pub(crate) const ROOT: &str = "/api/v1/tables";

pub(crate) fn router() -> OpenApiRouter<Arc<Gateway>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(load_rows)).routes(routes!(remove_table))
}

/// Whether a body is read as it comes, so that it need not fit into memory.
pub(super) fn takes_uploads(path: &str) -> bool {
    path.strip_prefix(ROOT).is_some_and(|rest| rest.ends_with("/rows"))
}

/// Tables that have rows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tables {
    tables: Vec<LoadedTable>,
}

/// List tables
///
/// The tables of the workspace, by collection and name.
#[utoipa::path(
    get, path = "/api/v1/tables", tag = "tables", operation_id = "listTables",
    params(Place),
    responses((status = 200, description = "All of them", body = Tables), Usual),
)]
async fn list(Entered { inside, .. }: Entered) -> Result<Json<Tables>, ApiError> {
    Ok(Json(Tables { tables: inside.tables().tables().tables(inside.workspace()).await? }))
}

/// How a file is to be read.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Reading {
    /// The workspace; the caller's own if none is named
    workspace: Option<String>,
    /// `csv`, `tsv`, `jsonl` or `parquet`; else the `Content-Type` says it
    format: Option<String>,
    /// `utf-8` (also UTF-16 with its mark) or `windows-1252`
    encoding: Option<String>,
    /// What the file is called: an unfinished load is told by it
    source: Option<String>,
}

impl Placed for Reading {
    fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }
}

/// What a load came to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LoadedRowsBody {
    /// Rows that were read
    rows: u64,
    /// Those that were not there before
    new: u64,
    /// Those that took the place of others with the same key
    changed: u64,
    /// Values that are not found by meaning: the table has as many that are as it can have
    #[serde(skip_serializing_if = "Option::is_none")]
    without_vectors: Option<u64>,
}

impl From<LoadedRows> for LoadedRowsBody {
    fn from(loaded: LoadedRows) -> Self {
        let LoadedRows { rows, new, changed, without_vectors } = loaded;
        Self { rows, new, changed, without_vectors: Some(without_vectors).filter(|values| *values > 0) }
    }
}

/// Load rows
///
/// The body is read as it comes, and may be of any size; Parquet, which cannot be read before all of it has come, has at
/// most 1 GiB, and of which one at a time is loaded for a workspace. The schema has to be there, as a configuration item. Loading the
/// same file again changes nothing. What was read before a mistake is kept.
#[utoipa::path(
    post, path = "/api/v1/tables/{collection}/{table}/rows", tag = "tables", operation_id = "loadRows",
    params(
        TableNames,
        Reading,
    ),
    request_body(content = String, description = "The file", content_type = "text/csv"),
    responses(
        (status = 200, description = "All of it is stored", body = LoadedRowsBody),
        (status = 422, description = "The file is wrong; the message says where", body = ApiError),
        Usual,
    ),
)]
async fn load_rows(
    State(gateway): State<Arc<Gateway>>,
    names: Names,
    Entered { inside, parameters }: Entered<Reading>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<LoadedRowsBody>, ApiError> {
    let (collection, table) = named(names)?;
    let settings = inside.config().pin(inside.workspace()).await?;
    let schema = settings.schemas.get(&table).ok_or_else(|| ApiError::no_schema(&table))?;
    let format = format(&parameters, &headers)?;
    let encoding = parameters.encoding.as_deref().map_or(Some(Encoding::default()), Encoding::named);
    let encoding = encoding.ok_or_else(|| ApiError::request("`encoding` is neither utf-8 nor windows-1252"))?;
    let name = parameters.source.unwrap_or_else(|| "an upload".to_owned());
    let permit = gateway.capacity().loads.begin(inside.workspace()).ok_or_else(ApiError::too_many_loads)?;
    let (receiving, reader) = upload::channel();
    let (reader, turn): (Box<dyn Read + Send>, _) = match format {
        Format::Csv | Format::Tsv | Format::JsonLines => (Box::new(reader), None),
        Format::Parquet => {
            let parquet = inside.parquet().ok_or_else(|| ApiError::request("no Parquet file can be read here"))?;
            let turn = tokio::select! {
                turn = parquet.turn(inside.workspace()) => turn.ok_or_else(ApiError::too_many_loads)?,
                () = gateway.closed() => return Err(ApiError::stopping()),
            };
            (Box::new(parquet.unpacked(Box::new(reader))), Some(turn))
        }
    };
    let source = Source { name: name.clone(), reader, format, encoding };
    let rows = Rows::new(source, Arc::clone(schema));
    // Beside this, so that the answer can go out while the rest of a wrong file still comes in.
    let receiving = tokio::spawn(receiving.receive(body));
    let place = TablePlace { workspace: inside.workspace().clone(), collection, table };
    let tables = inside.tables().by(inside.caller(Surface::Api));
    let loaded = tokio::select! {
        loaded = tables.load(place, Arc::clone(schema), name, rows, |_| {}) => loaded,
        () = gateway.closed() => {
            receiving.abort();
            return Err(ApiError::stopping());
        }
    };
    drop((turn, permit));
    match loaded {
        Ok(loaded) => Ok(Json(loaded.into())),
        Err(TableLoadError::Source(error)) => Err(unreadable(error)),
        Err(TableLoadError::Tables(error)) => Err(error.into()),
        Err(TableLoadError::Embed(error)) => Err(ApiError::no_vectors(&error)),
    }
}

fn unreadable(error: ReadError) -> ApiError {
    ApiError::wrong_file(error.to_string(), error.interrupted)
}

fn format(parameters: &Reading, headers: &HeaderMap) -> Result<Format, ApiError> {
    let said = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let by_type = || Format::of_type(said);
    let found = parameters.format.as_deref().map_or_else(by_type, Format::named);
    let said = parameters.format.as_deref().unwrap_or(said);
    found.ok_or_else(|| ApiError::request(format!("the format `{said}` is not known; these are: {}", Format::list())))
}

/// What was removed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RemovedTable {
    /// Rows that it had
    rows: u64,
}

/// Remove a table
///
/// Its schema stays.
#[utoipa::path(
    delete, path = "/api/v1/tables/{collection}/{table}", tag = "tables", operation_id = "removeTable",
    params(
        TableNames,
        Place,
    ),
    responses((status = 200, description = "It is gone", body = RemovedTable), Usual),
)]
async fn remove_table(names: Names, Entered { inside, .. }: Entered) -> Result<Json<RemovedTable>, ApiError> {
    let (collection, table) = named(names)?;
    let place = TablePlace { workspace: inside.workspace().clone(), collection, table };
    let removed = inside.tables().tables().remove(&place).await?;
    let rows = removed.ok_or_else(|| ApiError::no_table(&place.table))?;
    Ok(Json(RemovedTable { rows }))
}

/// The names in the path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct TableNames {
    /// Where its rows are
    collection: String,
    /// The name of its schema
    table: String,
}

/// If they can be read.
type Names = Result<Path<TableNames>, PathRejection>;

fn named(names: Names) -> Result<(Collection, String), ApiError> {
    let Path(TableNames { collection, table }) = names.map_err(|error| ApiError::request(error.body_text()))?;
    let collection = Collection::new(&collection).map_err(|error| ApiError::request(error.to_string()))?;
    Ok((collection, table))
}
