//! Why a request is not served, in the shape for which OpenAI's packages have exceptions.

use super::headers::of_run;
use crate::api::ApiError;
use crate::responses::{by_status, with_retry_after};
use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::collections::BTreeMap;
use trellis_domain::RunId;
use utoipa::openapi::RefOr;
use utoipa::{IntoResponses, ToSchema};

/// A refusal, or a run that brought no answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = OpenAiError)]
pub(crate) struct OpenAiError {
    error: Details,
    #[serde(skip)]
    #[schema(ignore)]
    status: StatusCode,
    #[serde(skip)]
    #[schema(ignore)]
    retry_after: Option<u64>,
    /// The run that was begun. To send the question again would begin another.
    #[serde(skip)]
    #[schema(ignore)]
    run: Option<RunId>,
}

/// What was wrong, and what to do about it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = OpenAiErrorDetails)]
struct Details {
    /// A sentence for people
    message: String,
    /// Such as `invalid_request_error`
    #[serde(rename = "type")]
    kind: &'static str,
    /// The parameter that is wrong
    #[schema(required)]
    param: Option<String>,
    /// A word for programs, such as `model_not_found`
    #[schema(required)]
    code: Option<&'static str>,
}

/// What every path may answer when something is wrong.
#[derive(Debug)]
pub(crate) struct Usual;

impl IntoResponses for Usual {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        by_status::<OpenAiError>(&[
            ("400", "The request is wrong; the message says what to change"),
            ("401", "No token, or one that nobody knows"),
            ("403", "From a page of another site, the workspace is not the token's, or it is not done here"),
            ("404", "No such model, response or workspace"),
            ("408", "The body stopped coming"),
            ("409", "The Idempotency-Key belongs to another request, the run was cancelled, or it waits for a person"),
            ("413", "The question or the body is too large"),
            ("429", "Too many runs are open, or too many wrong tokens came; see `Retry-After`"),
            ("500", "The run brought no answer, or an internal error"),
            ("503", "The server is stopping, or its store fails; ask again later"),
            ("504", "The run takes longer than its caller waits. It goes on"),
        ])
    }
}

impl OpenAiError {
    fn new(status: StatusCode, code: Option<&'static str>, message: impl Into<String>) -> Self {
        let kind = match status {
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        let error = Details { message: message.into(), kind, param: None, code };
        Self { error, status, retry_after: None, run: None }
    }

    /// A parameter is wrong.
    pub(crate) fn parameter(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Some("invalid_value"), message).about(name)
    }

    /// A parameter wants something that there is not.
    pub(crate) fn unsupported(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Some("unsupported_parameter"), message).about(name)
    }

    pub(crate) fn too_long(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Some("context_length_exceeded"), message).about(name)
    }

    pub(crate) fn no_model(name: &str, known: &str) -> Self {
        let message = format!("there is no model `{name}`; choose one of {known}");
        Self::new(StatusCode::NOT_FOUND, Some("model_not_found"), message).about("model")
    }

    pub(crate) fn no_response(id: &str) -> Self {
        let message = format!("there is no response `{id}`; an id is `resp_` and the id of a run of this workspace");
        Self::new(StatusCode::NOT_FOUND, Some("not_found"), message)
    }

    pub(crate) fn records_are_kept() -> Self {
        let message = "records are not deleted; `trellis erase` takes texts out of them, and the log says so";
        Self::new(StatusCode::FORBIDDEN, Some("records_are_kept"), message)
    }

    /// The run has no answer: it failed, or came to a limit before it had one.
    pub(crate) fn no_answer(run: &RunId, code: &'static str, why: &str) -> Self {
        let message = format!("run {run} ended without an answer: {why}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Some(code), message).after(run)
    }

    pub(crate) fn cancelled(run: &RunId) -> Self {
        Self::new(StatusCode::CONFLICT, Some("run_cancelled"), format!("run {run} was cancelled")).after(run)
    }

    /// The run waits for a person.
    pub(crate) fn waits(run: &RunId, question: &str) -> Self {
        let message = format!(
            "run {run} waits for a person to answer: {question} — answer with POST /api/v1/runs/{run}/decide or \
             `trellis run decide`, then read GET /v1/responses/resp_{run}"
        );
        Self::new(StatusCode::CONFLICT, Some("run_waits"), message).after(run)
    }

    pub(crate) fn still_running(run: &RunId) -> Self {
        let message = format!(
            "run {run} takes longer than this request waits. It goes on: read GET /v1/responses/resp_{run}, and ask with \
             `stream` or, for responses, `background` to wait for as long as it takes"
        );
        Self::new(StatusCode::GATEWAY_TIMEOUT, Some("run_goes_on"), message).after(run)
    }

    /// The server stops while somebody follows a run.
    pub(crate) fn goes_on(run: &RunId) -> Self {
        let message =
            format!("the server is stopping; run {run} goes on when it is back: read GET /v1/responses/resp_{run}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Some("run_goes_on"), message).after(run)
    }

    fn about(mut self, name: impl Into<String>) -> Self {
        self.error.param = Some(name.into());
        self
    }

    /// The question was accepted before this happened.
    pub(crate) fn after(mut self, run: &RunId) -> Self {
        self.run = Some(run.clone());
        self
    }

    pub(crate) fn code(&self) -> Option<&'static str> {
        self.error.code
    }

    pub(crate) fn message(&self) -> &str {
        &self.error.message
    }
}

impl<E: Into<ApiError>> From<E> for OpenAiError {
    fn from(error: E) -> Self {
        let (status, word, message, retry_after) = error.into().into_parts();
        let code = if status == StatusCode::UNAUTHORIZED { "invalid_api_key" } else { word };
        Self { retry_after, ..Self::new(status, Some(code), message) }
    }
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        let (status, retry_after, run) = (self.status, self.retry_after, self.run.clone());
        let mut response = with_retry_after((status, Json(self)).into_response(), retry_after);
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        // The packages send a question again by themselves after most errors.
        if run.is_some() || status == StatusCode::CONFLICT {
            headers.insert(HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));
        }
        if let Some(run) = run {
            headers.extend(of_run(&run));
        }
        response
    }
}
