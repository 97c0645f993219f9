//! `GET /api/v1/document-stream`: the bytes of a document as they are.

use crate::bearer::identify;
use crate::error::{Code, ErrorBody, ServiceError};
use crate::inside::{Gateway, Inside};
use crate::unread::Unread;
use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use futures_util::{Stream, stream};
use serde::Deserialize;
use std::sync::Arc;
use trellis_orchestrator::ports::{LibraryError, StoredDocument};

/// The size in which a document is read when the client names none, and at most.
const CHUNK: u64 = 1 << 20;

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
        (status = 400, description = "No document is named", body = ErrorBody),
        (status = 401, description = "No token, or one that nobody knows", body = ErrorBody),
        (status = 403, description = "From a page of another site, or the workspace is not the token's", body = ErrorBody),
        (status = 429, description = "Too many wrong tokens came from this address", body = ErrorBody),
        (status = 404, description = "No such document or workspace", body = ErrorBody),
        (status = 503, description = "The store fails", body = ErrorBody),
    ),
)]
pub(crate) async fn stream(
    State(gateway): State<Arc<Gateway>>,
    headers: HeaderMap,
    wish: Result<Query<Wish>, QueryRejection>,
) -> Result<Response, ServiceError> {
    let identity = identify(&gateway, &headers)?;
    let Query(wish) = wish.map_err(|error| ServiceError::request(error.body_text()))?;
    let inside = gateway.enter(&identity, &wish.workspace).await?;
    if wish.document_id.is_empty() {
        return Err(ServiceError::request("the parameter `document-id` is missing"));
    }
    let found = inside.library().find(inside.workspace(), &wish.document_id).await.map_err(failed)?;
    let document = found.ok_or_else(|| failed(LibraryError::NotFound(wish.document_id)))?;
    let chunk = wish.chunk_size.unwrap_or(CHUNK).clamp(1, CHUNK);
    Ok(response(gateway, inside, document, chunk))
}

fn failed(error: LibraryError) -> ServiceError {
    let is_missing = matches!(error, LibraryError::NotFound(_));
    ServiceError::new(if is_missing { Code::NotFound } else { Code::Gateway }, error.to_string())
}

/// The content of a document, each piece read when there is room for it, which it takes until it is sent.
pub(crate) fn pieces(
    gateway: Arc<Gateway>,
    inside: Inside,
    document: StoredDocument,
    chunk: u64,
    write: fn(Vec<u8>) -> Bytes,
) -> impl Stream<Item = Result<Bytes, LibraryError>> {
    stream::try_unfold(0, move |at| {
        let (gateway, inside, document) = (Arc::clone(&gateway), inside.clone(), document.clone());
        async move {
            if at >= document.size {
                return Ok::<_, LibraryError>(None);
            }
            let end = at.saturating_add(chunk).min(document.size);
            // Written as text it may be longer.
            let most = usize::try_from(end - at).unwrap_or(usize::MAX).saturating_mul(2);
            let mut held = gateway.capacity().unread.take(most).await;
            let turn = gateway.capacity().make().await;
            let bytes = write(inside.library().read(inside.workspace(), &document, at..end).await?);
            drop(turn);
            held.shrink_to(bytes.len());
            Ok(Some((Unread::hold(bytes, held), end)))
        }
    })
}

fn response(gateway: Arc<Gateway>, inside: Inside, document: StoredDocument, chunk: u64) -> Response {
    let (size, kind) = (document.size, HeaderValue::from_str(&document.metadata.kind));
    let parts = pieces(gateway, inside, document, chunk, Bytes::from);
    let mut response = Response::new(Body::from_stream(parts));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, kind.unwrap_or(HeaderValue::from_static("application/octet-stream")));
    headers.insert(header::CONTENT_LENGTH, size.into());
    // Whatever somebody uploaded must not act as a page of this server.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    response
}
