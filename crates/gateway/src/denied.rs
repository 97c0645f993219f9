//! Requests that are refused with a status, as the compatible paths word it.

use crate::access::Outside;
use crate::responses::with_retry_after;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

/// A refusal with a status, as the original's gateway words it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) status: StatusCode,
    pub(crate) reason: String,
    /// Seconds after which it may be different.
    pub(crate) retry_after: Option<u64>,
}

impl Denied {
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into(), retry_after: None }
    }

    pub(crate) fn for_now(status: StatusCode, reason: impl Into<String>, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(status, reason) }
    }

    /// Too many wrong tokens came from where the caller is.
    pub(crate) fn too_many_wrong_tokens(seconds: u64) -> Self {
        let reason = format!("too many wrong tokens came from your address; try again in {seconds} s");
        Self::for_now(StatusCode::TOO_MANY_REQUESTS, reason, seconds)
    }
}

impl IntoResponse for Denied {
    fn into_response(self) -> Response {
        with_retry_after((self.status, Json(json!({"error": self.reason}))).into_response(), self.retry_after)
    }
}

impl From<Outside> for Denied {
    fn from(outside: Outside) -> Self {
        match outside {
            Outside::Denied => Self::new(StatusCode::FORBIDDEN, "access denied"),
            Outside::NoWorkspace => Self::new(StatusCode::NOT_FOUND, "workspace not found"),
            Outside::Failed(error) => Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
        }
    }
}

/// An error of the compatible paths.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Refused {
    error: String,
}
