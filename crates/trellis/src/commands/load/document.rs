//! Documents become passages that are searched. Small ones are loaded together: they share a wait for the disk.

use super::found::FoundFile;
use super::progress::Progress;
use crate::cli::Global;
use crate::desk::{Desk, DocumentFile, LoadedDocument};
use crate::failure::Failure;
use std::sync::Arc;
use trellis_domain::Collection;
use trellis_orchestrator::ports::Embedder;

/// How documents are loaded.
pub(super) struct Reading<'a> {
    /// Whether their facts are wanted.
    pub(super) facts: bool,
    pub(super) embedder: Option<Arc<dyn Embedder>>,
    pub(super) global: &'a Global,
    pub(super) progress: &'a Progress,
}

/// Documents that are loaded together, and how large they are together. Where vectors are made the disk is what takes the
/// least time, and less is lost if the command is stopped.
pub(super) const MOST_TOGETHER: usize = 64;
pub(super) const MOST_WITH_VECTORS: usize = 4;
pub(super) const LARGEST_TOGETHER: u64 = 16 << 20;

/// What came of each, in their order.
pub(super) async fn load(
    desk: &Desk,
    collection: &Collection,
    files: &[(&FoundFile, &'static str)],
    Reading { facts, embedder, global, progress }: Reading<'_>,
) -> Vec<Result<LoadedDocument, Failure>> {
    let (mut documents, mut unread) = (Vec::new(), Vec::new());
    for (file, kind) in files {
        match read(file).await {
            Ok(content) => {
                documents.push(DocumentFile { id: file.source.clone(), kind, content, facts });
                unread.push(None);
            }
            Err(failure) => unread.push(Some(failure)),
        }
    }
    let (progress, name) = (progress.clone(), files.first().map(|(file, _)| file.name.clone()).unwrap_or_default());
    let told = move |facts| progress.at_facts(&name, facts);
    let mut loaded = desk.load_documents(collection, documents, (global, embedder), told).await.into_iter();
    let came = files.iter().zip(unread).map_while(|((file, _), unread)| {
        let named = |failure: Failure| {
            let message = format!("{}: {}", file.name, failure.message);
            Failure { message, ..failure }
        };
        unread.map_or_else(|| loaded.next().map(|loaded| loaded.map_err(named)), |failure| Some(Err(failure)))
    });
    came.collect()
}

async fn read(file: &FoundFile) -> Result<Vec<u8>, Failure> {
    let cannot = |error: std::io::Error| Failure::usage(format!("{}: {error}", file.name));
    let path = file.path.clone();
    let reading = tokio::task::spawn_blocking(move || std::fs::read(path));
    reading.await.map_err(Failure::unexpected)?.map_err(cannot)
}
