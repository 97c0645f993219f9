//! `/v1/models`: the ways to be answered.

use super::error::Usual;
use super::extract::{Inward, Place};
use super::{OpenAiError, seconds};
use crate::inside::Inside;
use axum::Json;
use axum::extract::Path;
use serde::Serialize;
use serde_json::{Map, Value};
use trellis_patterns::router::callable;
use utoipa::ToSchema;

const PREFIX: &str = "trellis/";
/// The router chooses.
const AUTO: &str = "auto";

/// The models of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ModelList {
    object: &'static str,
    data: Vec<Model>,
}

/// A way to be answered.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Model {
    /// `trellis/auto`, or `trellis/` and a pattern
    id: String,
    object: &'static str,
    /// When the workspace was configured as it is, in seconds since 1970
    created: i64,
    owned_by: &'static str,
}

/// List the models
///
/// `trellis/auto` lets the router choose task type and pattern. Every pattern that is configured is a model, too.
#[utoipa::path(
    get, path = "/v1/models", tag = "openai", operation_id = "listModels", params(Place),
    responses((status = 200, description = "The models of the workspace", body = ModelList), Usual),
)]
pub(super) async fn list(Inward(inside, _): Inward) -> Result<Json<ModelList>, OpenAiError> {
    Ok(Json(ModelList { object: "list", data: all(&inside).await? }))
}

/// Look at one model
#[utoipa::path(
    get, path = "/v1/models/trellis/{name}", tag = "openai", operation_id = "getModel",
    params(("name" = String, Path, description = "The id of a model without `trellis/`, such as `auto`"), Place),
    responses((status = 200, description = "The model", body = Model), Usual),
)]
pub(super) async fn one(Inward(inside, _): Inward, Path(id): Path<String>) -> Result<Json<Model>, OpenAiError> {
    let mut models = all(&inside).await?;
    match models.iter().position(|model| model.id == id) {
        Some(found) => Ok(Json(models.swap_remove(found))),
        None => Err(unknown(&id, &models)),
    }
}

/// The pattern that a request wants, by the name of a model; empty if the router chooses.
pub(super) async fn pattern(inside: &Inside, body: &Map<String, Value>) -> Result<String, OpenAiError> {
    let missing = || OpenAiError::parameter("model", "the member `model` is missing; it must be a text");
    let name = body.get("model").and_then(Value::as_str).ok_or_else(missing)?;
    let models = all(inside).await?;
    if !models.iter().any(|model| model.id == name) {
        return Err(unknown(name, &models));
    }
    let pattern = name.strip_prefix(PREFIX).unwrap_or_default();
    Ok(if pattern == AUTO { String::new() } else { pattern.to_owned() })
}

/// The model that a run was asked of: the pattern that its caller named.
pub(super) fn name(pattern: Option<&str>) -> String {
    format!("{PREFIX}{}", pattern.unwrap_or(AUTO))
}

async fn all(inside: &Inside) -> Result<Vec<Model>, OpenAiError> {
    let (config, workspace) = (inside.config(), inside.workspace());
    let settings = config.pin(workspace).await?;
    let configured = config.configured(workspace, settings.version).await?;
    let created = configured.map_or(0, |configured| seconds(configured.time));
    let patterns = callable(&settings);
    let names = std::iter::once(name(None)).chain(patterns.iter().map(|pattern| name(Some(pattern))));
    Ok(names.map(|id| Model { id, object: "model", created, owned_by: "trellis" }).collect())
}

fn unknown(name: &str, models: &[Model]) -> OpenAiError {
    let known: Vec<_> = models.iter().map(|model| model.id.as_str()).collect();
    OpenAiError::no_model(name, &known.join(", "))
}
