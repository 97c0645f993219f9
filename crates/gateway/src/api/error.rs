//! Why a request of our own API was not served, always in the same shape.

use crate::access::EnterError;
use crate::checks::CheckError;
use crate::error::{Code, ServiceError};
use crate::responses::{by_status, with_retry_after};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::collections::BTreeMap;
use tokio::task::JoinError;
use trellis_domain::run::RunState;
use trellis_domain::{Collection, RunId};
use trellis_orchestrator::orchestrator::TurnError;
use trellis_orchestrator::ports::{
    ConfigError, EmbedError, GraphError, JournalError, KnowledgeError, LogError, TablesError,
};
use trellis_orchestrator::service::PageError;
use trellis_orchestrator::toolbox::openapi::OpenApiError;
use trellis_orchestrator::toolbox::{DiscoverError, TrialError};
use trellis_orchestrator::{AcceptError, DecideError, TellError};
use utoipa::openapi::RefOr;
use utoipa::{IntoResponses, ToSchema};

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Fault)]
pub(crate) struct ApiError {
    pub(crate) error: ErrorDetails,
    #[serde(skip)]
    #[schema(ignore)]
    status: StatusCode,
    #[serde(skip)]
    #[schema(ignore)]
    retry_after: Option<u64>,
}

/// What was wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = FaultDetails)]
pub(crate) struct ErrorDetails {
    /// A word for programs, such as `not-found`
    #[serde(rename = "type")]
    kind: &'static str,
    /// A sentence for people
    message: String,
    /// The state of a run that had ended already
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    state: Option<RunState>,
}

/// Seconds after which some of many open runs have ended, most likely.
const SOME_END: u64 = 5;

/// What every path may answer when something is wrong.
#[derive(Debug)]
pub(crate) struct Usual;

