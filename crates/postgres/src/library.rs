//! The library: what people add, in pieces; the texts of runs, out of their records.

use crate::database::{Database, Lease, Parameters};
use crate::error::{damaged, failed};
use crate::journal::PostgresJournal;
use crate::reading::hash;
use deadpool_postgres::Transaction;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::Row;
use trellis_domain::hash::Hashing;
use trellis_domain::{Hash, Timestamp, Workspace};
use trellis_orchestrator::library::{MOST_UPLOADS, RunDocuments, UPLOAD_AGE_MS, check_id};
use trellis_orchestrator::ports::{
    DocumentMetadata, Journal, JournalError, Library, LibraryError, LibraryFuture, Listing, MetadataChanges,
    Processing, StoredDocument, Upload, World,
};

/// Documents in a database.
#[derive(Debug)]
pub struct PostgresLibrary {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    database: Database,
    runs: RunDocuments,
    world: Arc<dyn World>,
    /// One change at a time in this process: each holds a connection while it looks around with another.
    writing: Semaphore,
}

/// No change takes longer: reading back the largest document does not.
const LONGEST: Duration = Duration::from_mins(10);

/// The pieces of an upload that are there, by their hashes.
type Received = BTreeMap<u32, Hash>;

const UPLOAD: &str = "SELECT id, document, size, piece, began FROM uploads WHERE workspace = $1";
const PIECES: &str = "SELECT at, hash FROM pieces WHERE workspace = $1 AND upload = $2";

impl PostgresLibrary {
    /// The texts of runs come out of the journal.
    pub fn new(journal: &Arc<PostgresJournal>, world: Arc<dyn World>) -> Self {
        let runs = RunDocuments::new(Arc::clone(journal) as Arc<dyn Journal>);
        Self {
            inner: Arc::new(Inner { database: journal.database().clone(), runs, world, writing: Semaphore::new(1) }),
        }
    }

    /// In a task of its own: a caller that goes away must not leave a change half checked.
    fn change<'a, T, F>(&self, change: impl FnOnce(Arc<Inner>) -> F) -> LibraryFuture<'a, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, LibraryError>> + Send + 'static,
    {
        let task = tokio::spawn(tokio::time::timeout(LONGEST, change(Arc::clone(&self.inner))));
        let lost = |why: String| LibraryError::Store(JournalError::Unavailable(why));
        Box::pin(async move {
            let changed = task.await.map_err(|error| lost(error.to_string()))?;
            changed.map_err(|_| lost("the server does not answer".to_owned()))?
        })
    }
}

fn unreadable(what: impl std::fmt::Display) -> JournalError {
    damaged(format!("the library cannot be read: {what}"))
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("what is said of documents is always JSON")
}

fn document(row: &Row) -> Result<StoredDocument, JournalError> {
    serde_json::from_slice(row.get(0)).map_err(unreadable)
}

/// No document has such a name, and no database takes it.
fn is_name(id: &str) -> bool {
    check_id("id", id).is_ok()
}

fn upload_of(row: &Row) -> Result<Upload, JournalError> {
    let number = |column| u64::try_from(row.get::<_, i64>(column)).map_err(unreadable);
    Ok(Upload {
        id: row.get(0),
        document: serde_json::from_slice(row.get(1)).map_err(unreadable)?,
        size: number(2)?,
        piece: number(3)?,
        received: std::collections::BTreeSet::new(),
        began: Timestamp::from_micros(row.get(4)),
    })
}

fn received_of(rows: &[Row]) -> Result<Received, JournalError> {
    rows.iter().map(|row| Ok((u32::try_from(row.get::<_, i32>(0)).map_err(unreadable)?, hash(row.get(1))?))).collect()
}

/// A transaction that changes the library of a workspace: one at a time, whatever process it is in.
struct Change<'a> {
    lease: Lease,
    _one: SemaphorePermit<'a>,
}

impl Change<'_> {
    async fn begin<'a>(
        &'a mut self,
        database: &Database,
        workspace: &Workspace,
    ) -> Result<Transaction<'a>, JournalError> {
        let transaction = self.lease.transaction().await.map_err(failed)?;
        let lock = database.lock_of(&format!("library\0{workspace}"));
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&lock]).await.map_err(failed)?;
        Ok(transaction)
    }
}

async fn execute(
    transaction: &Transaction<'_>,
    statement: &str,
    parameters: Parameters<'_>,
) -> Result<u64, JournalError> {
    transaction.execute(statement, parameters).await.map_err(failed)
}

