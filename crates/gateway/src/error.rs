//! Why a request was not served.

use crate::access::Outside;
use serde_json::{Value, json};
use trellis_orchestrator::ports::{ConfigError, GraphError, JournalError, LibraryError};

/// A request that is refused. The kinds are those that the stock client has exceptions for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub(crate) kind: &'static str,
    /// Never empty: the stock client would show nothing.
    pub(crate) message: String,
}

/// No kind of the stock client's: what it does not know it shows as unexpected.
const OPERATION: &str = "unknown-operation";

impl Refusal {
    pub(crate) fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The request itself is wrong.
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self::new("request-error", message)
    }

    /// The server cannot, whatever is asked.
    pub(crate) fn gateway(message: impl Into<String>) -> Self {
        Self::new("gateway-error", message)
    }

    pub(crate) fn missing_operation() -> Self {
        Self::new(OPERATION, "missing operation")
    }

    pub(crate) fn unknown_operation() -> Self {
        Self::new(OPERATION, "unknown operation")
    }

    /// Whether the operation is the problem: over REST that has a status of its own.
    pub(crate) fn is_about_operation(&self) -> bool {
        self.kind == OPERATION
    }

    pub(crate) fn stopping() -> Self {
        Self::gateway("the server is stopping; ask again in a moment, what was accepted goes on")
    }

    /// The object that clients expect under `error`.
    pub(crate) fn object(&self) -> Value {
        json!({"message": self.message, "type": self.kind})
    }
}

impl From<ConfigError> for Refusal {
    fn from(error: ConfigError) -> Self {
        Self::new("config-error", error.to_string())
    }
}

impl From<Outside> for Refusal {
    fn from(outside: Outside) -> Self {
        match outside {
            Outside::Denied => Self::new("access-denied", "access denied"),
            Outside::NoWorkspace => Self::new("workspace-not-found", "workspace not found"),
            Outside::Failed(error) => error.into(),
        }
    }
}

impl From<JournalError> for Refusal {
    fn from(error: JournalError) -> Self {
        Self::gateway(error.to_string())
    }
}

impl From<GraphError> for Refusal {
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

impl From<LibraryError> for Refusal {
    fn from(error: LibraryError) -> Self {
        let message = error.to_string();
        match error {
            // The original's kind for these two.
            LibraryError::Exists(_) | LibraryError::ProcessingExists(_) => Self::new("unexpected-error", message),
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
pub(crate) enum Unserved {
    Gone,
    Refused(Refusal),
}

impl<T: Into<Refusal>> From<T> for Unserved {
    fn from(refusal: T) -> Self {
        Self::Refused(refusal.into())
    }
}

impl From<Gone> for Unserved {
    fn from(_: Gone) -> Self {
        Self::Gone
    }
}
