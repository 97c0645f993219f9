//! From a file to passages that can be found: read, keep the source, make vectors, index.

use super::noted::{comment, tags};
use super::rules::check_documents;
use super::{Gate, Retriever};
use crate::library;
use crate::ports::{
    DocumentInfo, DocumentMetadata, DocumentReader, EmbedError, Embedder, Library, LibraryError, Passage,
    PassageVectors, ReadDocument, ReadError, Search, SearchDocument, SearchError, TextRole, World,
};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::{Caller, Collection, Hash, Workspace};

/// Passages that are indexed in one go: each go waits for the disk, and holds what it indexes in memory.
const PASSAGES_AT_ONCE: usize = 5_000;
const DOCUMENTS_AT_ONCE: usize = 64;
/// Documents that are read at once, in all and of one workspace, and how long one waits for its turn.
const LOADING: usize = 4;
const LOADING_OF_ONE: usize = 2;
const WAITING: Duration = Duration::from_mins(2);

/// A file that is to be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDocument {
    /// What it is loaded as, such as a path: a changed file with the same id takes the place of the one before.
    pub id: String,
    /// None takes what the file says, or else the id.
    pub title: Option<String>,
    /// Its MIME type; see [`kind_of_name`].
    pub kind: String,
    pub content: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Added,
    /// An older version was there; its source stays in the library, because runs may have cited it.
    Replaced,
    Unchanged,
}

/// What came of loading a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    pub outcome: Outcome,
    pub title: String,
    /// The library's document with the text of the passages.
    pub text: String,
    pub passages: u64,
    /// The model that made vectors; none means that the document is found by its words only.
    pub model: Option<String>,
}

