//! `GET /api/v1/runs/{id}/evidence`: what others need to check a run without trusting this server.

use super::{ApiError, FoundRun, Place, Usual};
use crate::bounds;
use crate::checks::gathered;
use crate::inside::Gateway;
use axum::Json;
use axum::extract::State;
use std::sync::Arc;
use trellis_orchestrator::evidence::Evidence;
use trellis_orchestrator::ports::LogError;

/// Read a run's evidence
///
/// Its records as they are stored, each with the proof that it is in the log, and the signed checkpoint of the log that the
/// proofs lead to. The configurations that the run used come along; one that holds secrets comes without them, and says so.
#[utoipa::path(
    get, path = "/api/v1/runs/{id}/evidence", tag = "runs", operation_id = "getEvidence",
    params(("id" = String, Path, description = "The whole id of a run"), Place),
    responses(
        (status = 200, description = "Records and proofs", body = Object),
        (status = 413, description = "The run is too large for one reply; check it where its records are", body = ApiError),
        Usual,
    ),
)]
pub(crate) async fn evidence(
    State(gateway): State<Arc<Gateway>>,
    FoundRun { inside, run, .. }: FoundRun,
) -> Result<Json<Evidence>, ApiError> {
    let turn = gateway.capacity().checks.turn(inside.workspace()).await;
    let turn = turn.ok_or_else(ApiError::too_many_checks)?;
    match gathered(Arc::clone(inside.log()), (inside.workspace(), &run.run), bounds::EVIDENCE, turn).await? {
        Err(LogError::TooLarge(most)) => Err(ApiError::evidence_too_large(&run.run, most)),
        gathered => gathered?.0.map(Json).ok_or_else(|| ApiError::no_run(run.run.as_str())),
    }
}
