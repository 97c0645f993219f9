//! The texts of a run on their way to the deployment's librarian, where stock clients look for them. Our own library has them
//! in any case, and nobody waits for this.

use super::flow::{RunningFlow, service};
use super::rpc::CallError;
use base64::Engine as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use trellis_provenance::DocumentRef;

/// The texts of one dialog, saved one after the other.
#[derive(Debug)]
pub(crate) struct Saving {
    sender: mpsc::UnboundedSender<DocumentRef>,
    task: JoinHandle<()>,
}

impl Saving {
    pub(crate) fn start(flow: &Arc<RunningFlow>, timeout: Duration) -> Self {
        let (sender, mut documents) = mpsc::unbounded_channel();
        let flow = Arc::clone(flow);
        let task = tokio::spawn(async move {
            let mut is_there = true;
            while let Some(document) = documents.recv().await {
                if !is_there {
                    continue;
                }
                if let Err(error) = save(&flow, &document, timeout).await {
                    tracing::warn!(document = document.id, %error, "a text was not stored with the librarian");
                    // One that does not answer is not waited for again and again.
                    is_there = matches!(error, CallError::Refused(_) | CallError::Lost { .. });
                }
            }
        });
        Self { sender, task }
    }

    pub(crate) fn put(&self, document: DocumentRef) {
        // The task ends after this.
        drop(self.sender.send(document));
    }

    /// Waits until everything is saved, or cannot be.
    pub(crate) async fn finish(self) {
        drop(self.sender);
        drop(self.task.await);
    }
}

async fn save(flow: &RunningFlow, document: &DocumentRef, timeout: Duration) -> Result<(), CallError> {
    let Some(librarian) = flow.service(service::LIBRARIAN) else { return Ok(()) };
    match librarian.ask(&request(document), timeout).await {
        // It was saved before this process began.
        Err(CallError::Refused(reason)) if reason.contains("already exists") => Ok(()),
        other => other.map(drop),
    }
}

fn request(document: &DocumentRef) -> Value {
    let content = base64::engine::general_purpose::STANDARD.encode(document.text.text());
    let about = document.about();
    let about: Vec<_> = about.iter().map(trellis_domain::broker::triple_in_no_graph).collect();
    json!({
        "operation": "add-document",
        "document_id": document.id,
        "processing_id": "",
        "document_metadata": {
            "id": document.id, "time": 0, "kind": "text/plain", "title": document.title, "comments": "",
            "metadata": about, "tags": [document.kind()], "parent_id": "", "document_type": "answer",
        },
        "processing_metadata": null,
        "content": content,
        "collection": "",
        "criteria": [],
        "total_size": 0,
        "chunk_size": 0,
        "upload_id": "",
        "chunk_index": 0,
        "include_children": false,
    })
}