/// Why a document was not loaded. The version that was there before, if any, still is.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("no vectors could be made: {0}")]
    Embed(#[from] EmbedError),
    #[error(transparent)]
    Library(#[from] LibraryError),
    #[error(transparent)]
    Search(#[from] SearchError),
}

/// Loads documents. Loading the same again changes nothing; after a crash, loading again completes it.
#[derive(Debug, Clone)]
pub struct Loader {
    pub(super) library: Arc<dyn Library>,
    pub(super) search: Arc<dyn Search>,
    reader: Arc<dyn DocumentReader>,
    embedder: Option<Arc<dyn Embedder>>,
    world: Arc<dyn World>,
    gate: Gate,
    /// Who is noted beside what is loaded.
    by: Option<Caller>,
}

/// A document that is ready to be indexed.
struct Ready {
    document: SearchDocument,
    loaded: Loaded,
}

enum Prepared {
    Ready(Box<Ready>),
    Unchanged(Loaded),
}

impl Loader {
    /// Without an embedder, documents are found by their words only.
    pub fn new(
        library: Arc<dyn Library>,
        search: Arc<dyn Search>,
        reader: Arc<dyn DocumentReader>,
        embedder: Option<Arc<dyn Embedder>>,
        world: Arc<dyn World>,
    ) -> Self {
        Self { library, search, reader, embedder, world, gate: Gate::new(LOADING, LOADING_OF_ONE, WAITING), by: None }
    }

    /// The same for somebody who is on record with what they load.
    #[must_use]
    pub fn by(&self, caller: Caller) -> Self {
        Self { by: Some(caller), ..self.clone() }
    }

    pub fn search(&self) -> &dyn Search {
        &*self.search
    }

    pub fn embedder(&self) -> Option<&dyn Embedder> {
        self.embedder.as_deref()
    }

    /// Finds what was loaded.
    pub fn retriever(&self) -> Retriever {
        Retriever { search: Arc::clone(&self.search), embedder: self.embedder.clone() }
    }

    pub async fn load(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        document: NewDocument,
    ) -> Result<Loaded, LoadError> {
        match self.prepare(workspace, collection, document).await? {
            Prepared::Unchanged(loaded) => Ok(loaded),
            Prepared::Ready(ready) => {
                self.search.put(workspace, collection, vec![ready.document]).await?;
                Ok(ready.loaded)
            }
        }
    }

    /// Loads many, each of which may fail for itself. Several of them share a wait for the disk. Results come in the
    /// order of the documents.
    pub async fn load_all(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        documents: impl IntoIterator<Item = NewDocument> + Send,
    ) -> Vec<Result<Loaded, LoadError>> {
        let mut results = Vec::new();
        let mut batch: Vec<Ready> = Vec::new();
        for document in documents {
            let passages: usize = batch.iter().map(|ready| ready.document.passages.len()).sum();
            let is_full = batch.len() >= DOCUMENTS_AT_ONCE || passages >= PASSAGES_AT_ONCE;
            if is_full || batch.iter().any(|ready| ready.document.info.id == document.id) {
                results.extend(self.index(workspace, collection, std::mem::take(&mut batch)).await);
            }
            match self.prepare(workspace, collection, document).await {
                Ok(Prepared::Ready(ready)) => batch.push(*ready),
                done @ (Ok(Prepared::Unchanged(_)) | Err(_)) => {
                    results.extend(self.index(workspace, collection, std::mem::take(&mut batch)).await);
                    results.extend(done.map(Prepared::unchanged).transpose());
                }
            }
        }
        results.extend(self.index(workspace, collection, batch).await);
        results
    }

    async fn index(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        batch: Vec<Ready>,
    ) -> Vec<Result<Loaded, LoadError>> {
        let (documents, loaded): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|ready| (ready.document, ready.loaded)).unzip();
        if documents.is_empty() {
            return Vec::new();
        }
        let put = self.search.put(workspace, collection, documents).await;
        loaded.into_iter().map(|loaded| put.clone().map(|()| loaded).map_err(LoadError::from)).collect()
    }

    async fn prepare(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        new: NewDocument,
    ) -> Result<Prepared, LoadError> {
        let model = self.embedder.as_ref().map(|embedder| embedder.model().to_owned());
        let content_hash = Hash::of(&new.content);
        let hash = self.hash(&new, &content_hash, model.as_deref());
        let before = self.search.document(workspace, collection, &new.id).await?;
        if let Some(before) = before.as_ref().filter(|before| before.info.hash == hash) {
            return Ok(Prepared::Unchanged(Loaded {
                outcome: Outcome::Unchanged,
                title: before.info.title.clone(),
                text: before.info.text.clone(),
                passages: before.passages,
                model: before.model.clone(),
            }));
        }
        let _place = self.gate.enter(workspace).await.ok_or(ReadError::Busy)?;
        let read = self.reader.read(&new.kind, new.content.clone()).await?;
        let title = new.title.clone().or(read.title.clone()).unwrap_or_else(|| new.id.clone());
        let title = title[..title.floor_char_boundary(500)].to_owned();
        let source = source_id(collection, &new.id, &content_hash);
        let text = if read.extracted.is_some() { format!("{source}/text") } else { source.clone() };
        let info = DocumentInfo { id: new.id.clone(), title: title.clone(), text: text.clone(), hash };
        let mut document = SearchDocument { info, passages: read.passages.clone(), vectors: None };
        // Before anybody is asked for vectors or anything is kept.
        check_documents(std::slice::from_ref(&document))?;
        document.vectors = self.vectors(&title, &document.passages).await?;
        self.keep(workspace, collection, &new, (&source, &title), read).await?;
        let outcome = if before.is_some() { Outcome::Replaced } else { Outcome::Added };
        let loaded = Loaded { outcome, title, text, passages: document.passages.len() as u64, model };
        Ok(Prepared::Ready(Box::new(Ready { document, loaded })))
    }

    /// Of everything that decides how the document is found.
    fn hash(&self, new: &NewDocument, content: &Hash, model: Option<&str>) -> Hash {
        let title = new.title.as_deref().unwrap_or_default();
        let parts = [new.kind.as_str(), title, self.reader.version(), model.unwrap_or_default()];
        Hash::of_parts([content.as_bytes().as_slice()].into_iter().chain(parts.map(str::as_bytes)))
    }

    async fn vectors(&self, title: &str, passages: &[Passage]) -> Result<Option<PassageVectors>, LoadError> {
        let Some(embedder) = &self.embedder else { return Ok(None) };
        let texts = passages.iter().map(|passage| in_context(title, passage)).collect();
        let vectors = embedder.embed(texts, TextRole::Passage).await?;
        Ok(Some(PassageVectors { model: embedder.model().to_owned(), vectors }))
    }

    /// Keeps the source, and the text that was made of it, so that whoever is shown a passage can open it.
    async fn keep(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        new: &NewDocument,
        (source, title): (&str, &str),
        read: ReadDocument,
    ) -> Result<(), LoadError> {
        let tags = tags(collection, self.by.as_ref());
        let metadata = DocumentMetadata {
            id: source.to_owned(),
            kind: new.kind.clone(),
            document_type: "source".to_owned(),
            parent: None,
            time: self.world.now(),
            title: title.to_owned(),
            comments: comment(&new.id),
            metadata: Vec::new(),
            tags,
        };
        self.keep_one(workspace, metadata.clone(), &new.content).await?;
        let Some(text) = read.extracted else { return Ok(()) };
        let extracted = DocumentMetadata {
            id: format!("{source}/text"),
            kind: "text/markdown".to_owned(),
            document_type: "extracted".to_owned(),
            parent: Some(source.to_owned()),
            ..metadata
        };
        self.keep_one(workspace, extracted, text.as_bytes()).await
    }

    /// The id is made of the content: what has it already is the same.
    async fn keep_one(
        &self,
        workspace: &Workspace,
        metadata: DocumentMetadata,
        content: &[u8],
    ) -> Result<(), LoadError> {
        if self.library.find(workspace, &metadata.id).await?.is_some() {
            return Ok(());
        }
        match library::add(&*self.library, workspace, metadata, content).await {
            Ok(_) | Err(LibraryError::Exists(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Prepared {
    fn unchanged(self) -> Option<Loaded> {
        match self {
            Self::Unchanged(loaded) => Some(loaded),
            Self::Ready(_) => None,
        }
    }
}

/// A version of a document in the library: another content is another document there, since content never changes.
fn source_id(collection: &Collection, id: &str, content: &Hash) -> String {
    let parts = [collection.as_str().as_bytes(), id.as_bytes(), content.as_bytes().as_slice()];
    let hash = Hash::of_parts(parts).to_string();
    format!("urn:trellis:document:{}", &hash[..32])
}

/// A passage as the model that makes vectors reads it: what it is about may stand only above it.
fn in_context(title: &str, passage: &Passage) -> String {
    let mut path = vec![title];
    path.extend(passage.place.headings.iter().map(String::as_str));
    format!("{}\n\n{}", path.join(" › "), passage.text)
}

/// The MIME type of files with such a name, if documents of that type can be read.
pub fn kind_of_name(name: &str) -> Option<&'static str> {
    let ending = name.rsplit_once('.')?.1.to_ascii_lowercase();
    match ending.as_str() {
        "txt" | "text" | "log" | "csv" | "tsv" | "rst" => Some("text/plain"),
        "md" | "markdown" => Some("text/markdown"),
        "html" | "htm" | "xhtml" => Some("text/html"),
        "pdf" => Some("application/pdf"),
        _ => None,
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
pub(super) mod tests;
