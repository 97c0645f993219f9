//! `GET /api/v1/runs/{id}/evidence`: what others need to check a run without trusting this server.

use super::{ApiError, FoundRun, Place, Usual};
use axum::Json;
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
pub(crate) async fn evidence(FoundRun { inside, run, .. }: FoundRun) -> Result<Json<Evidence>, ApiError> {
    let evidence = inside.log().evidence(inside.workspace(), &run.run).await?;
    evidence.map(Json).ok_or_else(|| ApiError::no_run(run.run.as_str()))
}
