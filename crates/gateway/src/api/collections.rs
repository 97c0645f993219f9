//! `/api/v1/collections`: what is loaded, and loading it.

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
use std::sync::Arc;
use trellis_domain::{Collection, Surface};
use trellis_orchestrator::knowledge::{LoadError, NewSource, check_loaded, load};
use trellis_orchestrator::ports::{KnowledgePlace, LoadedCollection};
use trellis_rdf::{Format, Origin, ReadError, Statements};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where these paths are.
pub(crate) const ROOT: &str = "/api/v1/collections";

pub(crate) fn router() -> OpenApiRouter<Arc<Gateway>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(load_knowledge, remove_knowledge))
}

/// Whether a body is read as it comes, so that it need not fit into memory.
pub(super) fn takes_uploads(path: &str) -> bool {
    path.strip_prefix(ROOT).is_some_and(|rest| rest.ends_with("/knowledge"))
}

/// What is loaded.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Collections {
    collections: Vec<LoadedCollection>,
}

/// List what is loaded
///
/// The collections of the workspace that have knowledge, by name.
#[utoipa::path(
    get, path = "/api/v1/collections", tag = "knowledge", operation_id = "listCollections",
    params(Place),
    responses((status = 200, description = "All of them", body = Collections), Usual),
)]
async fn list(Entered { inside, .. }: Entered) -> Result<Json<Collections>, ApiError> {
    Ok(Json(Collections { collections: inside.knowledge().collections(inside.workspace()).await? }))
}

/// How a file is to be read.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Reading {
    /// The workspace; the caller's own if none is named
    workspace: Option<String>,
    /// `turtle`, `n-triples`, `n-quads`, `trig`, `json-ld` or `rdf-xml`; else the `Content-Type` says it
    format: Option<String>,
    /// What relative IRIs are relative to
    base: Option<String>,
    /// What the file is called: an unfinished load is told by it
    source: Option<String>,
    /// What tells its blank nodes from those of other files; else its name does
    scope: Option<String>,
}

impl Placed for Reading {
    fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }
}

/// What a load came to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LoadedFile {
    /// Statements that were read
    read: u64,
    /// Those that were not there before
    new: u64,
}

/// Load a file of RDF
///
/// The body is read as it comes, and may be of any size. Loading the same file again changes nothing. What was read before
/// a mistake is kept, and the file counts as unfinished until it is loaded to its end.
#[utoipa::path(
    post, path = "/api/v1/collections/{collection}/knowledge", tag = "knowledge", operation_id = "loadKnowledge",
    params(("collection" = String, Path, description = "Where the knowledge goes"), Reading),
    request_body(content = String, description = "The file", content_type = "text/turtle"),
    responses(
        (status = 200, description = "All of it is stored", body = LoadedFile),
        (status = 422, description = "The file is wrong; the message says where", body = ApiError),
        Usual,
    ),
)]
async fn load_knowledge(
    State(gateway): State<Arc<Gateway>>,
    collection: CollectionName,
    Entered { inside, parameters }: Entered<Reading>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<LoadedFile>, ApiError> {
    let place = KnowledgePlace { workspace: inside.workspace().clone(), collection: named(collection)? };
    let format = format(&parameters, &headers)?;
    let name = parameters.source.unwrap_or_else(|| "an upload".to_owned());
    let scope = parameters.scope.unwrap_or_else(|| name.clone());
    let origin = Origin { name: name.clone(), scope, base: parameters.base };
    let permit = gateway.capacity().loads.begin(inside.workspace()).ok_or_else(ApiError::too_many_loads)?;
    let (receiving, reader) = upload::channel();
    let statements = Statements::new(reader, format, origin, check_loaded).map_err(unreadable)?;
    let source = NewSource { place, name, by: inside.caller(Surface::Api) };
    // Beside this, so that the answer can go out while the rest of a wrong file still comes in.
    let receiving = tokio::spawn(receiving.receive(body));
    let loaded = tokio::select! {
        loaded = load(inside.shared_knowledge(), source, statements, |_| {}) => loaded,
        () = gateway.closed() => {
            receiving.abort();
            return Err(ApiError::stopping());
        }
    };
    drop(permit);
    match loaded {
        Ok(loaded) => Ok(Json(LoadedFile { read: loaded.read, new: loaded.new })),
        Err(LoadError::Source(error)) => Err(unreadable(error)),
        Err(LoadError::Knowledge(error)) => Err(error.into()),
    }
}

fn unreadable(error: ReadError) -> ApiError {
    ApiError::wrong_file(error.to_string(), error.interrupted)
}

fn format(parameters: &Reading, headers: &HeaderMap) -> Result<Format, ApiError> {
    let said = parameters.format.as_deref();
    let said = said.or_else(|| headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok())).unwrap_or_default();
    let unknown = || ApiError::request(format!("the format `{said}` is not known; these are: {}", Format::list()));
    Format::named(said).ok_or_else(unknown)
}

/// What was removed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RemovedKnowledge {
    /// Statements that it had
    quads: u64,
}

/// Remove the knowledge of a collection
///
/// What runs have recorded stays.
#[utoipa::path(
    delete, path = "/api/v1/collections/{collection}/knowledge", tag = "knowledge", operation_id = "removeKnowledge",
    params(("collection" = String, Path, description = "Whose knowledge goes"), Place),
    responses((status = 200, description = "It is gone", body = RemovedKnowledge), Usual),
)]
async fn remove_knowledge(
    collection: CollectionName,
    Entered { inside, .. }: Entered,
) -> Result<Json<RemovedKnowledge>, ApiError> {
    let place = KnowledgePlace { workspace: inside.workspace().clone(), collection: named(collection)? };
    let removed = inside.knowledge().remove(&place).await?;
    let quads = removed.ok_or_else(|| ApiError::no_knowledge(&place.collection))?;
    Ok(Json(RemovedKnowledge { quads }))
}

/// The name in the path, if it can be read.
type CollectionName = Result<Path<String>, PathRejection>;

fn named(collection: CollectionName) -> Result<Collection, ApiError> {
    let Path(collection) = collection.map_err(|error| ApiError::request(error.body_text()))?;
    Collection::new(&collection).map_err(|error| ApiError::request(error.to_string()))
}
