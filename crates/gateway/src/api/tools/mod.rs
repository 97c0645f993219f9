//! `/api/v1/tools`: which there are and whether they can be called here; adding and removing them, calling one once, and
//! what MCP servers have. The command `trellis tools` does the same, with the same code.

mod discover;
mod shapes;
mod test;

use super::configuration::Changed;
use super::runs::create::refuse_unknown;
use super::{ApiError, Entered, JsonObject, Place, Usual};
use crate::inside::{Gateway, Inside};
use crate::members::Members;
use axum::Json;
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::routing::MethodRouter;
use serde_json::{Map, Value};
use shapes::{AddedTool, NewTool, OneTool, ToolList};
use std::sync::Arc;
use trellis_domain::Surface;
use trellis_domain::config::{ConfigItem, StoredItem, validate};
use trellis_orchestrator::toolbox::openapi::{SecretName, Wanted, expand};
use trellis_orchestrator::toolbox::{self, KIND, ListedTool, find_item};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where these paths begin.
pub(crate) const ROOT: &str = "/api/v1/tools";

pub(crate) fn router() -> OpenApiRouter<Arc<Gateway>> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(discover::discover))
        .routes(routes!(get, put, remove))
        .routes(routes!(test::test))
        .route(DISCOVER, called_discover())
}

/// Where servers are asked for their tools.
const DISCOVER: &str = "/api/v1/tools/discover";

/// A tool may be called as that path ends. Its own methods are those of any other.
fn called_discover() -> MethodRouter<Arc<Gateway>> {
    let it = || Named("discover".to_owned());
    axum::routing::get(move |entered: Entered| get(it(), entered))
        .put(move |entered: Entered, body: JsonObject| put(it(), entered, body))
        .delete(move |entered: Entered| remove(it(), entered))
}

/// The tool that a path names.
struct Named(String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let named = Path::<String>::from_request_parts(parts, state).await;
        named.map(|Path(name)| Self(name)).map_err(|_| ApiError::request("the name in the path must be UTF-8"))
    }
}

/// List tools
///
/// Those that cannot be called here are not offered to any model; `why_not` says why.
#[utoipa::path(
    get, path = "/api/v1/tools", tag = "tools", operation_id = "listTools",
    params(Place),
    responses((status = 200, description = "All of them, by name", body = ToolList), Usual),
)]
async fn list(Entered { inside, .. }: Entered) -> Result<Json<ToolList>, ApiError> {
    let settings = inside.config().pin(inside.workspace()).await?;
    Ok(Json(ToolList {
        version: settings.version,
        tools: toolbox::list(inside.workspace(), &settings, inside.tools()),
    }))
}

/// Read a tool
#[utoipa::path(
    get, path = "/api/v1/tools/{name}", tag = "tools", operation_id = "getTool",
    params(("name" = String, Path, description = "Its key, or what models call it"), Place),
    responses((status = 200, description = "The tool and its item", body = OneTool), Usual),
)]
async fn get(Named(name): Named, Entered { inside, .. }: Entered) -> Result<Json<OneTool>, ApiError> {
    let (version, items) = inside.config().all(inside.workspace()).await?;
    let item = find_item(&items, &name).ok_or_else(|| ApiError::no_tool(&name))?;
    // One whose item is wrong is no tool, and its item shows why.
    let tool = listed(&inside, item).await?;
    let value = serde_json::from_str(&item.value).unwrap_or_else(|_| Value::String(item.value.clone()));
    Ok(Json(OneTool { version, key: item.key.clone(), item: value, tool }))
}

/// How an item would be listed.
async fn listed(inside: &Inside, item: &StoredItem) -> Result<Option<ListedTool>, ApiError> {
    let Ok(ConfigItem::Tool(tool)) = validate(&item.kind, &item.key, &item.value) else { return Ok(None) };
    let settings = inside.config().pin(inside.workspace()).await?;
    Ok(Some(ListedTool::of(inside.workspace(), &tool, &settings, inside.tools())))
}

/// Add or change a tool
///
/// The body is its item, as `trellis tools add` takes it. With `openapi` it is one operation of an `OpenAPI` document, which
/// is stored as the request that it describes. New runs use it.
#[utoipa::path(
    put, path = "/api/v1/tools/{name}", tag = "tools", operation_id = "putTool",
    params(("name" = String, Path, description = "The key that it is stored under"), Place),
    request_body(content = NewTool, content_type = "application/json"),
    responses(
        (status = 200, description = "Stored, and whether it can be called here", body = AddedTool),
        (status = 413, description = "The body is too large", body = ApiError),
        (status = 422, description = "It can be no tool; nothing was written", body = ApiError),
        Usual,
    ),
)]
async fn put(
    Named(name): Named,
    Entered { inside, .. }: Entered,
    JsonObject(body): JsonObject,
) -> Result<Json<AddedTool>, ApiError> {
    let (value, notes) = match body.get("openapi") {
        Some(document @ Value::Object(_)) if body.contains_key("operation") => expanded(&body, document)?,
        _ => (Value::Object(body), Vec::new()),
    };
    let item = StoredItem { kind: KIND.to_owned(), key: name, value: value.to_string() };
    let version = inside.configure(vec![item.clone()], inside.caller(Surface::Api)).await?;
    let tool = listed(&inside, &item).await?.ok_or_else(|| ApiError::internal("a valid tool is none"))?;
    Ok(Json(AddedTool { version, key: item.key, item: value, tool, notes }))
}

/// One operation of a document as an item, and what was left out of it.
fn expanded(body: &Map<String, Value>, document: &Value) -> Result<(Value, Vec<String>), ApiError> {
    refuse_unknown(
        body,
        &["openapi", "operation", "server", "found_at", "secrets"],
        "a tool from an OpenAPI document",
    )?;
    let members = Members::new(body);
    let secrets = members.texts("secrets")?.unwrap_or_default();
    let secrets = secrets.iter().map(|name| name.parse()).collect::<Result<Vec<SecretName>, _>>();
    let wanted = Wanted {
        operation: members.text("operation")?.unwrap_or_default(),
        found_at: members.text("found_at")?,
        server: members.text("server")?,
        secrets: &secrets.map_err(ApiError::request)?,
    };
    let expanded = expand(document, wanted).map_err(|error| ApiError::no_operation(&error))?;
    Ok((expanded.item, expanded.notes))
}

/// Remove a tool
///
/// Runs that have begun keep it.
#[utoipa::path(
    delete, path = "/api/v1/tools/{name}", tag = "tools", operation_id = "removeTool",
    params(("name" = String, Path, description = "Its key, or what models call it"), Place),
    responses((status = 200, description = "Removed", body = Changed), Usual),
)]
async fn remove(Named(name): Named, Entered { inside, .. }: Entered) -> Result<Json<Changed>, ApiError> {
    let (_, items) = inside.config().all(inside.workspace()).await?;
    let key = find_item(&items, &name).map(|item| item.key.clone()).ok_or_else(|| ApiError::no_tool(&name))?;
    let deleted = inside.config().delete(inside.workspace(), KIND, &key, inside.caller(Surface::Api)).await?;
    deleted.map(|version| Json(Changed { version })).ok_or_else(|| ApiError::no_tool(&name))
}
