//! A library in memory.

use crate::library::{MOST_UPLOADS, RunDocuments, cut};
use crate::ports::{
    BoxFuture, DocumentMetadata, Journal, Library, LibraryError, Listing, MetadataChanges, Processing, StoredDocument,
    Upload, World,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use trellis_domain::{Hash, Timestamp, Workspace};

/// Documents in memory, beside the texts of the runs of a journal.
#[derive(Debug)]
pub struct MemoryLibrary {
    runs: RunDocuments,
    world: Arc<dyn World>,
    state: Mutex<BTreeMap<Workspace, Shelf>>,
}

/// The documents of a workspace.
#[derive(Debug, Default)]
struct Shelf {
    documents: BTreeMap<String, (StoredDocument, Vec<u8>)>,
    uploads: BTreeMap<String, (Upload, BTreeMap<u32, Vec<u8>>)>,
    processings: BTreeMap<String, Processing>,
}

impl Shelf {
    fn upload(&mut self, id: &str) -> Result<&mut (Upload, BTreeMap<u32, Vec<u8>>), LibraryError> {
        self.uploads.get_mut(id).ok_or_else(|| LibraryError::NoUpload(id.to_owned()))
    }

    /// False if there is no such document.
    fn remove(&mut self, id: &str) -> bool {
        if self.documents.remove(id).is_none() {
            return false;
        }
        let is_child = |(_, (child, _)): &(&String, &(StoredDocument, _))| child.metadata.parent.as_deref() == Some(id);
        let children: Vec<_> = self.documents.iter().filter(is_child).map(|(child, _)| child.clone()).collect();
        children.iter().all(|child| self.remove(child))
    }

    fn complete(&mut self, id: &str, expected: Option<Hash>) -> Result<StoredDocument, LibraryError> {
        let (upload, pieces) = self.upload(id)?;
        let (document, missing) = (upload.document.clone(), upload.missing());
        if !missing.is_empty() {
            return Err(LibraryError::Incomplete(missing));
        }
        let content: Vec<u8> = pieces.values().flatten().copied().collect();
        let found = Hash::of(&content);
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(LibraryError::WrongContent { expected, found });
        }
        if self.documents.contains_key(&document.id) {
            return Err(LibraryError::Exists(document.id));
        }
        let stored = StoredDocument { metadata: document, size: content.len() as u64, sha256: found };
        self.uploads.remove(id);
        self.documents.insert(stored.metadata.id.clone(), (stored.clone(), content));
        Ok(stored)
    }
}

impl MemoryLibrary {
    pub fn new(journal: Arc<dyn Journal>, world: Arc<dyn World>) -> Self {
        Self { runs: RunDocuments::new(journal), world, state: Mutex::default() }
    }

    /// Looks at a workspace, without the uploads that are too old.
    fn shelf<T>(&self, workspace: &Workspace, look: impl FnOnce(&mut Shelf) -> T) -> T {
        let now: Timestamp = self.world.now();
        let mut state = self.state.lock();
        let found = state.entry(workspace.clone()).or_default();
        found.uploads.retain(|_, (upload, _)| !upload.is_over(now));
        look(found)
    }

    async fn must_be_there(&self, workspace: &Workspace, id: Option<&String>) -> Result<(), LibraryError> {
        let Some(id) = id else { return Ok(()) };
        self.find(workspace, id).await?.map(drop).ok_or_else(|| LibraryError::NotFound(id.clone()))
    }
}

fn ready<'a, T: Send + 'a>(value: Result<T, LibraryError>) -> BoxFuture<'a, Result<T, LibraryError>> {
    Box::pin(std::future::ready(value))
}

