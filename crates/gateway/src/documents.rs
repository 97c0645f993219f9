//! `GET /api/v1/document-stream`: the bytes of a document as they are.

use crate::Gateway;
use crate::docs::Refused;
use crate::rest::{self, Denied};
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::stream;
use serde::Deserialize;
use std::sync::Arc;
use trellis_domain::Workspace;
use trellis_orchestrator::ports::{LibraryError, StoredDocument};

/// The sizes in which a document is read when the client names none, and at most.
const CHUNK: u64 = 1 << 20;
const LARGEST_CHUNK: u64 = 4 << 20;

/// What a client may say in the URL.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Wish {
    #[serde(default)]
    document_id: String,
    #[serde(default)]
    workspace: String,
    chunk_size: Option<u64>,
}

/// Read a document
///
/// Its bytes, as stock TrustGraph clients fetch them. Texts of runs have the ids that the graph names.
#[utoipa::path(
    get, path = "/api/v1/document-stream", tag = "compatible", operation_id = "readDocument",
    params(
        ("document-id" = String, Query, description = "The id of the document"),
        ("workspace" = Option<String>, Query, description = "Its workspace, else the caller's own"),
        ("chunk-size" = Option<u64>, Query, description = "How many bytes are read at a time"),
    ),
    responses(
        (status = 200, description = "The content, with the document's kind as its type"),
        (status = 400, description = "No document is named", body = Refused),
        (status = 401, description = "No token, or one that nobody knows", body = Refused),
        (status = 403, description = "From a page of another site", body = Refused),
        (status = 404, description = "No such document or workspace", body = Refused),
        (status = 503, description = "The store fails", body = Refused),
    ),
)]
pub(crate) async fn stream(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    wish: Result<Query<Wish>, QueryRejection>,
) -> Result<Response, Denied> {
    let identity = rest::identify(&gateway, &headers)?;
    let Query(wish) = wish.map_err(|error| Denied::new(StatusCode::BAD_REQUEST, error.body_text()))?;
    let workspace = rest::workspace(&gateway, &identity, &wish.workspace).await?;
    if wish.document_id.is_empty() {
        return Err(Denied::new(StatusCode::BAD_REQUEST, "the parameter `document-id` is missing"));
    }
    let found = gateway.library.find(&workspace, &wish.document_id).await.map_err(failed)?;
    let document = found.ok_or_else(|| failed(LibraryError::NotFound(wish.document_id)))?;
    let chunk = wish.chunk_size.unwrap_or(CHUNK).clamp(1, LARGEST_CHUNK);
    Ok(response(gateway, workspace, document, chunk))
}

fn failed(error: LibraryError) -> Denied {
    let is_missing = matches!(error, LibraryError::NotFound(_));
    let status = if is_missing { StatusCode::NOT_FOUND } else { StatusCode::SERVICE_UNAVAILABLE };
    Denied::new(status, error.to_string())
}

fn response(gateway: Arc<Gateway>, workspace: Workspace, document: StoredDocument, chunk: u64) -> Response {
    let (size, kind) = (document.size, HeaderValue::from_str(&document.metadata.kind));
    let parts = stream::try_unfold(0, move |at| {
        let (gateway, workspace, document) = (Arc::clone(&gateway), workspace.clone(), document.clone());
        async move {
            if at >= document.size {
                return Ok::<_, LibraryError>(None);
            }
            let end = at.saturating_add(chunk).min(document.size);
            Ok(Some((gateway.library.read(&workspace, &document, at..end).await?, end)))
        }
    });
    let mut response = Response::new(Body::from_stream(parts));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, kind.unwrap_or(HeaderValue::from_static("application/octet-stream")));
    headers.insert(header::CONTENT_LENGTH, size.into());
    // Whatever somebody uploaded must not act as a page of this server.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    response
}
