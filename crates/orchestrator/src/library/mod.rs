//! What every library does alike: its rules, the texts of runs, and adding a document whole.

mod rules;
mod runs;

pub(crate) use rules::cut;
pub use rules::{LARGEST_DOCUMENT, LARGEST_PIECE, MOST_PIECES, MOST_UPLOADS, UPLOAD_AGE_MS, check_id};
pub use runs::RunDocuments;

use crate::ports::{DocumentMetadata, Library, LibraryError, StoredDocument};
use trellis_domain::{Hash, Workspace};

/// Pieces in which a document is added that is in memory as a whole.
const PIECE: usize = 1 << 20;

/// Adds a document whose content is at hand. If that fails, nothing of it stays.
pub async fn add(
    library: &dyn Library,
    workspace: &Workspace,
    document: DocumentMetadata,
    content: &[u8],
) -> Result<StoredDocument, LibraryError> {
    let upload = library.begin(workspace, document, content.len() as u64, PIECE as u64).await?.id;
    let added = send(library, workspace, &upload, content).await;
    if added.is_err() {
        // What went wrong first is what the caller hears; a left-over upload ends by age.
        library.abort(workspace, &upload).await.ok();
    }
    added
}

async fn send(
    library: &dyn Library,
    workspace: &Workspace,
    upload: &str,
    content: &[u8],
) -> Result<StoredDocument, LibraryError> {
    for (index, piece) in (0..).zip(content.chunks(PIECE)) {
        library.put_piece(workspace, upload, index, piece.to_vec()).await?;
    }
    library.complete(workspace, upload, Some(Hash::of(content))).await
}