impl IntoResponses for Usual {
    fn responses() -> BTreeMap<String, RefOr<utoipa::openapi::Response>> {
        by_status::<ApiError>(&[
            ("400", "The request is wrong; the message says what to change"),
            ("401", "No token, or one that nobody knows"),
            ("403", "From a page of another site, or the workspace is not the token's"),
            ("404", "No such run, item or workspace"),
            ("408", "The body stopped coming"),
            ("429", "Too many wrong tokens came from this address; `Retry-After` says when to come again"),
            ("500", "An internal error"),
            ("503", "The server is stopping, or its store fails; ask again later"),
        ])
    }
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { error: ErrorDetails { kind, message: message.into(), state: None }, status, retry_after: None }
    }

    /// The request itself is wrong.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", message)
    }

    pub(crate) fn no_run(id: &str) -> Self {
        let message = format!("there is no run `{id}`; GET /api/v1/runs lists them, and a path names the whole id");
        Self::new(StatusCode::NOT_FOUND, "not-found", message)
    }

    fn no_workspace() -> Self {
        Self::new(StatusCode::NOT_FOUND, "no-workspace", "workspace not found")
    }

    pub(crate) fn no_item(kind: &str, key: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "no-item", format!("there is no configuration item {kind}/{key}"))
    }

    pub(crate) fn no_knowledge(collection: &Collection) -> Self {
        let message =
            format!("the collection `{collection}` has no knowledge; GET /api/v1/collections lists those that do");
        Self::new(StatusCode::NOT_FOUND, "not-found", message)
    }

    pub(crate) fn no_table(table: &str) -> Self {
        let message = format!("there is no table `{table:.100}` in this collection; GET /api/v1/tables lists them");
        Self::new(StatusCode::NOT_FOUND, "not-found", message)
    }

    pub(crate) fn no_schema(table: &str) -> Self {
        let message =
            format!("there is no schema `{table:.100}`; put it into the configuration as an item of type `schema`");
        Self::new(StatusCode::NOT_FOUND, "not-found", message)
    }

    pub(crate) fn no_tool(name: &str) -> Self {
        let message = format!("there is no tool `{name:.100}`; GET /api/v1/tools lists them");
        Self::new(StatusCode::NOT_FOUND, "not-found", message)
    }

    /// An operation of an `OpenAPI` document can be no tool.
    pub(crate) fn no_operation(error: &OpenApiError) -> Self {
        let member = match error {
            OpenApiError::Server(_) => "; `server` names it",
            OpenApiError::NeedsSecret { .. } => "; `secrets` names it",
            OpenApiError::NotOpenApi(_)
            | OpenApiError::NoOperation { .. }
            | OpenApiError::Unnamed { .. }
            | OpenApiError::Reference { .. }
            | OpenApiError::TooLarge { .. }
            | OpenApiError::Security(_)
            | OpenApiError::NotSupported { .. } => "",
        };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "no-operation", format!("{error}{member}"))
    }

    /// The rows are there; what finds them by meaning is not.
    pub(crate) fn no_vectors(error: &EmbedError) -> Self {
        let message = format!("no vectors could be made: {error}; load the file again");
        Self::new(StatusCode::BAD_GATEWAY, "model-failed", message)
    }

    /// A file that says something wrong, or of which not everything came.
    pub(crate) fn wrong_file(message: String, interrupted: bool) -> Self {
        if interrupted {
            return Self::new(StatusCode::REQUEST_TIMEOUT, "interrupted", message);
        }
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "wrong-file", message)
    }

    pub(crate) fn too_many_loads() -> Self {
        let message = "as many files are being loaded as may be at once; load this one when another is done";
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many-loads", message);
        Self { retry_after: Some(SOME_END), ..error }
    }

    pub(crate) fn too_many_checks() -> Self {
        let message = "as much evidence is being gathered as may be at once; ask again in a while";
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many-checks", message);
        Self { retry_after: Some(SOME_END), ..error }
    }

    /// There is more than fits into one reply.
    pub(crate) fn too_large(what: impl std::fmt::Display) -> Self {
        let message = format!("{what}; read its records, which come in pages");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message)
    }

    /// Checking such a run is for whoever is where its records are.
    pub(crate) fn evidence_too_large(run: &RunId, most: usize) -> Self {
        let message = format!(
            "the records of run {run} have more than {} MiB, too much for one reply; check it on the machine of the server \
             with `trellis verify {run}`, or read its records, which come in pages",
            most >> 20
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message)
    }

    pub(crate) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "not-acceptable", message)
    }

    /// Status, word, message, and seconds after which it may be different: for surfaces that word errors in their own way.
    pub(crate) fn into_parts(self) -> (StatusCode, &'static str, String, Option<u64>) {
        (self.status, self.error.kind, self.error.message, self.retry_after)
    }

    fn not_the_callers() -> Self {
        let message = "this token does not reach that workspace; name one of its own, or none";
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn not_the_operator() -> Self {
        let message = "the log covers every workspace, and this token does not; ask with the operator's token";
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn forbidden() -> Self {
        let message = "a page of another site may not use this server, nor another name for this machine";
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn stopping() -> Self {
        let message = "the server is stopping; ask again in a moment, what was accepted goes on";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", message)
    }

    /// The run had ended, so it cannot be cancelled.
    pub(crate) fn ended(state: RunState) -> Self {
        let message = format!("the run has ended already: {state}");
        let mut error = Self::new(StatusCode::CONFLICT, "conflict", message);
        error.error.state = Some(state);
        error
    }

    /// Something that cannot happen. The log says more.
    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "a request failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "an internal error; the server's log says more")
    }
}

impl From<TrialError> for ApiError {
    fn from(error: TrialError) -> Self {
        let message = error.to_string();
        match error {
            TrialError::Unknown(name) => Self::no_tool(&name),
            TrialError::NotHere { .. } => Self::new(StatusCode::CONFLICT, "not-here", message),
            TrialError::Unsafe(_) => {
                let message = format!("{message}; send `\"unsafe\": true` to call it all the same");
                Self::new(StatusCode::CONFLICT, "unsafe", message)
            }
        }
    }
}

impl From<DiscoverError> for ApiError {
    fn from(error: DiscoverError) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", error.to_string())
    }
}

impl From<DecideError> for ApiError {
    fn from(error: DecideError) -> Self {
        let message = error.to_string();
        match error {
            DecideError::Unknown(run) => Self::no_run(run.as_str()),
            DecideError::Ended(state) => Self::ended(state),
            DecideError::NothingToDecide | DecideError::AlreadyDecided { .. } => {
                Self::new(StatusCode::CONFLICT, "conflict", message)
            }
            DecideError::NotAllowed(_) => Self::new(StatusCode::FORBIDDEN, "forbidden", message),
            DecideError::Several(_)
            | DecideError::NotAnOption { .. }
            | DecideError::NoArguments
            | DecideError::ResultMismatch
            | DecideError::ContentMismatch
            | DecideError::WrongContent(_)
            | DecideError::TooLong { .. } => Self::request(message),
            DecideError::Turn(error) => error.into(),
        }
    }
}

