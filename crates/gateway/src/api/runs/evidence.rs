//! `GET /api/v1/runs/{id}/evidence`: what others need to check a run without trusting this server.

use super::{Fault, Id, Parameters, Place, Usual, enter, find, read};
use crate::inside::Gateway;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use std::sync::Arc;
use trellis_orchestrator::evidence::Evidence;

/// Read a run's evidence
///
/// Its records as they are stored, each with the proof that it is in the log, and the signed checkpoint of the log that the
/// proofs lead to. The configurations that the run used come along; one that holds secrets comes without them, and says so.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/evidence", tag = "runs", operation_id = "getEvidence",
    params(("id" = String, Path, description = "The whole id of a run"), Place),
    responses((status = 200, description = "Records and proofs", body = Object), Usual),
)]
pub(crate) async fn evidence(
    State(gateway): State<Arc<Gateway>>,
    Id(id): Id,
    parameters: Parameters<Place>,
    headers: HeaderMap,
) -> Result<Json<Evidence>, Fault> {
    let inside = enter(&gateway, &headers, read(parameters)?.workspace.as_deref()).await?;
    let run = find(&inside, &id).await?.run;
    let evidence = inside.log().evidence(inside.workspace(), &run).await?;
    evidence.map(Json).ok_or_else(|| Fault::no_run(&id))
}
