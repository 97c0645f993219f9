//! Large documents, chunk by chunk.

use super::metadata::read_document;
use super::{Desk, reply};
use crate::error::ServiceError;
use serde_json::{Value, json};
use trellis_domain::Hash;
use trellis_orchestrator::ports::Upload;

/// The size of chunks when the client names none.
const CHUNK: u64 = 3 << 20;

impl Desk<'_> {
    pub(super) async fn begin_upload(&self) -> Result<Value, ServiceError> {
        let members = self.call.members();
        let document = read_document(members, self.now())?;
        let size = members.count("total-size")?.filter(|size| *size > 0);
        let size =
            size.ok_or_else(|| ServiceError::request("the member `total-size` must be a positive number of bytes"))?;
        let chunk = members.count("chunk-size")?.filter(|chunk| *chunk > 0).unwrap_or(CHUNK);
        let upload = self.library().begin(self.workspace(), document, size, chunk).await?;
        Ok(reply([
            ("upload-id", json!(upload.id)),
            ("chunk-size", json!(upload.piece)),
            ("total-chunks", json!(upload.pieces())),
        ]))
    }

    pub(super) async fn upload_chunk(&self) -> Result<Value, ServiceError> {
        let index = self.call.members().count("chunk-index")?.unwrap_or(0);
        let upload = self.library().put_piece(self.workspace(), self.upload_id()?, index, self.content()?).await?;
        let mut reply = reply([("upload-id", json!(upload.id)), ("chunk-index", json!(index))]);
        add_progress(&mut reply, &upload);
        Ok(reply)
    }

    pub(super) async fn complete_upload(&self) -> Result<Value, ServiceError> {
        let expected = self.call.members().text("sha256")?.map(str::parse::<Hash>).transpose();
        let expected = expected.map_err(|error| ServiceError::request(format!("the member `sha256`: {error}")))?;
        let upload = self.upload_id()?;
        let document = self.library().complete(self.workspace(), upload, expected).await?;
        Ok(reply([("document-id", json!(document.metadata.id)), ("object-id", json!(upload))]))
    }

    pub(super) async fn abort_upload(&self) -> Result<Value, ServiceError> {
        self.library().abort(self.workspace(), self.upload_id()?).await?;
        Ok(reply([]))
    }

    /// An upload that is not there counts as expired, for whoever wants to go on with it.
    pub(super) async fn upload_status(&self) -> Result<Value, ServiceError> {
        let id = self.upload_id()?;
        let Some(upload) = self.library().upload(self.workspace(), id).await? else {
            return Ok(reply([("upload-id", json!(id)), ("upload-state", json!("expired"))]));
        };
        let mut reply = reply([
            ("upload-id", json!(upload.id)),
            ("upload-state", json!("in-progress")),
            ("chunk-size", json!(upload.piece)),
            ("received-chunks", json!(upload.received)),
            ("missing-chunks", json!(upload.missing())),
        ]);
        add_progress(&mut reply, &upload);
        Ok(reply)
    }

    pub(super) async fn list_uploads(&self) -> Result<Value, ServiceError> {
        let uploads = self.library().uploads(self.workspace()).await?;
        Ok(reply([("upload-sessions", uploads.iter().map(session).collect())]))
    }

    fn upload_id(&self) -> Result<&str, ServiceError> {
        self.call.members().required("upload-id")
    }
}

fn add_progress(reply: &mut Value, upload: &Upload) {
    reply["chunks-received"] = json!(upload.received.len());
    reply["total-chunks"] = json!(upload.pieces());
    reply["bytes-received"] = json!(upload.received_bytes());
    reply["total-bytes"] = json!(upload.size);
}

fn session(upload: &Upload) -> Value {
    let about = &upload.document;
    let metadata = json!({
        "id": about.id,
        "kind": about.kind,
        "title": about.title,
        "comments": about.comments,
        "tags": about.tags,
    });
    json!({
        "upload-id": upload.id,
        "document-id": about.id,
        "document-metadata-json": metadata.to_string(),
        "total-size": upload.size,
        "chunk-size": upload.piece,
        "total-chunks": upload.pieces(),
        "chunks-received": upload.received.len(),
        "created-at": upload.began.to_string(),
    })
}
