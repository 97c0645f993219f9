//! What is in a document: whole, or chunk by chunk.

use super::{Desk, reply};
use crate::documents::pieces;
use crate::error::{ServiceError, StreamError};
use crate::inside::Gateway;
use crate::outbox::Outbox;
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::sync::Arc;
use trellis_orchestrator::ports::StoredDocument;

/// A chunk that fits into a frame of a socket when it is written as base64.
const SOCKET_CHUNK: u64 = 700 << 10;
/// The size of chunks when the client of a reply names none, and the largest it may name.
const CHUNK: u64 = 1 << 20;
const LARGEST_CHUNK: u64 = 4 << 20;
/// The largest document that is handed over in one reply.
const LARGEST_WHOLE: u64 = 24 << 20;

impl Desk<'_> {
    /// For a socket, where it was checked that it fits.
    pub(super) async fn short_content(&self) -> Result<Value, ServiceError> {
        let document = self.document().await?;
        let bytes = self.library().read(self.workspace(), &document, 0..document.size).await?;
        Ok(reply([("content", json!(STANDARD.encode(bytes)))]))
    }

    /// The same over HTTP, written while it is read: as one value it would be in memory several times.
    pub(super) async fn whole_content(&self, gateway: &Arc<Gateway>) -> Result<Response, ServiceError> {
        /// Divisible by three, so that the base64 of pieces is that of the whole.
        const PIECE: u64 = 768 << 10;
        let document = self.document().await?;
        if document.size > LARGEST_WHOLE {
            let (size, most) = (document.size, LARGEST_WHOLE >> 20);
            let advice = "read it with stream-document or from /api/v1/document-stream";
            return Err(ServiceError::request(format!(
                "the document has {size} bytes, more than {most} MiB; {advice}"
            )));
        }
        // The other members, and the content's, up to where its text begins.
        let (mut head, tail) = (reply([("content", json!(""))]).to_string(), "\"}");
        head.truncate(head.len() - tail.len());
        let length = head.len() as u64 + document.size.div_ceil(3) * 4 + tail.len() as u64;
        let write = |bytes: Vec<u8>| Bytes::from(STANDARD.encode(bytes));
        let content = pieces(Arc::clone(gateway), self.call.inside.clone(), document, PIECE, write);
        let ends = |text: String| stream::once(async move { Ok(Bytes::from(text)) });
        let body = Body::from_stream(ends(head).chain(content).chain(ends(tail.to_owned())));
        let headers =
            [(header::CONTENT_TYPE, "application/json".to_owned()), (header::CONTENT_LENGTH, length.to_string())];
        Ok((headers, body).into_response())
    }

    /// The chunk with the index that is asked for; behind the end it is empty.
    pub(super) async fn one_chunk(&self) -> Result<Value, ServiceError> {
        let members = self.call.members();
        let index = members.count("chunk-index")?.unwrap_or(0);
        let chunk = members.count("chunk-size")?.filter(|chunk| *chunk > 0).unwrap_or(CHUNK).min(LARGEST_CHUNK);
        self.chunk(&self.document().await?, index, chunk).await
    }

    /// Refuses what a socket cannot carry in one reply, before it is read.
    pub(super) async fn check_fits(&self) -> Result<(), ServiceError> {
        let size = self.document().await?.size;
        if size <= SOCKET_CHUNK {
            return Ok(());
        }
        let message =
            format!("the document has {size} bytes, too many for a reply of 1 MiB; read it with stream-document");
        Err(ServiceError::request(message))
    }

    pub(super) async fn stream_content(&self, gateway: &Gateway, outbox: &Outbox) -> Result<(), StreamError> {
        let given = self.call.members().count("chunk-size")?.filter(|chunk| *chunk > 0);
        let chunk = given.unwrap_or(SOCKET_CHUNK).min(SOCKET_CHUNK);
        let document = self.document().await?;
        let last = document.size.div_ceil(chunk).saturating_sub(1);
        for index in 0..last {
            let _floor = outbox.floor().await;
            outbox.more(&self.made(gateway, &document, index, chunk).await?).await?;
        }
        let _floor = outbox.floor().await;
        Ok(outbox.last(&self.made(gateway, &document, last, chunk).await?).await?)
    }

    /// A chunk, when it is its turn: pieces of documents are read whole, and may be much larger.
    async fn made(
        &self,
        gateway: &Gateway,
        document: &StoredDocument,
        index: u64,
        chunk: u64,
    ) -> Result<Value, ServiceError> {
        let _turn = gateway.capacity().make().await;
        self.chunk(document, index, chunk).await
    }

    async fn chunk(&self, document: &StoredDocument, index: u64, chunk: u64) -> Result<Value, ServiceError> {
        let start = index.saturating_mul(chunk).min(document.size);
        let end = start.saturating_add(chunk).min(document.size);
        let bytes = self.library().read(self.workspace(), document, start..end).await?;
        Ok(reply([
            ("content", json!(STANDARD.encode(bytes))),
            ("chunk-index", json!(index)),
            ("chunks-received", json!(index.saturating_add(1))),
            ("total-chunks", json!(document.size.div_ceil(chunk))),
            ("bytes-received", json!(end)),
            ("total-bytes", json!(document.size)),
        ]))
    }
}
