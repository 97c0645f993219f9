//! `POST /api/v1/runs/{id}/tell`: a message to a run that is under way.

use super::create::refuse_unknown;
use super::shapes::{Message, ToldRun};
use super::{ApiError, FoundRun, JsonObject, Place, Usual};
use crate::members::Members;
use axum::Json;
use trellis_domain::Surface;

/// Tell a run something while it is under way
///
/// Whatever models are asked next, they are told this as well, in all agents that are at work. The message and who sent it are
/// on record. An answer that was given before is not taken back.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/tell", tag = "runs", operation_id = "tellRun",
    params(("id" = String, Path, description = "The whole id of a run"), Place),
    request_body(content = Message, content_type = "application/json"),
    responses(
        (status = 200, description = "Told; this is stored", body = ToldRun),
        (status = 409, description = "The run had ended already, or was told too much", body = ApiError),
        Usual,
    ),
)]
pub(crate) async fn tell(
    FoundRun { inside, run, .. }: FoundRun,
    JsonObject(body): JsonObject,
) -> Result<Json<ToldRun>, ApiError> {
    refuse_unknown(&body, &["message"], "a message")?;
    let message = Members::new(&body).text("message")?.unwrap_or_default().to_owned();
    let told = inside.tell(&run.run, message, Surface::Api).await??;
    Ok(Json(ToldRun { run_id: run.run.as_str().to_owned(), number: told.number, agents: told.agents }))
}