impl From<TellError> for ApiError {
    fn from(error: TellError) -> Self {
        let message = error.to_string();
        match error {
            TellError::Unknown(run) => Self::no_run(run.as_str()),
            TellError::Ended(state) => Self::ended(state),
            TellError::TooMany(_) | TellError::TooBusy => Self::new(StatusCode::CONFLICT, "conflict", message),
            TellError::Empty | TellError::TooLong { .. } => Self::request(message),
            TellError::Turn(error) => error.into(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status;
        let retry_after = self.retry_after;
        let mut response = with_retry_after((status, Json(self)).into_response(), retry_after);
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<ServiceError> for ApiError {
    fn from(error: ServiceError) -> Self {
        let ServiceError { code, message, retry_after } = error;
        let kind = match code {
            Code::AuthRequired => {
                let message = "send a token that is known: `Authorization: Bearer TOKEN`";
                return Self::new(code.status(), "unauthorized", message);
            }
            Code::AccessDenied => return Self::forbidden(),
            Code::NotFound | Code::MethodNotAllowed | Code::TimedOut | Code::TooLarge | Code::TooManyWrongTokens => {
                code.word()
            }
            Code::Gateway | Code::Config => "unavailable",
            Code::BadMessage
            | Code::BadRequest
            | Code::Operation
            | Code::NoWorkspace
            | Code::UnknownService
            | Code::Flow
            | Code::Agent
            | Code::Model
            | Code::RowsQuery
            | Code::NlpQuery
            | Code::StructuredQuery
            | Code::Unexpected => return Self::request(message),
        };
        Self { retry_after, ..Self::new(code.status(), kind, message) }
    }
}

/// A bug. The log says more.
impl From<JoinError> for ApiError {
    fn from(error: JoinError) -> Self {
        Self::internal(error)
    }
}

impl From<EnterError> for ApiError {
    fn from(outside: EnterError) -> Self {
        match outside {
            EnterError::Denied => Self::not_the_callers(),
            EnterError::NoWorkspace => Self::no_workspace(),
            EnterError::Failed(error) => error.into(),
        }
    }
}

impl From<JournalError> for ApiError {
    fn from(error: JournalError) -> Self {
        tracing::error!(%error, "the store failed");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", error.to_string())
    }
}

impl From<LogError> for ApiError {
    fn from(error: LogError) -> Self {
        match error {
            error @ LogError::Checkpoint(_) => Self::request(error.to_string()),
            error @ LogError::TooLarge(_) => Self::too_large(error),
            LogError::Store(error) => error.into(),
        }
    }
}

impl From<CheckError> for ApiError {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Store(error) => error.into(),
            CheckError::Bug(error) => Self::internal(error),
        }
    }
}

impl From<PageError> for ApiError {
    fn from(error: PageError) -> Self {
        match error {
            error @ PageError::NoCursor(_) => Self::request(error.to_string()),
            PageError::Journal(error) => error.into(),
        }
    }
}

impl From<ConfigError> for ApiError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Store(error) => error.into(),
            error @ ConfigError::Invalid(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-configuration", error.to_string())
            }
            error @ ConfigError::NoSnapshot(_) => Self::internal(error),
        }
    }
}

impl From<KnowledgeError> for ApiError {
    fn from(error: KnowledgeError) -> Self {
        match error {
            KnowledgeError::Refused(message) => Self::request(message),
            KnowledgeError::Busy(message) => Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many-loads", message),
            KnowledgeError::Store(error) => error.into(),
        }
    }
}

impl From<TablesError> for ApiError {
    fn from(error: TablesError) -> Self {
        match error {
            TablesError::Refused(message) => Self::request(message),
            TablesError::Busy => Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", error.to_string()),
            TablesError::Store(error) => error.into(),
        }
    }
}

impl From<GraphError> for ApiError {
    fn from(error: GraphError) -> Self {
        let message = error.to_string();
        match error {
            GraphError::Query(_) | GraphError::NoSparql => Self::request(message),
            GraphError::TooLarge(_) => Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message),
            GraphError::TimedOut(_) => Self::new(StatusCode::REQUEST_TIMEOUT, "timed-out", message),
            GraphError::Busy(_) => Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many-queries", message),
            GraphError::Index(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message),
            GraphError::Store(error) => error.into(),
        }
    }
}

impl From<TurnError> for ApiError {
    fn from(error: TurnError) -> Self {
        match error {
            TurnError::Journal(error) => error.into(),
            TurnError::Config(error) => error.into(),
            TurnError::Newer(error) => Self::new(StatusCode::CONFLICT, "conflict", error.to_string()),
        }
    }
}

impl From<AcceptError> for ApiError {
    fn from(error: AcceptError) -> Self {
        let message = error.to_string();
        match error {
            AcceptError::EmptyQuestion
            | AcceptError::InvalidId(_)
            | AcceptError::Refused(_)
            | AcceptError::NothingEarlier(_) => Self::request(message),
            AcceptError::QuestionTooLong { .. } | AcceptError::TooLarge(_) => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message)
            }
            AcceptError::OtherRequest { .. } | AcceptError::Newer(_) => {
                Self::new(StatusCode::CONFLICT, "conflict", message)
            }
            AcceptError::TooManyRuns { .. } => {
                let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "too-many-runs", message);
                Self { retry_after: Some(SOME_END), ..error }
            }
            AcceptError::Config(error) => error.into(),
            AcceptError::Journal(error) => error.into(),
        }
    }
}
