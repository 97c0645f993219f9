//! A document becomes passages that are searched.

use super::found::FoundFile;
use crate::desk::{Desk, DocumentFile, LoadedDocument};
use crate::failure::Failure;
use std::sync::Arc;
use trellis_domain::Collection;
use trellis_orchestrator::ports::Embedder;

pub(super) async fn load(
    desk: &Desk,
    collection: &Collection,
    file: &FoundFile,
    kind: &'static str,
    embedder: Option<Arc<dyn Embedder>>,
) -> Result<LoadedDocument, Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("{}: {error}", file.name));
    let path = file.path.clone();
    let reading = tokio::task::spawn_blocking(move || std::fs::read(path));
    let content = reading.await.map_err(Failure::unexpected)?.map_err(cannot)?;
    let document = DocumentFile { id: file.source.clone(), kind, content };
    desk.load_document(collection, document, embedder).await.map_err(|failure| {
        let message = format!("{}: {}", file.name, failure.message);
        Failure { message, ..failure }
    })
}
