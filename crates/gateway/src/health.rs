//! Whether the server lives, and whether it takes questions.

use crate::access::{EnterError, Identity, Reach};
use crate::bearer::identify;
use crate::error::{ErrorBody, ServiceError};
use crate::inside::Gateway;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

/// Whether the process lives
#[utoipa::path(
    get, path = "/healthz", tag = "health", operation_id = "live",
    responses(
        (status = 200, description = "It does", body = Object),
        (status = 403, description = "From a page of another site", body = ErrorBody),
        (status = 429, description = "Too many wrong tokens came from this address", body = ErrorBody),
    ),
)]
pub(crate) async fn live() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Whether questions are taken
///
/// The store answers, and the server is not about to stop.
#[utoipa::path(
    get, path = "/readyz", tag = "health", operation_id = "ready",
    responses(
        (status = 200, description = "They are", body = Object),
        (status = 403, description = "From a page of another site", body = ErrorBody),
        (status = 429, description = "Too many wrong tokens came from this address", body = ErrorBody),
        (status = 503, description = "The server is stopping, or its store fails", body = Object),
    ),
)]
pub(crate) async fn ready(State(gateway): State<Arc<Gateway>>, headers: HeaderMap) -> (StatusCode, Json<Value>) {
    if !gateway.takes_questions() {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "stopping"})));
    }
    // How much others do is for whoever sees all.
    let sees_all = operator(&gateway, &headers).is_ok();
    match gateway.open_runs().await {
        Ok(open) if sees_all => (StatusCode::OK, Json(json!({"status": "ready", "open_runs": open}))),
        Ok(_) => (StatusCode::OK, Json(json!({"status": "ready"}))),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "failed", "reason": error.to_string()}))),
    }
}

/// What there is to count, as Prometheus reads it
#[utoipa::path(
    get, path = "/api/metrics", tag = "health", operation_id = "metrics",
    responses(
        (status = 200, description = "Counts", body = String, content_type = "text/plain"),
        (status = 401, description = "No token, or one that nobody knows", body = ErrorBody),
        (status = 403, description = "From a page of another site, or the token is not the operator's", body = ErrorBody),
        (status = 429, description = "Too many wrong tokens came from this address", body = ErrorBody),
        (status = 503, description = "The store fails", body = ErrorBody),
    ),
)]
pub(crate) async fn metrics(State(gateway): State<Arc<Gateway>>, headers: HeaderMap) -> Result<String, ServiceError> {
    operator(&gateway, &headers)?;
    let (read, written) = gateway.tokens();
    let open = gateway.open_runs().await?;
    Ok(format!(
        "# HELP trellis_input_tokens_total Tokens that models have read since the start.\n\
         # TYPE trellis_input_tokens_total counter\ntrellis_input_tokens_total {read}\n\
         # HELP trellis_output_tokens_total Tokens that models have written since the start.\n\
         # TYPE trellis_output_tokens_total counter\ntrellis_output_tokens_total {written}\n\
         # HELP trellis_open_runs Runs without an end.\n# TYPE trellis_open_runs gauge\ntrellis_open_runs {open}\n"
    ))
}

/// Refuses whoever does not see all workspaces.
pub(crate) fn operator(gateway: &Gateway, headers: &HeaderMap) -> Result<Identity, ServiceError> {
    let identity = identify(gateway, headers)?;
    match identity.reach {
        Reach::All => Ok(identity),
        Reach::Only { .. } => Err(EnterError::Denied.into()),
    }
}
