//! `/api/v1/configuration`: the items of a workspace with their versions.
//!
//! Stock clients use the service `config`, which tells no versions and no history.

use super::{ApiError, Entered, JsonObject, Place, Placed, Usual};
use crate::inside::Gateway;
use crate::members::Members;
use axum::Json;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trellis_domain::Surface;
use trellis_domain::config::StoredItem;
use trellis_orchestrator::summary;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where these paths begin.
pub(crate) const ROOT: &str = "/api/v1/configuration";

pub(crate) fn router() -> OpenApiRouter<Arc<Gateway>> {
    OpenApiRouter::new().routes(routes!(all, write)).routes(routes!(delete)).routes(routes!(history))
}

/// An item as it is stored.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Item {
    /// Such as `tool`
    #[serde(rename = "type")]
    #[schema(min_length = 1)]
    kind: String,
    #[schema(min_length = 1)]
    key: String,
    /// Usually JSON, always as a text
    value: String,
}

/// Items, and the version that they are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Items {
    version: u64,
    items: Vec<Item>,
}

/// The version that a change has made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Changed {
    pub(crate) version: u64,
}

/// Items to be written.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct NewItems {
    #[schema(min_items = 1)]
    items: Vec<Item>,
}

/// The changes of an item, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct History {
    #[serde(rename = "type")]
    kind: String,
    key: String,
    #[schema(value_type = Vec<Object>)]
    versions: Vec<summary::Change>,
}

/// Which configuration is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// The workspace; the caller's own if none is named
    workspace: Option<String>,
    /// As it was at this version; as it is now if left out
    #[param(value_type = Option<u64>)]
    at: Option<String>,
}

impl Placed for Wanted {
    fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }
}

/// Read the whole configuration
#[utoipa::path(
    get, path = "/api/v1/configuration", tag = "configuration", operation_id = "getConfiguration",
    params(Wanted),
    responses((status = 200, description = "All items, sorted", body = Items), Usual),
)]
pub(crate) async fn all(Entered { inside, parameters: wanted }: Entered<Wanted>) -> Result<Json<Items>, ApiError> {
    let (version, items) = match wanted.at.as_deref().filter(|at| !at.is_empty()) {
        None => inside.config().all(inside.workspace()).await?,
        Some(at) => {
            let newest = inside.config().version(inside.workspace()).await?;
            let there = at.parse::<u64>().ok().filter(|version| *version <= newest);
            let none = || ApiError::request(format!("`at` must be a version; the newest is {newest}"));
            let version = there.ok_or_else(none)?;
            (version, inside.config().all_at(inside.workspace(), version).await?)
        }
    };
    let item = |StoredItem { kind, key, value }| Item { kind, key, value };
    Ok(Json(Items { version, items: items.into_iter().map(item).collect() }))
}

/// Write items
///
/// All of them, as one new version, or none. New runs use them.
#[utoipa::path(
    post, path = "/api/v1/configuration", tag = "configuration", operation_id = "writeConfiguration",
    params(Place),
    request_body(content = NewItems, content_type = "application/json"),
    responses(
        (status = 200, description = "Written", body = Changed),
        (status = 413, description = "The body is too large", body = ApiError),
        (status = 422, description = "An item is invalid; nothing was written", body = ApiError),
        Usual,
    ),
)]
pub(crate) async fn write(
    Entered { inside, .. }: Entered,
    JsonObject(body): JsonObject,
) -> Result<Json<Changed>, ApiError> {
    let items = Members::new(&body).items("items")?;
    if items.is_empty() {
        return Err(ApiError::request("there is nothing to write; `items` must be a list of items"));
    }
    let version = inside.configure(items, inside.caller(Surface::Api)).await?;
    Ok(Json(Changed { version }))
}

/// The type and the key in a path.
struct Named(String, String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let named = Path::<(String, String)>::from_request_parts(parts, state).await;
        let Path((kind, key)) = named.map_err(|_| ApiError::request("type and key in the path must be UTF-8"))?;
        Ok(Self(kind, key))
    }
}

/// Delete an item
#[utoipa::path(
    delete, path = "/api/v1/configuration/{type}/{key}", tag = "configuration", operation_id = "deleteItem",
    params(
        ("type" = String, Path, description = "Such as `tool`"), ("key" = String, Path, description = "Its name"), Place,
    ),
    responses(
        (status = 200, description = "Deleted", body = Changed),
        (status = 422, description = "The item is the program's own", body = ApiError),
        Usual,
    ),
)]
async fn delete(Named(kind, key): Named, Entered { inside, .. }: Entered) -> Result<Json<Changed>, ApiError> {
    let deleted = inside.config().delete(inside.workspace(), &kind, &key, inside.caller(Surface::Api)).await?;
    deleted.map(|version| Json(Changed { version })).ok_or_else(|| ApiError::no_item(&kind, &key))
}

/// Read how an item came to be as it is
#[utoipa::path(
    get, path = "/api/v1/configuration/{type}/{key}/history", tag = "configuration", operation_id = "getHistory",
    params(
        ("type" = String, Path, description = "Such as `tool`"), ("key" = String, Path, description = "Its name"), Place,
    ),
    responses((status = 200, description = "Its changes", body = History), Usual),
)]
async fn history(Named(kind, key): Named, Entered { inside, .. }: Entered) -> Result<Json<History>, ApiError> {
    let changes = inside.config().history(inside.workspace(), &kind, &key).await?;
    if changes.is_empty() {
        return Err(ApiError::no_item(&kind, &key));
    }
    Ok(Json(History { kind, key, versions: changes.into_iter().map(Into::into).collect() }))
}
