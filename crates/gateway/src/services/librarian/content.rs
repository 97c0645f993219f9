//! What is in a document: whole, or chunk by chunk.

use super::{Desk, reply};
use crate::error::{Refusal, Unserved};
use crate::outbox::Outbox;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use trellis_orchestrator::ports::StoredDocument;

/// A chunk that fits into a frame of a socket when it is written as base64.
const SOCKET_CHUNK: u64 = 700 << 10;
/// The size of chunks when the client of a reply names none, and the largest it may name.
const CHUNK: u64 = 1 << 20;
const LARGEST_CHUNK: u64 = 16 << 20;
/// The largest document that is handed over in one reply.
const LARGEST_WHOLE: u64 = 24 << 20;

impl Desk<'_> {
    pub(super) async fn whole_content(&self) -> Result<Value, Refusal> {
        let document = self.document().await?;
        if document.size > LARGEST_WHOLE {
            let (size, most) = (document.size, LARGEST_WHOLE >> 20);
            let advice = "read it with stream-document or from /api/v1/document-stream";
            return Err(Refusal::request(format!("the document has {size} bytes, more than {most} MiB; {advice}")));
        }
        let bytes = self.library().read(self.workspace(), &document, 0..document.size).await?;
        Ok(reply([("content", json!(STANDARD.encode(bytes)))]))
    }

    /// The chunk with the index that is asked for; behind the end it is empty.
    pub(super) async fn one_chunk(&self) -> Result<Value, Refusal> {
        let members = self.call.members();
        let index = members.count("chunk-index")?.unwrap_or(0);
        let chunk = members.count("chunk-size")?.filter(|chunk| *chunk > 0).unwrap_or(CHUNK).min(LARGEST_CHUNK);
        self.chunk(&self.document().await?, index, chunk).await
    }

    pub(super) async fn stream_content(&self, outbox: &Outbox) -> Result<(), Unserved> {
        let given = self.call.members().count("chunk-size")?.filter(|chunk| *chunk > 0);
        let chunk = given.unwrap_or(SOCKET_CHUNK).min(SOCKET_CHUNK);
        let document = self.document().await?;
        let last = document.size.div_ceil(chunk).saturating_sub(1);
        for index in 0..last {
            outbox.more(&self.chunk(&document, index, chunk).await?).await?;
        }
        Ok(outbox.last(&self.chunk(&document, last, chunk).await?).await?)
    }

    async fn chunk(&self, document: &StoredDocument, index: u64, chunk: u64) -> Result<Value, Refusal> {
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
