//! The embedded library: what people add, in tables of its own; the texts of runs, out of their records.
//!
//! Content lies under the id of the upload that brought it, so a document appears and vanishes with one row.

mod rows;
mod writing;

use crate::journal::{EmbeddedJournal, off_the_runtime};
use crate::request::{LibraryTable, LibraryWrite};
use crate::tables::{Reader, Tables};
use rows::DocumentRow;
use std::ops::Range;
use std::sync::Arc;
use trellis_domain::hash::Hashing;
use trellis_domain::{Hash, Timestamp, Workspace};
use trellis_orchestrator::library::RunDocuments;
use trellis_orchestrator::ports::{
    DocumentMetadata, JournalError, Library, LibraryError, LibraryFuture, Listing, MetadataChanges, Processing,
    StoredDocument, Upload, World,
};
use writing::LibraryWriter;

/// Documents in the data folder.
#[derive(Debug)]
pub struct EmbeddedLibrary {
    desk: Arc<LibraryWriter>,
}

impl EmbeddedLibrary {
    pub(crate) fn new(journal: EmbeddedJournal, world: Arc<dyn World>) -> Self {
        Self { desk: Arc::new(LibraryWriter::new(journal, world)) }
    }

    /// In a task of its own: a caller that goes away must not leave a change half checked.
    fn change<'a, T, F>(&self, change: impl FnOnce(Arc<LibraryWriter>) -> F) -> LibraryFuture<'a, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, LibraryError>> + Send + 'static,
    {
        let task = tokio::spawn(change(Arc::clone(&self.desk)));
        Box::pin(async move { task.await.map_err(|error| JournalError::Write(error.to_string()))? })
    }
}

/// What removes uploads that nobody completed; asked for when a folder is opened.
pub(crate) fn abandoned(tables: &Tables, now: Timestamp) -> Result<Vec<LibraryWrite>, JournalError> {
    let (reader, mut writes) = (tables.read(), Vec::new());
    for (workspace, id) in rows::upload_names(&reader, rows::ALL_UPLOADS)? {
        if rows::find_upload(&reader, &workspace, &id)?.is_some_and(|(upload, _)| upload.is_over(now)) {
            writes.extend(rows::drop_upload(&reader, &workspace, &id, true)?);
        }
    }
    Ok(writes)
}

/// The id and the hash of the document that a row describes, if it describes one.
pub(crate) fn document_of(table: LibraryTable, key: &[u8], value: &[u8]) -> Option<(String, Hash)> {
    if !matches!(table, LibraryTable::Library) || !rows::is_document(key) {
        return None;
    }
    let row: DocumentRow = rows::parse(value).ok()?;
    Some((row.document.metadata.id, row.document.sha256))
}

/// The hash of a document's content as it is stored.
pub(crate) fn content_hash(reader: &Reader<'_>, key: &[u8], value: &[u8]) -> Result<Hash, JournalError> {
    let row: DocumentRow = rows::parse(value)?;
    let workspace = rows::workspace_of(key)?;
    let mut hashing = Hashing::default();
    let whole = 0..row.document.size;
    rows::read_content(reader, &workspace, &row.upload, row.piece, whole, |part| hashing.update(part))?;
    Ok(hashing.finish())
}

fn read_listing(
    reader: &Reader<'_>,
    workspace: &Workspace,
    listing: &Listing,
) -> Result<Vec<StoredDocument>, JournalError> {
    let listed: Vec<DocumentRow> = match listing {
        Listing::TopLevel | Listing::All => rows::list(reader, &rows::documents(workspace))?,
        Listing::ChildrenOf(parent) => {
            let ids = rows::child_ids(reader, workspace, parent)?.into_iter();
            let found = ids.map(|id| rows::get(reader, &rows::document(workspace, &id)));
            found.filter_map(Result::transpose).collect::<Result<_, _>>()?
        }
    };
    let documents = listed.into_iter().map(|row| row.document);
    Ok(documents.filter(|document| listing.contains(&document.metadata)).collect())
}

fn read_range(
    tables: &Tables,
    workspace: &Workspace,
    document: &StoredDocument,
    range: Range<u64>,
) -> Result<Option<Vec<u8>>, JournalError> {
    let reader = tables.read();
    let row: Option<DocumentRow> = rows::get(&reader, &rows::document(workspace, &document.metadata.id))?;
    let Some(row) = row.filter(|row| row.document.sha256 == document.sha256) else { return Ok(None) };
    let range = range.start..range.end.min(row.document.size);
    let mut bytes = Vec::with_capacity(usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0));
    rows::read_content(&reader, workspace, &row.upload, row.piece, range, |part| bytes.extend_from_slice(part))?;
    Ok(Some(bytes))
}

