//! `POST /api/v1/runs/{id}/decide`: answering a question that a run waits for.

use super::create::refuse_unknown;
use super::shapes::DecidedRun;
use super::{ApiError, FoundRun, JsonObject, Place, Usual};
use crate::members::Members;
use axum::Json;
use serde_json::{Map, Value};
use trellis_domain::record::{Core, Name};
use trellis_domain::{Caller, SessionId, Surface};
use trellis_orchestrator::Answering;

/// Answer a question that a run waits for
///
/// The run goes on with the answer, and who gave it is on record.
#[utoipa::path(
    post, path = "/api/v1/runs/{id}/decide", tag = "runs", operation_id = "decideRun",
    params(("id" = String, Path, description = "The whole id of a run"), Place),
    request_body(content = super::shapes::Decision, content_type = "application/json"),
    responses(
        (status = 200, description = "Decided; this is stored", body = DecidedRun),
        (status = 409, description = "There is nothing to decide, or it is decided already", body = ApiError),
        Usual,
    ),
)]
pub(crate) async fn decide(
    FoundRun { inside, run, .. }: FoundRun,
    JsonObject(body): JsonObject,
) -> Result<Json<DecidedRun>, ApiError> {
    let answer = answering(&body, inside.caller(Surface::Api))?;
    let choice = answer.choice.clone();
    let decided = inside.decide(&run.run, answer).await??;
    let (session_id, park) = (decided.session.as_str().to_owned(), Name::park(decided.number).as_str().to_owned());
    Ok(Json(DecidedRun { run_id: run.run.as_str().to_owned(), session_id, park, choice }))
}

/// The answer that a body tells of.
pub(crate) fn answering(body: &Map<String, Value>, by: Caller) -> Result<Answering, ApiError> {
    refuse_unknown(body, &["choice", "reason", "arguments", "result", "content", "session_id", "park"], "a decision")?;
    let members = Members::new(body);
    let text = |name: &str| members.text(name).map(|text| text.filter(|text| !text.is_empty()).map(str::to_owned));
    let object = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object.clone())),
        Some(other) => Err(ApiError::request(format!("`{name}` must be an object, found {other}"))),
    };
    let (arguments, content) = (object("arguments")?, object("content")?);
    let question = match (text("session_id")?, text("park")?) {
        (None, None) => None,
        (Some(session), Some(park)) => {
            let Some(Core::Park(number)) = Name::new(park.as_str()).core() else {
                return Err(ApiError::request(format!("`park` must be such as `park/1`, found {park:?}")));
            };
            Some((SessionId::new(&session).map_err(|error| ApiError::request(error.to_string()))?, number))
        }
        (Some(_), None) | (None, Some(_)) => {
            return Err(ApiError::request("give `session_id` and `park` together, or neither"));
        }
    };
    let choice = text("choice")?.ok_or_else(|| ApiError::request("`choice` is missing; name one of the options"))?;
    Ok(Answering { question, choice, reason: text("reason")?, arguments, result: text("result")?, content, by })
}
