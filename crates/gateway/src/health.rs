//! Whether the server lives, and whether it takes questions.

use crate::Gateway;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

/// The process answers.
pub(crate) async fn live() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Questions are taken: the store answers, and the server is not about to stop.
pub(crate) async fn ready(State(gateway): State<Arc<Gateway>>) -> (StatusCode, Json<Value>) {
    if gateway.is_closing() {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "stopping"})));
    }
    let ports = &gateway.orchestrator.ports;
    match ports.config.workspaces().await {
        Ok(_) => (StatusCode::OK, Json(json!({"status": "ready", "open_runs": ports.journal.open_runs()}))),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "failed", "reason": error.to_string()}))),
    }
}