impl Library for EmbeddedLibrary {
    fn find<'a>(&'a self, workspace: &'a Workspace, id: &'a str) -> LibraryFuture<'a, Option<StoredDocument>> {
        Box::pin(self.desk.find(workspace, id))
    }

    fn read<'a>(
        &'a self,
        workspace: &'a Workspace,
        document: &'a StoredDocument,
        range: Range<u64>,
    ) -> LibraryFuture<'a, Vec<u8>> {
        let (tables, of, asked) = (self.desk.tables(), workspace.clone(), document.clone());
        let place = range.clone();
        Box::pin(async move {
            match off_the_runtime(move || read_range(&tables, &of, &asked, place)).await? {
                Some(bytes) => Ok(bytes),
                None => self.desk.runs.read(workspace, document, range).await,
            }
        })
    }

    fn list<'a>(&'a self, workspace: &'a Workspace, listing: &'a Listing) -> LibraryFuture<'a, Vec<StoredDocument>> {
        let (tables, of, listing) = (self.desk.tables(), workspace.clone(), listing.clone());
        Box::pin(async move { Ok(off_the_runtime(move || read_listing(&tables.read(), &of, &listing)).await?) })
    }

    fn update<'a>(
        &'a self,
        workspace: &'a Workspace,
        id: &'a str,
        changes: MetadataChanges,
    ) -> LibraryFuture<'a, StoredDocument> {
        let (workspace, id) = (workspace.clone(), id.to_owned());
        self.change(|desk| async move { desk.update(&workspace, &id, changes).await })
    }

    fn remove<'a>(&'a self, workspace: &'a Workspace, id: &'a str) -> LibraryFuture<'a, ()> {
        let (workspace, id) = (workspace.clone(), id.to_owned());
        self.change(|desk| async move { desk.remove(&workspace, &id).await })
    }

    fn begin<'a>(
        &'a self,
        workspace: &'a Workspace,
        document: DocumentMetadata,
        size: u64,
        piece: u64,
    ) -> LibraryFuture<'a, Upload> {
        let workspace = workspace.clone();
        self.change(move |desk| async move { desk.begin(&workspace, document, size, piece).await })
    }

    fn put_piece<'a>(
        &'a self,
        workspace: &'a Workspace,
        upload: &'a str,
        index: u64,
        content: Vec<u8>,
    ) -> LibraryFuture<'a, Upload> {
        let (workspace, upload) = (workspace.clone(), upload.to_owned());
        self.change(move |desk| async move { desk.put_piece(&workspace, &upload, index, content).await })
    }

    fn upload<'a>(&'a self, workspace: &'a Workspace, upload: &'a str) -> LibraryFuture<'a, Option<Upload>> {
        Box::pin(async move { Ok(self.desk.upload(workspace, upload).await?.map(|(upload, _)| upload)) })
    }

    fn uploads<'a>(&'a self, workspace: &'a Workspace) -> LibraryFuture<'a, Vec<Upload>> {
        let (tables, of, now) = (self.desk.tables(), workspace.clone(), self.desk.world.now());
        let read = move || {
            let reader = tables.read();
            let names = rows::upload_names(&reader, &rows::uploads(&of))?;
            let found = names.iter().map(|(workspace, id)| rows::find_upload(&reader, workspace, id));
            let all: Vec<_> = found.collect::<Result<_, _>>()?;
            Ok(all.into_iter().flatten().map(|(upload, _)| upload).filter(|upload| !upload.is_over(now)).collect())
        };
        Box::pin(async move { Ok(off_the_runtime(read).await?) })
    }

    fn complete<'a>(
        &'a self,
        workspace: &'a Workspace,
        upload: &'a str,
        expected: Option<Hash>,
    ) -> LibraryFuture<'a, StoredDocument> {
        let (workspace, upload) = (workspace.clone(), upload.to_owned());
        self.change(move |desk| async move { desk.complete(&workspace, &upload, expected).await })
    }

    fn abort<'a>(&'a self, workspace: &'a Workspace, upload: &'a str) -> LibraryFuture<'a, ()> {
        let (workspace, upload) = (workspace.clone(), upload.to_owned());
        self.change(|desk| async move { desk.abort(&workspace, &upload).await })
    }

    fn add_processing<'a>(&'a self, workspace: &'a Workspace, processing: Processing) -> LibraryFuture<'a, ()> {
        let workspace = workspace.clone();
        self.change(|desk| async move { desk.add_processing(&workspace, processing).await })
    }

    fn remove_processing<'a>(&'a self, workspace: &'a Workspace, id: &'a str) -> LibraryFuture<'a, ()> {
        let (workspace, id) = (workspace.clone(), id.to_owned());
        self.change(|desk| async move { desk.remove_processing(&workspace, &id).await })
    }

    fn processings<'a>(&'a self, workspace: &'a Workspace) -> LibraryFuture<'a, Vec<Processing>> {
        let (tables, prefix) = (self.desk.tables(), rows::processings(workspace));
        Box::pin(async move { Ok(off_the_runtime(move || rows::list(&tables.read(), &prefix)).await?) })
    }
}
