//! `/v1/responses/{id}`: a response that was asked for before. Any run of the workspace can be read as one.

use super::super::OpenAiError;
use super::super::ending::EndedRun;
use super::super::error::Usual;
use super::super::extract::{Inward, Place};
use super::super::headers::of_run;
use super::super::stream::StreamedEvent;
use super::shapes::{Echo, ResponseObject};
use super::streamed;
use crate::api::Placed;
use crate::api::runs::number;
use crate::inside::{Gateway, Inside};
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;
use trellis_domain::{RunId, Surface};
use utoipa::IntoParams;

/// What is wanted of a response.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in super::super) struct Wanted {
    /// The workspace; the token's own if none is named
    workspace: Option<String>,
    /// `true` for the events of the response, from its beginning
    #[param(value_type = Option<bool>)]
    stream: Option<String>,
    /// With `stream`, only events behind this number
    #[param(value_type = Option<u64>, minimum = 0)]
    starting_after: Option<String>,
}

impl Placed for Wanted {
    fn workspace(&self) -> Option<&str> {
        self.workspace.as_deref()
    }
}

/// The run of a response.
pub(super) async fn find(inside: &Inside, id: &str) -> Result<EndedRun, OpenAiError> {
    let run = id.strip_prefix("resp_").and_then(|run| RunId::new(run).ok());
    let Some(run) = run else { return Err(OpenAiError::no_response(id)) };
    EndedRun::read(inside, &run).await
}

/// Look at one response
///
/// How far it is, and its answer if it has one. `metadata` comes with the reply to the request only: it is not kept.
#[utoipa::path(
    get, path = "/v1/responses/{id}", tag = "openai", operation_id = "getResponse",
    params(("id" = String, Path, description = "`resp_` and the id of a run"), Wanted),
    responses(
        (status = 200, description = "The response; with `stream` as events, named as their `type`", content(
            (ResponseObject = "application/json"), (StreamedEvent = "text/event-stream"),
        )),
        Usual,
    ),
)]
pub(in super::super) async fn one(
    State(gateway): State<Arc<Gateway>>,
    Inward(inside, wanted): Inward<Wanted>,
    Path(id): Path<String>,
) -> Result<Response, OpenAiError> {
    let found = find(&inside, &id).await?;
    let run = found.run().clone();
    if wanted.stream.as_deref() == Some("true") {
        let after = wanted.starting_after.map(|after| number("starting_after", &after)).transpose()?;
        return streamed(gateway, inside, run, Echo::default(), after).await;
    }
    Ok((of_run(&run), Json(ResponseObject::of(&found, &Echo::default()))).into_response())
}

/// Delete a response
///
/// Refused: records are kept, so that every answer can be explained. `trellis erase` takes texts out of them.
#[utoipa::path(
    delete, path = "/v1/responses/{id}", tag = "openai", operation_id = "deleteResponse",
    params(("id" = String, Path, description = "`resp_` and the id of a run"), Place),
    responses(Usual),
)]
pub(in super::super) async fn delete(
    Inward(inside, _): Inward,
    Path(id): Path<String>,
) -> Result<Response, OpenAiError> {
    find(&inside, &id).await?;
    Err(OpenAiError::records_are_kept())
}

/// Cancel a response
///
/// Ends the run and everything below it. One that has ended stays as it is.
#[utoipa::path(
    post, path = "/v1/responses/{id}/cancel", tag = "openai", operation_id = "cancelResponse",
    params(("id" = String, Path, description = "`resp_` and the id of a run"), Place),
    responses((status = 200, description = "The response as it is now", body = ResponseObject), Usual),
)]
pub(in super::super) async fn cancel(
    Inward(inside, _): Inward,
    Path(id): Path<String>,
) -> Result<Response, OpenAiError> {
    let found = find(&inside, &id).await?;
    let run = found.run();
    // Whether it had ended before is told by its state.
    inside.cancel(run, Surface::Openai).await??;
    let ended = EndedRun::read(&inside, run).await?;
    Ok((of_run(run), Json(ResponseObject::of(&ended, &Echo::default()))).into_response())
}
