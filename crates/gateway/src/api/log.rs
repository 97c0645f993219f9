//! `/api/v1/log`: the log that proves all records. It covers every workspace, so it is the operator's.

use super::runs::{limit, number};
use super::{ApiError, JsonObject, OperatorLog, Parameters, Usual};
use crate::inside::Gateway;
use crate::members::Members;
use axum::Json;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use trellis_orchestrator::ports::{LogEntry, Verdict};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where these paths begin.
pub(crate) const ROOT: &str = "/api/v1/log";

const USUAL: usize = 100;
const MOST: usize = 200;

pub(crate) fn router() -> OpenApiRouter<Arc<Gateway>> {
    OpenApiRouter::new().routes(routes!(head)).routes(routes!(entries)).routes(routes!(verify))
}

/// The newest state of the log
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Head {
    /// Size and root, signed: a note in the form of transparency logs. Keep it elsewhere; it proves later that nothing
    /// was changed
    checkpoint: String,
    /// The public key that it is signed with, in the form of such notes
    key: String,
}

/// Read a checkpoint
///
/// Of the log that all records of all workspaces are leaves of.
#[utoipa::path(
    get, path = "/api/v1/log", tag = "log", operation_id = "getCheckpoint",
    responses((status = 200, description = "The log as it is now", body = Head), Usual),
)]
pub(crate) async fn head(OperatorLog(log): OperatorLog) -> Result<Json<Head>, ApiError> {
    Ok(Json(Head { checkpoint: log.checkpoint().await?, key: log.public_key() }))
}

/// Which entries are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// The first entry; the very first if left out
    #[param(value_type = Option<u64>, minimum = 0)]
    from: Option<String>,
    /// How many; 100 if left out
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200)]
    limit: Option<String>,
}

/// Entries in order
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Page {
    #[schema(value_type = Vec<Object>)]
    entries: Vec<LogEntry>,
}

/// Read entries of the log
///
/// What is hashed for each, in base64, so that the tree can be computed without this program.
#[utoipa::path(
    get, path = "/api/v1/log/entries", tag = "log", operation_id = "getLogEntries", params(Wanted),
    responses((status = 200, description = "Entries; none behind the end", body = Page), Usual),
)]
pub(crate) async fn entries(
    OperatorLog(log): OperatorLog,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Json<Page>, ApiError> {
    let from = wanted.from.map(|from| number("from", &from)).transpose()?.unwrap_or(0);
    let limit = limit(wanted.limit.as_deref(), USUAL, MOST)?;
    Ok(Json(Page { entries: log.entries(from, limit).await? }))
}

/// What the log is to be held against
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "the description of a body that is read member by member")]
pub(crate) struct Kept {
    /// A checkpoint that was kept
    checkpoint: String,
}

/// Hold the log against a checkpoint
///
/// Reads everything that the checkpoint covers; `faults` is empty if it is all there, unchanged.
#[utoipa::path(
    post, path = "/api/v1/log/verify", tag = "log", operation_id = "verifyLog",
    request_body(content = Kept, content_type = "application/json"),
    responses((status = 200, description = "What was found", body = Object), Usual),
)]
pub(crate) async fn verify(
    OperatorLog(log): OperatorLog,
    JsonObject(body): JsonObject,
) -> Result<Json<Verdict>, ApiError> {
    let checkpoint = Members::new(&body).required("checkpoint")?;
    Ok(Json(log.against(checkpoint).await?))
}
