//! `POST /api/v1/runs/{id}/cancel`: ending a run.

use super::shapes::CancelledRun;
use super::{ApiError, FoundRun, Place, Usual};
use axum::Json;
use trellis_domain::Surface;
use trellis_domain::run::RunState;
use trellis_orchestrator::Cancelling;

/// Cancel a run
///
/// Ends the run and everything below it. What is recorded stays; calls in flight are let go.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/cancel", tag = "runs", operation_id = "cancelRun",
    params(("id" = String, Path, description = "The whole id of a run"), Place),
    responses(
        (status = 200, description = "Cancelled; this is stored", body = CancelledRun),
        (status = 409, description = "The run had ended already; the error has its state", body = ApiError),
        Usual,
    ),
)]
pub(crate) async fn cancel(FoundRun { inside, run, .. }: FoundRun) -> Result<Json<CancelledRun>, ApiError> {
    let id = run.run.as_str();
    match inside.cancel(&run.run, Surface::Api).await?? {
        Cancelling::Cancelled => {
            Ok(Json(CancelledRun { run_id: id.to_owned(), state: RunState::Cancelled.to_string() }))
        }
        Cancelling::AlreadyEnded(state) => Err(ApiError::ended(state)),
        Cancelling::Unknown => Err(ApiError::no_run(id)),
    }
}