impl Inner {
    async fn lease(&self) -> Result<Change<'_>, JournalError> {
        let one = self.writing.acquire().await.expect("the semaphore is never closed");
        Ok(Change { lease: self.database.lease().await?, _one: one })
    }

    /// A document that people added.
    async fn own(&self, workspace: &Workspace, id: &str) -> Result<Option<StoredDocument>, JournalError> {
        if !is_name(id) {
            return Ok(None);
        }
        let query = "SELECT document FROM documents WHERE workspace = $1 AND id = $2";
        self.database.find(query, &[&workspace.as_str(), &id]).await?.as_ref().map(document).transpose()
    }

    async fn find(&self, workspace: &Workspace, id: &str) -> Result<Option<StoredDocument>, LibraryError> {
        match self.own(workspace, id).await? {
            Some(document) => Ok(Some(document)),
            None => Ok(self.runs.find(workspace, id).await?),
        }
    }

    async fn read(
        &self,
        workspace: &Workspace,
        document: &StoredDocument,
        range: Range<u64>,
    ) -> Result<Option<Vec<u8>>, JournalError> {
        let query = "SELECT upload, piece FROM documents WHERE workspace = $1 AND id = $2 AND sha256 = $3";
        let (space, id) = (workspace.as_str(), document.metadata.id.as_str());
        if !is_name(id) {
            return Ok(None);
        }
        let row = self.database.find(query, &[&space, &id, &&document.sha256.as_bytes()[..]]).await?;
        let Some(row) = row else { return Ok(None) };
        let (upload, piece): (&str, u64) = (row.get(0), u64::try_from(row.get::<_, i64>(1)).map_err(unreadable)?);
        let range = range.start..range.end.min(document.size);
        let mut bytes = Vec::with_capacity(usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0));
        let mut at = range.start;
        while at < range.end {
            let (number, inside) = (at / piece, at % piece);
            let length = (piece - inside).min(range.end - at);
            let number = i32::try_from(number).map_err(unreadable)?;
            let (from, length) =
                (i32::try_from(inside + 1).map_err(unreadable)?, i32::try_from(length).map_err(unreadable)?);
            let query =
                "SELECT substring(content FROM $4 FOR $5) FROM pieces WHERE workspace = $1 AND upload = $2 AND at = $3";
            let row = self.database.find(query, &[&space, &upload, &number, &from, &length]).await?;
            let Some(row) = row else {
                // Removed or replaced since it was found, or lost.
                let known = "SELECT 1 FROM documents WHERE workspace = $1 AND id = $2 AND upload = $3";
                let there = self.database.find(known, &[&space, &id, &upload]).await?.is_some();
                return if there {
                    Err(unreadable(format!("content at byte {at} of {id} is missing")))
                } else {
                    Ok(None)
                };
            };
            let part: &[u8] = row.get(0);
            if part.is_empty() {
                return Err(unreadable(format!("content at byte {at} of {id} is missing")));
            }
            bytes.extend_from_slice(part);
            at += part.len() as u64;
        }
        Ok(Some(bytes))
    }

    async fn list(&self, workspace: &Workspace, listing: &Listing) -> Result<Vec<StoredDocument>, JournalError> {
        let all = "SELECT document FROM documents WHERE workspace = $1 ORDER BY id";
        let children = "SELECT document FROM documents WHERE workspace = $1 AND parent = $2 ORDER BY id";
        let rows = match listing {
            Listing::TopLevel | Listing::All => self.database.query(all, &[&workspace.as_str()]).await?,
            Listing::ChildrenOf(parent) if is_name(parent) => {
                self.database.query(children, &[&workspace.as_str(), parent]).await?
            }
            Listing::ChildrenOf(_) => Vec::new(),
        };
        let documents = rows.iter().map(document).collect::<Result<Vec<_>, _>>()?;
        Ok(documents.into_iter().filter(|document| listing.contains(&document.metadata)).collect())
    }

    async fn upload(&self, workspace: &Workspace, id: &str) -> Result<Option<(Upload, Received)>, JournalError> {
        if !is_name(id) {
            return Ok(None);
        }
        let row = self.database.find(&format!("{UPLOAD} AND id = $2"), &[&workspace.as_str(), &id]).await?;
        let Some(upload) = row.as_ref().map(upload_of).transpose()? else { return Ok(None) };
        let received = received_of(&self.database.query(PIECES, &[&workspace.as_str(), &id]).await?)?;
        let upload = Upload { received: received.keys().copied().collect(), ..upload };
        Ok(Some((upload, received)).filter(|(upload, _)| !upload.is_over(self.world.now())))
    }

    async fn uploads(&self, workspace: &Workspace) -> Result<Vec<Upload>, JournalError> {
        let rows = self.database.query(&format!("{UPLOAD} ORDER BY id"), &[&workspace.as_str()]).await?;
        let mut uploads = Vec::new();
        for row in &rows {
            uploads.extend(self.upload(workspace, row.get(0)).await?.map(|(upload, _)| upload));
        }
        Ok(uploads)
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

    async fn update(
        &self,
        workspace: &Workspace,
        id: &str,
        changes: MetadataChanges,
    ) -> Result<StoredDocument, LibraryError> {
        let mut change = self.lease().await?;
        let transaction = change.begin(&self.database, workspace).await?;
        let Some(found) = self.own(workspace, id).await? else { return Err(self.runs.instead(workspace, id).await) };
        let document = changes.apply(found)?;
        let update = "UPDATE documents SET document = $3 WHERE workspace = $1 AND id = $2";
        execute(&transaction, update, &[&workspace.as_str(), &id, &json(&document)]).await?;
        transaction.commit().await.map_err(failed)?;
        change.lease.release();
        Ok(document)
    }

    async fn remove(&self, workspace: &Workspace, id: &str) -> Result<(), LibraryError> {
        let mut change = self.lease().await?;
        let transaction = change.begin(&self.database, workspace).await?;
        if self.own(workspace, id).await?.is_none() {
            return Err(self.runs.instead(workspace, id).await);
        }
        let remove = "WITH RECURSIVE gone AS ( \
                SELECT id FROM documents WHERE workspace = $1 AND id = $2 \
                UNION SELECT d.id FROM documents d JOIN gone ON d.workspace = $1 AND d.parent = gone.id), \
            removed AS (DELETE FROM documents WHERE workspace = $1 AND id IN (SELECT id FROM gone) RETURNING upload) \
            DELETE FROM pieces WHERE workspace = $1 AND upload IN (SELECT upload FROM removed)";
        execute(&transaction, remove, &[&workspace.as_str(), &id]).await?;
        transaction.commit().await.map_err(failed)?;
        change.lease.release();
        Ok(())
    }

    async fn begin(
        &self,
        workspace: &Workspace,
        document: DocumentMetadata,
        size: u64,
        piece: u64,
    ) -> Result<Upload, LibraryError> {
        let now = self.world.now();
        let upload = Upload::new(self.world.fresh_id(), document, size, piece, now)?;
        let mut change = self.lease().await?;
        let transaction = change.begin(&self.database, workspace).await?;
        self.check_place(workspace, &upload.document).await?;
        let space = workspace.as_str();
        let over =
            i64::try_from(UPLOAD_AGE_MS).map_or(0, |age| now.as_micros().saturating_sub(age.saturating_mul(1000)));
        let abandoned = "WITH gone AS (DELETE FROM uploads WHERE workspace = $1 AND began <= $2 RETURNING id) \
            DELETE FROM pieces WHERE workspace = $1 AND upload IN (SELECT id FROM gone)";
        execute(&transaction, abandoned, &[&space, &over]).await?;
        let count = "SELECT count(*) FROM uploads WHERE workspace = $1";
        let open: i64 = transaction.query_one(count, &[&space]).await.map_err(failed)?.get(0);
        let open = usize::try_from(open).unwrap_or(usize::MAX);
        if open >= MOST_UPLOADS {
            return Err(LibraryError::TooManyUploads(open));
        }
        let insert =
            "INSERT INTO uploads (workspace, id, document, size, piece, began) VALUES ($1, $2, $3, $4, $5, $6)";
        let (size, piece) = (upload.size.cast_signed(), upload.piece.cast_signed());
        let parameters: Parameters<'_> =
            &[&space, &upload.id, &json(&upload.document), &size, &piece, &upload.began.as_micros()];
        execute(&transaction, insert, parameters).await?;
        transaction.commit().await.map_err(failed)?;
        change.lease.release();
        Ok(upload)
    }

    /// The upload is held while the piece is written, so that it is not completed meanwhile.
    async fn put_piece(
        &self,
        workspace: &Workspace,
        id: &str,
        index: u64,
        content: Vec<u8>,
    ) -> Result<Upload, LibraryError> {
        let (mut upload, _) = self.open_upload(workspace, id).await?;
        let (number, _) = upload.fit(index, content.len() as u64)?;
        let (space, at, own) = (workspace.as_str(), number.cast_signed(), Hash::of(&content));
        let mut lease = self.database.lease().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        let hold = "SELECT 1 FROM uploads WHERE workspace = $1 AND id = $2 FOR SHARE";
        if transaction.query_opt(hold, &[&space, &id]).await.map_err(failed)?.is_none() {
            return Err(LibraryError::NoUpload(id.to_owned()));
        }
        let put = "INSERT INTO pieces (workspace, upload, at, hash, content) VALUES ($1, $2, $3, $4, $5) \
            ON CONFLICT (workspace, upload, at) DO UPDATE SET hash = excluded.hash, content = excluded.content";
        execute(&transaction, put, &[&space, &id, &at, &&own.as_bytes()[..], &content]).await?;
        transaction.commit().await.map_err(failed)?;
        lease.release();
        upload.received.insert(number);
        Ok(upload)
    }

    async fn complete(
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
        let found = self.hash(workspace, id, &received).await?;
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(LibraryError::WrongContent { expected, found });
        }
        let mut change = self.lease().await?;
        let transaction = change.begin(&self.database, workspace).await?;
        let space = workspace.as_str();
        let gone = "DELETE FROM uploads WHERE workspace = $1 AND id = $2";
        if execute(&transaction, gone, &[&space, &id]).await? == 0 {
            return Err(LibraryError::NoUpload(id.to_owned()));
        }
        let now = received_of(&transaction.query(PIECES, &[&space, &id]).await.map_err(failed)?)?;
        if now != received {
            return Err(LibraryError::PieceMeanwhile);
        }
        self.check_place(workspace, &upload.document).await?;
        let Upload { document: metadata, size, piece, .. } = upload;
        let document = StoredDocument { metadata, size, sha256: found };
        let insert = "INSERT INTO documents (workspace, id, parent, document, sha256, upload, piece) \
            VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let parameters: Parameters<'_> = &[
            &space,
            &document.metadata.id,
            &document.metadata.parent,
            &json(&document),
            &&found.as_bytes()[..],
            &id,
            &piece.cast_signed(),
        ];
        execute(&transaction, insert, parameters).await?;
        transaction.commit().await.map_err(failed)?;
        change.lease.release();
        Ok(document)
    }

    /// Reads back what was stored, piece by piece; each must be what was received.
    async fn hash(&self, workspace: &Workspace, id: &str, received: &Received) -> Result<Hash, LibraryError> {
        let mut whole = Hashing::default();
        for (index, expected) in received {
            let query = "SELECT content FROM pieces WHERE workspace = $1 AND upload = $2 AND at = $3";
            let row = self.database.find(query, &[&workspace.as_str(), &id, &index.cast_signed()]).await?;
            let row = row.ok_or(LibraryError::PieceMeanwhile)?;
            let content: &[u8] = row.get(0);
            let found = Hash::of(content);
            if found != *expected {
                return Err(LibraryError::WrongContent { expected: *expected, found });
            }
            whole.update(content);
        }
        Ok(whole.finish())
    }

    async fn abort(&self, workspace: &Workspace, id: &str) -> Result<(), LibraryError> {
        self.open_upload(workspace, id).await?;
        let abort = "WITH gone AS (DELETE FROM uploads WHERE workspace = $1 AND id = $2 RETURNING id) \
            DELETE FROM pieces WHERE workspace = $1 AND upload IN (SELECT id FROM gone)";
        self.database.execute(abort, &[&workspace.as_str(), &id]).await?;
        Ok(())
    }

    async fn add_processing(&self, workspace: &Workspace, processing: Processing) -> Result<(), LibraryError> {
        processing.check()?;
        if self.find(workspace, &processing.document).await?.is_none() {
            return Err(LibraryError::NotFound(processing.document));
        }
        let insert = "INSERT INTO processings (workspace, id, processing) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        let added = self.database.execute(insert, &[&workspace.as_str(), &processing.id, &json(&processing)]).await?;
        if added == 0 { Err(LibraryError::ProcessingExists(processing.id)) } else { Ok(()) }
    }

    async fn remove_processing(&self, workspace: &Workspace, id: &str) -> Result<(), LibraryError> {
        let delete = "DELETE FROM processings WHERE workspace = $1 AND id = $2";
        let gone = if is_name(id) { self.database.execute(delete, &[&workspace.as_str(), &id]).await? } else { 0 };
        if gone == 0 { Err(LibraryError::NoProcessing(id.to_owned())) } else { Ok(()) }
    }

    async fn processings(&self, workspace: &Workspace) -> Result<Vec<Processing>, JournalError> {
        let query = "SELECT processing FROM processings WHERE workspace = $1 ORDER BY id";
        let rows = self.database.query(query, &[&workspace.as_str()]).await?;
        rows.iter().map(|row| serde_json::from_slice(row.get(0)).map_err(unreadable)).collect()
    }
}

