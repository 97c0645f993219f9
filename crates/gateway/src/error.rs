//! Why a request of the compatible surfaces is not served, over the socket or over HTTP.

use crate::access::EnterError;
use crate::responses::with_retry_after;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinError;
use trellis_orchestrator::ports::{ConfigError, GraphError, JournalError, KnowledgeError, LibraryError};
use utoipa::ToSchema;

/// What is wrong, for programs. A service's error is sent with the word, for which the stock client has exceptions; a
/// request over HTTP that reaches no service is answered with the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    /// A frame that is no request.
    BadMessage,
    BadRequest,
    /// No kind of the stock client's: what it does not know it shows as unexpected.
    Operation,
    AuthRequired,
    AccessDenied,
    NoWorkspace,
    UnknownService,
    NotFound,
    MethodNotAllowed,
    TimedOut,
    TooLarge,
    TooManyWrongTokens,
    /// The server cannot, whatever is asked.
    Gateway,
    Config,
    Flow,
    Agent,
    Model,
    RowsQuery,
    NlpQuery,
    StructuredQuery,
    /// What the original does not expect.
    Unexpected,
}

impl Code {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::BadMessage => "error",
            Self::BadRequest => "request-error",
            Self::Operation => "unknown-operation",
            Self::AuthRequired => "auth-required",
            Self::AccessDenied => "access-denied",
            Self::NoWorkspace => "workspace-not-found",
            Self::UnknownService => "unknown-service",
            Self::NotFound => "not-found",
            Self::MethodNotAllowed => "method-not-allowed",
            Self::TimedOut => "timed-out",
            Self::TooLarge => "too-large",
            Self::TooManyWrongTokens => "too-many-wrong-tokens",
            Self::Gateway => "gateway-error",
            Self::Config => "config-error",
            Self::Flow => "flow-error",
            Self::Agent => "agent-error",
            Self::Model => "llm-error",
            Self::RowsQuery => "rows-query-error",
            Self::NlpQuery => "nlp-query-error",
            Self::StructuredQuery => "structured-query-error",
            Self::Unexpected => "unexpected-error",
        }
    }

    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::BadMessage | Self::BadRequest | Self::Operation => StatusCode::BAD_REQUEST,
            Self::AuthRequired => StatusCode::UNAUTHORIZED,
            Self::AccessDenied => StatusCode::FORBIDDEN,
            Self::NoWorkspace | Self::UnknownService | Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::TimedOut => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooManyWrongTokens => StatusCode::TOO_MANY_REQUESTS,
            Self::Gateway | Self::Config => StatusCode::SERVICE_UNAVAILABLE,
            Self::Flow
            | Self::Agent
            | Self::Model
            | Self::RowsQuery
            | Self::NlpQuery
            | Self::StructuredQuery
            | Self::Unexpected => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// A request that is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ServiceError {
    pub(crate) code: Code,
    /// Never empty: the stock client would show nothing.
    pub(crate) message: String,
    /// Seconds after which it may be different.
    pub(crate) retry_after: Option<u64>,
}

impl ServiceError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None }
    }

    pub(crate) fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// The request itself is wrong.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    /// The server cannot, whatever is asked.
    pub(crate) fn gateway(message: impl Into<String>) -> Self {
        Self::new(Code::Gateway, message)
    }

    pub(crate) fn missing_operation() -> Self {
        Self::new(Code::Operation, "missing operation")
    }

    pub(crate) fn unknown_operation() -> Self {
        Self::new(Code::Operation, "unknown operation")
    }

    pub(crate) fn stopping() -> Self {
        Self::gateway("the server is stopping; ask again in a moment, what was accepted goes on")
    }

    /// Too many wrong tokens came from where the caller is.
    pub(crate) fn too_many_wrong_tokens(seconds: u64) -> Self {
        let message = format!("too many wrong tokens came from your address; try again in {seconds} s");
        Self::new(Code::TooManyWrongTokens, message).retry_after(seconds)
    }

    /// The object that clients expect under `error`.
    pub(crate) fn object(&self) -> Value {
        json!({"message": self.message, "type": self.code.word()})
    }
}

/// A request over HTTP that reaches no service, as the original's gateway words it.
impl IntoResponse for ServiceError {
    fn into_response(self) -> Response {
        let response = (self.code.status(), Json(ErrorBody { error: self.message })).into_response();
        with_retry_after(response, self.retry_after)
    }
}

/// An error of the compatible paths.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Refused)]
pub(crate) struct ErrorBody {
    error: String,
}

impl From<ConfigError> for ServiceError {
    fn from(error: ConfigError) -> Self {
        Self::new(Code::Config, error.to_string())
    }
}

impl From<EnterError> for ServiceError {
    fn from(error: EnterError) -> Self {
        match error {
            EnterError::Denied => Self::new(Code::AccessDenied, "access denied"),
            EnterError::NoWorkspace => Self::new(Code::NoWorkspace, "workspace not found"),
            EnterError::Failed(error) => error.into(),
        }
    }
}

/// A bug.
impl From<JoinError> for ServiceError {
    fn from(error: JoinError) -> Self {
        Self::gateway(error.to_string())
    }
}

impl From<JournalError> for ServiceError {
    fn from(error: JournalError) -> Self {
        Self::gateway(error.to_string())
    }
}

impl From<GraphError> for ServiceError {
    fn from(error: GraphError) -> Self {
        let message = error.to_string();
        match error {
            GraphError::Query(_) | GraphError::TooLarge(_) => Self::request(message),
            GraphError::TimedOut(_)
            | GraphError::Busy(_)
            | GraphError::Index(_)
            | GraphError::NoSparql
            | GraphError::Store(_) => Self::gateway(message),
        }
    }
}

impl From<KnowledgeError> for ServiceError {
    fn from(error: KnowledgeError) -> Self {
        match error {
            KnowledgeError::Refused(message) => Self::request(message),
            KnowledgeError::Busy(message) => Self::gateway(message),
            KnowledgeError::Store(error) => Self::gateway(error.to_string()),
        }
    }
}

impl From<LibraryError> for ServiceError {
    fn from(error: LibraryError) -> Self {
        let message = error.to_string();
        match error {
            // The original's kind for these two.
            LibraryError::Exists(_) | LibraryError::ProcessingExists(_) => Self::new(Code::Unexpected, message),
            LibraryError::Store(_) => Self::gateway(message),
            LibraryError::NotFound(_)
            | LibraryError::Recorded(_)
            | LibraryError::NoKind
            | LibraryError::TooLarge { .. }
            | LibraryError::BadId { .. }
            | LibraryError::TooManyUploads(_)
            | LibraryError::NoUpload(_)
            | LibraryError::NoSuchPiece { .. }
            | LibraryError::PieceLength { .. }
            | LibraryError::Incomplete(_)
            | LibraryError::WrongContent { .. }
            | LibraryError::PieceMeanwhile
            | LibraryError::NoProcessing(_) => Self::request(message),
        }
    }
}

/// Nobody reads the replies any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

/// Why a stream of replies ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamError {
    Gone,
    Service(ServiceError),
}

impl<T: Into<ServiceError>> From<T> for StreamError {
    fn from(error: T) -> Self {
        Self::Service(error.into())
    }
}

impl From<Gone> for StreamError {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}
