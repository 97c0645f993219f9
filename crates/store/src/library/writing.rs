//! Where documents are taken in and given up: each change is checked and written before the next begins.

use super::rows::{self, DocumentRow, Received, STORED_PIECE};
use super::{EmbeddedJournal, RunDocuments};
use crate::journal::off_the_runtime;
use crate::request::{LibraryTable, LibraryWrite, Request};
use crate::tables::Tables;
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};
use trellis_domain::hash::Hashing;
use trellis_domain::{Hash, Workspace};
use trellis_orchestrator::library::MOST_UPLOADS;
use trellis_orchestrator::ports::{
    DocumentMetadata, JournalError, LibraryError, MetadataChanges, Processing, StoredDocument, Upload, World,
};

#[derive(Debug)]
pub(super) struct LibraryWriter {
    journal: EmbeddedJournal,
    pub(super) runs: RunDocuments,
    pub(super) world: Arc<dyn World>,
    /// One change at a time: what it depends on is read, then it is written. It also bounds what is in memory.
    writing: Semaphore,
}

impl LibraryWriter {
    pub(super) fn new(journal: EmbeddedJournal, world: Arc<dyn World>) -> Self {
        let runs = RunDocuments::new(Arc::new(journal.clone()));
        Self { journal, runs, world, writing: Semaphore::new(1) }
    }

    pub(super) fn tables(&self) -> Tables {
        self.journal.tables.clone()
    }