impl Library for MemoryLibrary {
    fn find<'a>(
        &'a self,
        workspace: &'a Workspace,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<StoredDocument>, LibraryError>> {
        Box::pin(async move {
            let own = self.shelf(workspace, |shelf| shelf.documents.get(id).map(|(document, _)| document.clone()));
            if own.is_some() { Ok(own) } else { Ok(self.runs.find(workspace, id).await?) }
        })
    }

    fn read<'a>(
        &'a self,
        workspace: &'a Workspace,
        document: &'a StoredDocument,
        range: Range<u64>,
    ) -> BoxFuture<'a, Result<Vec<u8>, LibraryError>> {
        Box::pin(async move {
            let id = &document.metadata.id;
            let own = self.shelf(workspace, |shelf| {
                let found = shelf.documents.get(id).filter(|(found, _)| found.sha256 == document.sha256);
                found.map(|(_, content)| cut(content, &range).to_vec())
            });
            match own {
                Some(content) => Ok(content),
                None => self.runs.read(workspace, document, range).await,
            }
        })
    }

    fn list<'a>(
        &'a self,
        workspace: &'a Workspace,
        listing: &'a Listing,
    ) -> BoxFuture<'a, Result<Vec<StoredDocument>, LibraryError>> {
        let listed = self.shelf(workspace, |shelf| {
            let all = shelf.documents.values().map(|(document, _)| document);
            all.filter(|document| listing.contains(&document.metadata)).cloned().collect()
        });
        ready(Ok(listed))
    }

    fn update<'a>(
        &'a self,
        workspace: &'a Workspace,
        id: &'a str,
        changes: MetadataChanges,
    ) -> BoxFuture<'a, Result<StoredDocument, LibraryError>> {
        Box::pin(async move {
            let updated = self.shelf(workspace, |shelf| {
                let (document, _) = shelf.documents.get_mut(id)?;
                Some(changes.apply(document.clone()).inspect(|updated| *document = updated.clone()))
            });
            match updated {
                Some(updated) => updated,
                None => Err(self.runs.instead(workspace, id).await),
            }
        })
    }

    fn remove<'a>(&'a self, workspace: &'a Workspace, id: &'a str) -> BoxFuture<'a, Result<(), LibraryError>> {
        Box::pin(async move {
            if self.shelf(workspace, |shelf| shelf.remove(id)) {
                return Ok(());
            }
            Err(self.runs.instead(workspace, id).await)
        })
    }

    fn begin<'a>(
        &'a self,
        workspace: &'a Workspace,
        document: DocumentMetadata,
        size: u64,
        piece: u64,
    ) -> BoxFuture<'a, Result<Upload, LibraryError>> {
        Box::pin(async move {
            let upload = Upload::new(self.world.fresh_id(), document, size, piece, self.world.now())?;
            if self.find(workspace, &upload.document.id).await?.is_some() {
                return Err(LibraryError::Exists(upload.document.id));
            }
            self.must_be_there(workspace, upload.document.parent.as_ref()).await?;
            self.shelf(workspace, |shelf| {
                if shelf.uploads.len() >= MOST_UPLOADS {
                    return Err(LibraryError::TooManyUploads(MOST_UPLOADS));
                }
                shelf.uploads.insert(upload.id.clone(), (upload.clone(), BTreeMap::new()));
                Ok(upload)
            })
        })
    }

    fn put_piece<'a>(
        &'a self,
        workspace: &'a Workspace,
        upload: &'a str,
        index: u64,
        content: Vec<u8>,
    ) -> BoxFuture<'a, Result<Upload, LibraryError>> {
        ready(self.shelf(workspace, |shelf| {
            let (upload, pieces) = shelf.upload(upload)?;
            let (number, _) = upload.fit(index, content.len() as u64)?;
            pieces.insert(number, content);
            upload.received.insert(number);
            Ok(upload.clone())
        }))
    }

    fn upload<'a>(
        &'a self,
        workspace: &'a Workspace,
        upload: &'a str,
    ) -> BoxFuture<'a, Result<Option<Upload>, LibraryError>> {
        ready(Ok(self.shelf(workspace, |shelf| shelf.uploads.get(upload).map(|(upload, _)| upload.clone()))))
    }

    fn uploads<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<Vec<Upload>, LibraryError>> {
        ready(Ok(self.shelf(workspace, |shelf| shelf.uploads.values().map(|(upload, _)| upload.clone()).collect())))
    }

    fn complete<'a>(
        &'a self,
        workspace: &'a Workspace,
        upload: &'a str,
        expected: Option<Hash>,
    ) -> BoxFuture<'a, Result<StoredDocument, LibraryError>> {
        Box::pin(async move {
            let parent =
                self.shelf(workspace, |shelf| Ok::<_, LibraryError>(shelf.upload(upload)?.0.document.parent.clone()))?;
            self.must_be_there(workspace, parent.as_ref()).await?;
            self.shelf(workspace, |shelf| shelf.complete(upload, expected))
        })
    }

    fn abort<'a>(&'a self, workspace: &'a Workspace, upload: &'a str) -> BoxFuture<'a, Result<(), LibraryError>> {
        let aborted = self.shelf(workspace, |shelf| shelf.uploads.remove(upload));
        ready(aborted.map(drop).ok_or_else(|| LibraryError::NoUpload(upload.to_owned())))
    }

    fn add_processing<'a>(
        &'a self,
        workspace: &'a Workspace,
        processing: Processing,
    ) -> BoxFuture<'a, Result<(), LibraryError>> {
        Box::pin(async move {
            processing.check()?;
            self.must_be_there(workspace, Some(&processing.document)).await?;
            self.shelf(workspace, |shelf| {
                if shelf.processings.contains_key(&processing.id) {
                    return Err(LibraryError::ProcessingExists(processing.id));
                }
                shelf.processings.insert(processing.id.clone(), processing);
                Ok(())
            })
        })
    }

    fn remove_processing<'a>(
        &'a self,
        workspace: &'a Workspace,
        id: &'a str,
    ) -> BoxFuture<'a, Result<(), LibraryError>> {
        let removed = self.shelf(workspace, |shelf| shelf.processings.remove(id));
        ready(removed.map(drop).ok_or_else(|| LibraryError::NoProcessing(id.to_owned())))
    }

    fn processings<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<Vec<Processing>, LibraryError>> {
        ready(Ok(self.shelf(workspace, |shelf| shelf.processings.values().cloned().collect())))
    }
}
