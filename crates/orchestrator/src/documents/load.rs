//! From a file to passages that can be found: read, keep the source, make vectors, index, and have its facts extracted.

use super::facts::{self, ExtractedFacts, Extraction, FactsProgress, Material, Room, document_of};
use super::noted::{comment, tags};
use super::rules::check_documents;
use super::{Gate, Retriever};
use crate::library;
use crate::ports::{
    DocumentInfo, DocumentMetadata, DocumentReader, EmbedError, Embedder, IndexedDocument, Knowledge, KnowledgeError,
    KnowledgePlace, Library, LibraryError, Passage, PassageVectors, ReadDocument, ReadError, Search, SearchDocument,
    SearchError, TextRole, World,
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
    /// What came of asking for its facts; none if nobody was asked.
    pub facts: Option<ExtractedFacts>,
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
    #[error("its facts cannot be looked at: {0}")]
    Knowledge(#[from] KnowledgeError),
    #[error(
        "the document is loaded and can be searched, but not all of its facts are extracted: {reason}; loading it \
             again goes on with those that are missing"
    )]
    Facts { reason: String },
    #[error(
        "the document is loaded and can be searched, but none of its facts are extracted: its own, or those of other \
             documents, are being extracted already; load it again in a while"
    )]
    FactsBusy,
}

/// Hears how far the facts of a document are.
#[derive(Clone)]
pub(super) struct Progress(pub(super) Arc<dyn Fn(FactsProgress) + Send + Sync>);

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Progress")
    }
}

/// Loads documents. Loading the same again changes nothing; after a crash, loading again completes it.
#[derive(Debug, Clone)]
pub struct Loader {
    pub(super) library: Arc<dyn Library>,
    pub(super) search: Arc<dyn Search>,
    reader: Arc<dyn DocumentReader>,
    embedder: Option<Arc<dyn Embedder>>,
    /// Where facts lie, whether they are extracted here or not: they leave with their document.
    pub(super) knowledge: Arc<dyn Knowledge>,
    extraction: Option<Extraction>,
    pub(super) progress: Progress,
    pub(super) world: Arc<dyn World>,
    gate: Gate,
    /// Who is noted beside what is loaded.
    pub(super) by: Option<Caller>,
}

/// A document that is found, and whose facts may not be there yet.
#[derive(Debug)]
pub struct SearchableDocument {
    loaded: Loaded,
    place: KnowledgePlace,
    due: FactsDue,
}

/// What is still to be done for the facts of a document.
#[derive(Debug)]
enum FactsDue {
    /// All are there, or nobody wants them.
    Nothing,
    /// They are to be taken from this.
    From(Material),
    /// There is no room for it: others wait already.
    NoRoom,
}

/// A document that is ready to be indexed.
struct Ready {
    document: SearchDocument,
    loaded: Loaded,
    due: FactsDue,
    /// The version whose facts leave.
    replaced: Option<String>,
}

enum Prepared {
    Ready(Box<Ready>),
    Unchanged(Box<SearchableDocument>),
}

impl Loader {
    /// Without an embedder, documents are found by their words only.
    pub fn new(
        library: Arc<dyn Library>,
        search: Arc<dyn Search>,
        reader: Arc<dyn DocumentReader>,
        embedder: Option<Arc<dyn Embedder>>,
        knowledge: Arc<dyn Knowledge>,
        world: Arc<dyn World>,
    ) -> Self {
        let gate = Gate::new(LOADING, LOADING_OF_ONE, WAITING);
        let progress = Progress(Arc::new(|_| {}));
        Self { library, search, reader, embedder, knowledge, extraction: None, progress, world, gate, by: None }
    }

    /// The same, which has facts extracted. None has none.
    #[must_use]
    pub fn extracting(self, extraction: Option<Extraction>) -> Self {
        Self { extraction, ..self }
    }