    async fn one(&self) -> SemaphorePermit<'_> {
        self.writing.acquire().await.expect("the semaphore is never closed")
    }

    async fn write(&self, writes: Vec<LibraryWrite>) -> Result<(), LibraryError> {
        Ok(self.journal.ask(|reply| Request::Library(writes, reply)).await?)
    }

    /// A document that people added.
    fn own(&self, workspace: &Workspace, id: &str) -> Result<Option<DocumentRow>, JournalError> {
        rows::get(&self.journal.tables.read(), &rows::document(workspace, id))
    }

    pub(super) async fn find(&self, workspace: &Workspace, id: &str) -> Result<Option<StoredDocument>, LibraryError> {
        match self.own(workspace, id)? {
            Some(row) => Ok(Some(row.document)),
            None => Ok(self.runs.find(workspace, id).await?),
        }
    }

    /// An upload that is not too old, with the hashes of the pieces that are there.
    pub(super) async fn upload(
        &self,
        workspace: &Workspace,
        id: &str,
    ) -> Result<Option<(Upload, Received)>, JournalError> {
        let (tables, workspace, id) = (self.tables(), workspace.clone(), id.to_owned());
        let found = off_the_runtime(move || rows::find_upload(&tables.read(), &workspace, &id)).await?;
        Ok(found.filter(|(upload, _)| !upload.is_over(self.world.now())))
    }

    async fn open_upload(&self, workspace: &Workspace, id: &str) -> Result<(Upload, Received), LibraryError> {
        self.upload(workspace, id).await?.ok_or_else(|| LibraryError::NoUpload(id.to_owned()))
    }

    /// Its name is free, and what it was taken from is there.
    async fn check_place(&self, workspace: &Workspace, document: &DocumentMetadata) -> Result<(), LibraryError> {
        if self.find(workspace, &document.id).await?.is_some() {
            return Err(LibraryError::Exists(document.id.clone()));
        }
        match &document.parent {
            Some(parent) if self.find(workspace, parent).await?.is_none() => {
                Err(LibraryError::NotFound(parent.clone()))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) async fn update(
        &self,
        workspace: &Workspace,
        id: &str,
        changes: MetadataChanges,
    ) -> Result<StoredDocument, LibraryError> {
        let _one = self.one().await;
        let Some(row) = self.own(workspace, id)? else { return Err(self.runs.instead(workspace, id).await) };
        let row = DocumentRow { document: changes.apply(row.document)?, ..row };
        self.write(vec![rows::put(rows::document(workspace, id), &row)]).await?;
        Ok(row.document)
    }

    pub(super) async fn remove(&self, workspace: &Workspace, id: &str) -> Result<(), LibraryError> {
        let _one = self.one().await;
        if self.own(workspace, id)?.is_none() {
            return Err(self.runs.instead(workspace, id).await);
        }
        let (tables, of, id) = (self.tables(), workspace.clone(), id.to_owned());
        self.write(off_the_runtime(move || removal(&tables, &of, id)).await?).await
    }

    pub(super) async fn begin(
        &self,
        workspace: &Workspace,
        document: DocumentMetadata,
        size: u64,
        piece: u64,
    ) -> Result<Upload, LibraryError> {
        let upload = Upload::new(self.world.fresh_id(), document, size, piece, self.world.now())?;
        let _one = self.one().await;
        self.check_place(workspace, &upload.document).await?;
        let (tables, of, now) = (self.tables(), workspace.clone(), self.world.now());
        let (open, mut writes) = off_the_runtime(move || {
            let reader = tables.read();
            let (mut open, mut abandoned) = (0, Vec::new());
            for (_, id) in rows::upload_names(&reader, &rows::uploads(&of))? {
                match rows::find_upload(&reader, &of, &id)? {
                    Some((upload, _)) if upload.is_over(now) => {
                        abandoned.extend(rows::drop_upload(&reader, &of, &id, true)?);
                    }
                    Some(_) | None => open += 1,
                }
            }
            Ok((open, abandoned))
        })
        .await?;
        if open >= MOST_UPLOADS {
            return Err(LibraryError::TooManyUploads(open));
        }
        writes.push(rows::put_upload(workspace, &upload));
        self.write(writes).await?;
        Ok(upload)
    }

    /// The row that says the piece is there is written with the last of it. If it was there before, that row goes
    /// first: half a piece never counts.
    pub(super) async fn put_piece(
        &self,
        workspace: &Workspace,
        id: &str,
        index: u64,
        content: Vec<u8>,
    ) -> Result<Upload, LibraryError> {
        let _one = self.one().await;
        let (mut upload, _) = self.open_upload(workspace, id).await?;
        let (number, place) = upload.fit(index, content.len() as u64)?;
        let received = rows::received(workspace, id, number);
        let hash = Hash::of(&content);
        let mut parts = content.chunks(usize::try_from(STORED_PIECE).expect("it is small")).peekable();
        let mut at = place.start;
        while let Some(part) = parts.next() {
            let key = rows::content(workspace, id, at);
            let mut writes = vec![LibraryWrite { table: LibraryTable::Content, key, value: Some(part.to_vec()) }];
            at += part.len() as u64;
            let value = parts.peek().is_none().then(|| hash.as_bytes().to_vec());
            writes.push(LibraryWrite { table: LibraryTable::Library, key: received.clone(), value });
            self.write(writes).await?;
        }
        upload.received.insert(number);
        Ok(upload)
    }

    pub(super) async fn complete(
        &self,
        workspace: &Workspace,
        id: &str,
        expected: Option<Hash>,
    ) -> Result<StoredDocument, LibraryError> {
        let (upload, received) = self.open_upload(workspace, id).await?;
        let missing = upload.missing();
        if !missing.is_empty() {
            return Err(LibraryError::Incomplete(missing));
        }
        // Reading it all takes a while, so others may go on meanwhile.
        let found = self.hash(workspace, &upload, &received).await?;
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(LibraryError::WrongContent { expected, found });
        }
        let _one = self.one().await;
        if self.open_upload(workspace, id).await?.1 != received {
            return Err(LibraryError::PieceMeanwhile);
        }
        self.check_place(workspace, &upload.document).await?;
        let Upload { document: metadata, size, piece, .. } = upload;
        let document = StoredDocument { metadata, size, sha256: found };
        let name = &document.metadata.id;
        let row = DocumentRow { document: document.clone(), upload: id.to_owned(), piece };
        let mut writes = vec![rows::put(rows::document(workspace, name), &row)];
        writes
            .extend(document.metadata.parent.iter().map(|parent| rows::put(rows::child(workspace, parent, name), &())));
        let (tables, of, upload) = (self.tables(), workspace.clone(), id.to_owned());
        writes.extend(off_the_runtime(move || rows::drop_upload(&tables.read(), &of, &upload, false)).await?);
        self.write(writes).await?;
        Ok(document)
    }

    /// Reads back what was stored, piece by piece; each must be what was received.
    async fn hash(&self, workspace: &Workspace, upload: &Upload, received: &Received) -> Result<Hash, LibraryError> {
        let mut whole = Hashing::default();
        for (index, expected) in received {
            let (_, place) = upload.place(u64::from(*index)).expect("only pieces that fit are received");
            let (tables, of, id, piece) = (self.tables(), workspace.clone(), upload.id.clone(), upload.piece);
            let found;
            (whole, found) = off_the_runtime(move || {
                let (reader, mut own) = (tables.read(), Hashing::default());
                rows::read_content(&reader, &of, &id, piece, place, |part| {
                    whole.update(part);
                    own.update(part);
                })?;
                Ok((whole, own.finish()))
            })
            .await?;
            if found != *expected {
                return Err(LibraryError::WrongContent { expected: *expected, found });
            }
        }
        Ok(whole.finish())
    }

    pub(super) async fn abort(&self, workspace: &Workspace, id: &str) -> Result<(), LibraryError> {
        let _one = self.one().await;
        self.open_upload(workspace, id).await?;
        let (tables, of, id) = (self.tables(), workspace.clone(), id.to_owned());
        self.write(off_the_runtime(move || rows::drop_upload(&tables.read(), &of, &id, true)).await?).await
    }

    pub(super) async fn add_processing(
        &self,
        workspace: &Workspace,
        processing: Processing,
    ) -> Result<(), LibraryError> {
        processing.check()?;
        let _one = self.one().await;
        if self.find(workspace, &processing.document).await?.is_none() {
            return Err(LibraryError::NotFound(processing.document));
        }
        let key = rows::processing(workspace, &processing.id);
        if self.journal.tables.read().library(&key)?.is_some() {
            return Err(LibraryError::ProcessingExists(processing.id));
        }
        self.write(vec![rows::put(key, &processing)]).await
    }

    pub(super) async fn remove_processing(&self, workspace: &Workspace, id: &str) -> Result<(), LibraryError> {
        let _one = self.one().await;
        let key = rows::processing(workspace, id);
        if self.journal.tables.read().library(&key)?.is_none() {
            return Err(LibraryError::NoProcessing(id.to_owned()));
        }
        self.write(vec![rows::drop_row(key)]).await
    }
}

/// A document and all that was taken from it, gone at once.
fn removal(tables: &Tables, workspace: &Workspace, id: String) -> Result<Vec<LibraryWrite>, JournalError> {
    let reader = tables.read();
    let (mut writes, mut waiting) = (Vec::new(), vec![id]);
    while let Some(id) = waiting.pop() {
        let key = rows::document(workspace, &id);
        let Some(row) = rows::get::<DocumentRow>(&reader, &key)? else { continue };
        writes.push(rows::drop_row(key));
        writes.extend(
            row.document.metadata.parent.iter().map(|parent| rows::drop_row(rows::child(workspace, parent, &id))),
        );
        writes.extend(rows::drop_content(&reader, workspace, &row.upload)?);
        waiting.extend(rows::child_ids(&reader, workspace, &id)?);
    }
    Ok(writes)
}
