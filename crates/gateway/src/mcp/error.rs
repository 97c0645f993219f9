//! Why a message is not even looked at, in the protocol's shape: clients show its words, and nothing of any other.

use crate::api::ApiError;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use serde_json::json;

const INVALID_REQUEST: i32 = -32600;
const INTERNAL_ERROR: i32 = -32603;

/// A refusal with its status and headers.
#[derive(Debug)]
pub(crate) struct McpRefusal(ApiError);

impl<E: Into<ApiError>> From<E> for McpRefusal {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for McpRefusal {
    fn into_response(self) -> Response {
        let (status, kind, message, _) = self.0.clone().into_parts();
        let code = if status.is_server_error() { INTERNAL_ERROR } else { INVALID_REQUEST };
        let error = json!({"code": code, "message": message, "data": {"type": kind}});
        let body = json!({"jsonrpc": "2.0", "id": null, "error": error});
        self.0.into_response().map(|_| Body::from(body.to_string()))
    }
}