    /// The same for somebody who wants to know how far the facts are.
    #[must_use]
    pub fn telling(self, progress: impl Fn(FactsProgress) + Send + Sync + 'static) -> Self {
        Self { progress: Progress(Arc::new(progress)), ..self }
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

    /// Loads a document with its facts.
    pub async fn load(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        document: NewDocument,
    ) -> Result<Loaded, LoadError> {
        let searchable = self.make_searchable(workspace, collection, document).await?;
        self.take_facts(searchable).await
    }

    /// Loads a document so that it is found. Its facts, which may take hours, are another matter.
    pub async fn make_searchable(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        document: NewDocument,
    ) -> Result<SearchableDocument, LoadError> {
        match self.prepare(workspace, collection, document, None).await? {
            Prepared::Unchanged(unchanged) => Ok(*unchanged),
            Prepared::Ready(ready) => {
                let mut done = self.index(workspace, collection, vec![*ready]).await;
                done.pop().unwrap_or_else(|| Err(SearchError::Invalid("nothing was indexed".to_owned()).into()))
            }
        }
    }

    /// Asks for the facts of a document that is found by now.
    pub async fn take_facts(&self, document: SearchableDocument) -> Result<Loaded, LoadError> {
        let SearchableDocument { loaded, place, due } = document;
        let facts = match (&self.extraction, due) {
            (Some(extraction), FactsDue::From(material)) => Some(self.extract(extraction, &place, &material).await?),
            (Some(_), FactsDue::NoRoom) => return Err(LoadError::FactsBusy),
            (Some(_), FactsDue::Nothing) => Some(ExtractedFacts::default()),
            (None, _) => None,
        };
        Ok(Loaded { facts, ..loaded })
    }

    /// Room for what facts are taken from: the one that is there already, or one of its own. It is looked for before
    /// anything is read, so that nobody waits with a document in hand that there is no room for.
    fn room(&self, workspace: &Workspace, shared: Option<&Room>) -> Option<Room> {
        let extraction = self.extraction.as_ref()?;
        shared.cloned().or_else(|| extraction.room(workspace))
    }

    /// Puts documents into the index and takes their facts.
    async fn finish(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        batch: &mut Vec<Ready>,
        results: &mut Vec<Result<Loaded, LoadError>>,
    ) {
        for indexed in self.index(workspace, collection, std::mem::take(batch)).await {
            results.push(match indexed {
                Ok(searchable) => self.take_facts(searchable).await,
                Err(error) => Err(error),
            });
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
        // One for all: what is in memory of them at once has a bound of its own.
        let room = self.room(workspace, None);
        for document in documents {
            if batch.iter().any(|ready| ready.document.info.id == document.id) {
                self.finish(workspace, collection, &mut batch, &mut results).await;
            }
            let prepared = self.prepare(workspace, collection, document, room.as_ref()).await;
            let passages: usize = batch.iter().map(|ready| ready.document.passages.len()).sum();
            let fits = |new: &Ready| {
                batch.len() < DOCUMENTS_AT_ONCE && passages + new.document.passages.len() <= PASSAGES_AT_ONCE
            };
            if !matches!(&prepared, Ok(Prepared::Ready(new)) if fits(new)) {
                self.finish(workspace, collection, &mut batch, &mut results).await;
            }
            match prepared {
                Ok(Prepared::Ready(ready)) => batch.push(*ready),
                Ok(Prepared::Unchanged(unchanged)) => results.push(self.take_facts(*unchanged).await),
                Err(error) => results.push(Err(error)),
            }
        }
        self.finish(workspace, collection, &mut batch, &mut results).await;
        results
    }

    /// Puts documents into the index together. If they are refused, it is asked about each: one that cannot be kept does
    /// not keep others out.
    async fn index(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        batch: Vec<Ready>,
    ) -> Vec<Result<SearchableDocument, LoadError>> {
        let place = KnowledgePlace { workspace: workspace.clone(), collection: collection.clone() };
        // Nothing is gained by asking about a single one twice.
        let together = if batch.len() > 1 {
            let documents = batch.iter().map(|ready| ready.document.clone()).collect();
            let replaced: Vec<String> = batch.iter().filter_map(|ready| ready.replaced.clone()).collect();
            Some(self.put(&place, documents, &replaced).await)
        } else {
            None
        };
        let mut results = Vec::new();
        for Ready { document, loaded, due, replaced } in batch {
            let put = match &together {
                None | Some(Err(LoadError::Search(SearchError::Invalid(_)))) => {
                    self.put(&place, vec![document], replaced.as_slice()).await
                }
                Some(together) => together.clone(),
            };
            results.push(put.map(|()| SearchableDocument { loaded, place: place.clone(), due }));
        }
        results
    }

    /// Facts of older versions leave before and after the new one is found: a process that dies in between finds the old
    /// version and begins again, and who is just writing facts of the old one has written them by then, or notices.
    async fn put(
        &self,
        place: &KnowledgePlace,
        documents: Vec<SearchDocument>,
        replaced: &[String],
    ) -> Result<(), LoadError> {
        let KnowledgePlace { workspace, collection } = place;
        self.forget_facts(workspace, collection, replaced).await?;
        self.search.put(workspace, collection, documents).await?;
        self.forget_facts(workspace, collection, replaced).await
    }

    /// Takes away what versions of documents say.
    pub(super) async fn forget_facts(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        documents: &[String],
    ) -> Result<(), LoadError> {
        let place = KnowledgePlace { workspace: workspace.clone(), collection: collection.clone() };
        for document in documents {
            facts::remove(&*self.knowledge, &place, document, None).await?;
        }
        Ok(())
    }

    async fn prepare(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        new: NewDocument,
        room: Option<&Room>,
    ) -> Result<Prepared, LoadError> {
        let model = self.embedder.as_ref().map(|embedder| embedder.model().to_owned());
        let content_hash = Hash::of(&new.content);
        let hash = self.hash(&new, &content_hash, model.as_deref());
        let before = self.search.document(workspace, collection, &new.id).await?;
        if let Some(before) = before.as_ref().filter(|before| before.info.hash == hash) {
            let due = self.missing_facts(workspace, collection, new, before, room).await?;
            let loaded = Loaded {
                outcome: Outcome::Unchanged,
                title: before.info.title.clone(),
                text: before.info.text.clone(),
                passages: before.passages,
                model: before.model.clone(),
                facts: None,
            };
            let place = KnowledgePlace { workspace: workspace.clone(), collection: collection.clone() };
            return Ok(Prepared::Unchanged(Box::new(SearchableDocument { loaded, place, due })));
        }
        let _place = self.gate.enter(workspace).await.ok_or(ReadError::Busy)?;
        let room = self.room(workspace, room);
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
        let loaded = Loaded { outcome, title, text, passages: document.passages.len() as u64, model, facts: None };
        let due = match (&self.extraction, room) {
            (Some(_), Some(room)) => {
                let SearchDocument { info, passages, .. } = &document;
                FactsDue::From(Material { info: info.clone(), passages: passages.clone(), _room: room })
            }
            (Some(_), None) => FactsDue::NoRoom,
            (None, _) => FactsDue::Nothing,
        };
        let replaced =
            before.map(|before| document_of(&before.info.text).to_owned()).filter(|before| *before != source);
        Ok(Prepared::Ready(Box::new(Ready { document, loaded, due, replaced })))
    }

    /// What facts are still to be taken from, of a document that is as it was.
    async fn missing_facts(
        &self,
        workspace: &Workspace,
        collection: &Collection,
        new: NewDocument,
        before: &IndexedDocument,
        room: Option<&Room>,
    ) -> Result<FactsDue, LoadError> {
        let place = KnowledgePlace { workspace: workspace.clone(), collection: collection.clone() };
        if self.extraction.is_none() || facts::is_complete(&*self.knowledge, &place, &before.info).await? {
            return Ok(FactsDue::Nothing);
        }
        let _place = self.gate.enter(workspace).await.ok_or(ReadError::Busy)?;
        let Some(room) = self.room(workspace, room) else { return Ok(FactsDue::NoRoom) };
        let passages = self.reader.read(&new.kind, new.content).await?.passages;
        Ok(FactsDue::From(Material { info: before.info.clone(), passages, _room: room }))
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
