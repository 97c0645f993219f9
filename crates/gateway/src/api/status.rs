//! `/api/v1/status`: how the processes of a deployment are getting on. It covers every workspace, so it is the operator's.

use super::{ApiError, Usual};
use crate::health::operator;
use crate::inside::Gateway;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use std::sync::Arc;
use trellis_orchestrator::status::Status;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where this path begins.
pub(crate) const ROOT: &str = "/api/v1/status";

pub(crate) fn router() -> OpenApiRouter<Arc<Gateway>> {
    OpenApiRouter::new().routes(routes!(status))
}

/// See who works and what waits
///
/// Processes that are alive, turns that wait and that are in hand, teams and people that are waited for, with their deadlines.
#[utoipa::path(
    get, path = "/api/v1/status", tag = "health", operation_id = "getStatus",
    responses((status = 200, description = "As it is now", body = Status), Usual),
)]
pub(crate) async fn status(gateway: State<Arc<Gateway>>, headers: HeaderMap) -> Result<Json<Status>, ApiError> {
    operator(&gateway, &headers)?;
    Ok(Json(gateway.status().await?))
}