impl Library for PostgresLibrary {
    fn find<'a>(&'a self, workspace: &'a Workspace, id: &'a str) -> LibraryFuture<'a, Option<StoredDocument>> {
        Box::pin(self.inner.find(workspace, id))
    }

    fn read<'a>(
        &'a self,
        workspace: &'a Workspace,
        document: &'a StoredDocument,
        range: Range<u64>,
    ) -> LibraryFuture<'a, Vec<u8>> {
        Box::pin(async move {
            match self.inner.read(workspace, document, range.clone()).await? {
                Some(bytes) => Ok(bytes),
                None => self.inner.runs.read(workspace, document, range).await,
            }
        })
    }

    fn list<'a>(&'a self, workspace: &'a Workspace, listing: &'a Listing) -> LibraryFuture<'a, Vec<StoredDocument>> {
        Box::pin(async { Ok(self.inner.list(workspace, listing).await?) })
    }

    fn update<'a>(
        &'a self,
        workspace: &'a Workspace,
        id: &'a str,
        changes: MetadataChanges,
    ) -> LibraryFuture<'a, StoredDocument> {
        let (workspace, id) = (workspace.clone(), id.to_owned());
        self.change(|inner| async move { inner.update(&workspace, &id, changes).await })
    }

    fn remove<'a>(&'a self, workspace: &'a Workspace, id: &'a str) -> LibraryFuture<'a, ()> {
        let (workspace, id) = (workspace.clone(), id.to_owned());
        self.change(|inner| async move { inner.remove(&workspace, &id).await })
    }

    fn begin<'a>(
        &'a self,
        workspace: &'a Workspace,
        document: DocumentMetadata,
        size: u64,
        piece: u64,
    ) -> LibraryFuture<'a, Upload> {
        let workspace = workspace.clone();
        self.change(move |inner| async move { inner.begin(&workspace, document, size, piece).await })
    }

    fn put_piece<'a>(
        &'a self,
        workspace: &'a Workspace,
        upload: &'a str,
        index: u64,
        content: Vec<u8>,
    ) -> LibraryFuture<'a, Upload> {
        let (workspace, upload) = (workspace.clone(), upload.to_owned());
        self.change(move |inner| async move { inner.put_piece(&workspace, &upload, index, content).await })
    }

    fn upload<'a>(&'a self, workspace: &'a Workspace, upload: &'a str) -> LibraryFuture<'a, Option<Upload>> {
        Box::pin(async move { Ok(self.inner.upload(workspace, upload).await?.map(|(upload, _)| upload)) })
    }

    fn uploads<'a>(&'a self, workspace: &'a Workspace) -> LibraryFuture<'a, Vec<Upload>> {
        Box::pin(async { Ok(self.inner.uploads(workspace).await?) })
    }

    fn complete<'a>(
        &'a self,
        workspace: &'a Workspace,
        upload: &'a str,
        expected: Option<Hash>,
    ) -> LibraryFuture<'a, StoredDocument> {
        let (workspace, upload) = (workspace.clone(), upload.to_owned());
        self.change(move |inner| async move { inner.complete(&workspace, &upload, expected).await })
    }

    fn abort<'a>(&'a self, workspace: &'a Workspace, upload: &'a str) -> LibraryFuture<'a, ()> {
        let (workspace, upload) = (workspace.clone(), upload.to_owned());
        self.change(|inner| async move { inner.abort(&workspace, &upload).await })
    }

    fn add_processing<'a>(&'a self, workspace: &'a Workspace, processing: Processing) -> LibraryFuture<'a, ()> {
        let workspace = workspace.clone();
        self.change(|inner| async move { inner.add_processing(&workspace, processing).await })
    }

    fn remove_processing<'a>(&'a self, workspace: &'a Workspace, id: &'a str) -> LibraryFuture<'a, ()> {
        let (workspace, id) = (workspace.clone(), id.to_owned());
        self.change(|inner| async move { inner.remove_processing(&workspace, &id).await })
    }

    fn processings<'a>(&'a self, workspace: &'a Workspace) -> LibraryFuture<'a, Vec<Processing>> {
        Box::pin(async { Ok(self.inner.processings(workspace).await?) })
    }
}
