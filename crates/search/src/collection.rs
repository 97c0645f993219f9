//! One collection that is open: its words, its vectors, and whoever changes them.

use crate::live_rows::LiveRows;
use crate::schema::{Fields, WORDS, Words};
use crate::vectors::Space;
use parking_lot::{Mutex, RwLock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tantivy::directory::MmapDirectory;
use tantivy::indexer::IndexWriterOptions;
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, Searcher, TantivyError};
use trellis_orchestrator::documents::MOST_PASSAGES_OF_COLLECTION;
use trellis_orchestrator::ports::{SearchDocument, SearchError};

/// Bytes that added documents take in memory before they go to disk.
const ADDING: usize = 32 << 20;
/// Blocks of stored entries that are kept unpacked, of 16 KiB each.
const BLOCKS: usize = 64;

#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) folder: PathBuf,
    pub(crate) fields: Fields,
    index: Index,
    reader: Reader,
    writer: Mutex<Writer>,
    /// Rows are overwritten only while nobody looks at vectors. Whoever looks takes the newest state of the index after
    /// entering, which does not name the rows that may be overwritten next.
    pub(crate) rows: RwLock<()>,
    live: Mutex<Option<Cached>>,
}

/// The last rows that were looked up, and for which state of the index.
#[derive(Debug)]
struct Cached {
    generation: u64,
    space: u64,
    live: Arc<LiveRows>,
}

struct Reader(IndexReader);

/// A space, and the rows of it that the passages of a document have.
type VectorRows = (u64, Vec<u64>);

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reader")
    }
}

/// Whoever adds documents.
enum Writer {
    /// Nobody yet, or not since something failed.
    Idle,
    Ready(Box<IndexWriter>),
    /// The collection is removed.
    Closed,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Idle => "Idle",
            Self::Ready(_) => "Ready",
            Self::Closed => "Closed",
        })
    }
}

/// Why a collection was not changed.
#[derive(Debug)]
pub(crate) enum ChangeError {
    CollectionRemoved,
    Failed(SearchError),
}

impl From<SearchError> for ChangeError {
    fn from(error: SearchError) -> Self {
        Self::Failed(error)
    }
}

/// Whether documents were written into a folder.
pub(crate) fn has_segments(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|kind| kind == "store"))
}

pub(crate) fn failed(doing: &'static str) -> impl Fn(TantivyError) -> SearchError {
    move |error| SearchError::Index { doing, why: error.to_string() }
}

impl Opened {
    pub(crate) fn open(folder: &Path) -> Result<Self, SearchError> {
        let opened = failed("opened");
        let (schema, fields) = Fields::schema();
        // A new index would be made in its place, and what is found there no longer, without a word.
        if !folder.join("meta.json").exists() && has_segments(folder) {
            let why = format!("{} is missing; `trellis doctor` says what to do", folder.join("meta.json").display());
            return Err(SearchError::Index { doing: "opened", why });
        }
        let files = MmapDirectory::open(folder).map_err(|error| opened(error.into()))?;
        let index = Index::open_or_create(files, schema).map_err(&opened)?;
        index.tokenizers().register(WORDS, Words);
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).doc_store_cache_num_blocks(BLOCKS);
        let reader = Reader(reader.try_into().map_err(&opened)?);
        Ok(Self {
            folder: folder.to_owned(),
            fields,
            index,
            reader,
            writer: Mutex::new(Writer::Idle),
            rows: RwLock::default(),
            live: Mutex::default(),
        })
    }

    /// The state after the last change.
    pub(crate) fn searcher(&self) -> Searcher {
        self.reader.0.searcher()
    }

    pub(crate) fn put(&self, documents: &[SearchDocument]) -> Result<(), ChangeError> {
        self.change(|writer| self.add(writer, documents))
    }

    /// False if there was no such document.
    pub(crate) fn remove(&self, id: &str) -> Result<bool, ChangeError> {
        self.change(|writer| {
            let is_there = self.document(id)?.is_some();
            if is_there {
                writer.delete_term(self.fields.of_document(id));
            }
            Ok(is_there)
        })
    }

    /// The same for several, which share the wait for the disk. How many there were.
    pub(crate) fn remove_all(&self, ids: &[String]) -> Result<u64, ChangeError> {
        self.change(|writer| {
            let mut removed = 0;
            for id in ids {
                if self.document(id)?.is_some() {
                    writer.delete_term(self.fields.of_document(id));
                    removed += 1;
                }
            }
            Ok(removed)
        })
    }

    /// Ends all changes and closes the collection for good, while its files are removed.
    pub(crate) fn close(&self, remove: impl FnOnce() -> Result<(), SearchError>) -> Result<(), SearchError> {
        let mut writer = self.writer.lock();
        if matches!(*writer, Writer::Closed) {
            return Ok(());
        }
        *writer = Writer::Closed;
        remove()
    }

    /// Changes the index: all of it is durable and seen by the next search, or nothing of it was done.
    fn change<T>(&self, work: impl FnOnce(&mut IndexWriter) -> Result<T, SearchError>) -> Result<T, ChangeError> {
        let mut place = self.writer.lock();
        // What fails leaves nothing behind: the writer goes with what it has not committed.
        let mut writer = match std::mem::replace(&mut *place, Writer::Idle) {
            Writer::Ready(writer) => writer,
            Writer::Idle => Box::new(self.writer()?),
            Writer::Closed => {
                *place = Writer::Closed;
                return Err(ChangeError::CollectionRemoved);
            }
        };
        let done = work(&mut writer)?;
        writer.commit().map_err(failed("written"))?;
        self.reader.0.reload().map_err(failed("read"))?;
        *place = Writer::Ready(writer);
        Ok(done)
    }

    fn writer(&self) -> Result<IndexWriter, SearchError> {
        let options =
            IndexWriterOptions::builder().memory_budget_per_thread(ADDING).num_worker_threads(1).num_merge_threads(1);
        self.index.writer_with_options(options.build()).map_err(failed("written"))
    }

    fn add(&self, writer: &mut IndexWriter, documents: &[SearchDocument]) -> Result<(), SearchError> {
        let written = failed("written");
        let new: u64 = documents.iter().map(|document| document.passages.len() as u64 + 1).sum();
        if self.searcher().num_docs() + new > MOST_PASSAGES_OF_COLLECTION {
            let why = format!("the collection is full: it holds at most {MOST_PASSAGES_OF_COLLECTION} passages");
            return Err(SearchError::Invalid(format!("{why}; use another collection")));
        }
        let places = self.write_vectors(documents)?;
        for (document, place) in documents.iter().zip(places) {
            writer.delete_term(self.fields.of_document(&document.info.id));
            writer.add_document(self.fields.head(document)?).map_err(&written)?;
            for (number, passage) in document.passages.iter().enumerate() {
                let vector = place.as_ref().and_then(|(space, rows)| Some((*space, *rows.get(number)?)));
                let entry = self.fields.passage(&document.info, number, passage, vector)?;
                writer.add_document(entry).map_err(&written)?;
            }
        }
        Ok(())
    }

    /// Writes the vectors of all documents, each where nobody has any. Until the index names them they do not count.
    fn write_vectors(&self, documents: &[SearchDocument]) -> Result<Vec<Option<VectorRows>>, SearchError> {
        let mut places: Vec<Option<VectorRows>> = vec![None; documents.len()];
        let mut spaces: Vec<(Space, Vec<usize>)> = Vec::new();
        for (index, document) in documents.iter().enumerate() {
            let Some(vectors) = &document.vectors else { continue };
            let Some(first) = vectors.vectors.first() else { continue };
            let space = Space::new(&self.folder, &vectors.model, first.len());
            match spaces.iter_mut().find(|(known, _)| *known == space) {
                Some((_, members)) => members.push(index),
                None => spaces.push((space, vec![index])),
            }
        }
        let why = |error: std::io::Error| SearchError::Index { doing: "written", why: error.to_string() };
        for (space, members) in spaces {
            let count = members.iter().map(|index| documents[*index].passages.len()).sum();
            let live = self.live_rows(&self.searcher(), space.id)?;
            // A file that is made anew or longer would have zeros where vectors were.
            if let Some(fault) = live.rows.last().map_or(Ok(None), |last| space.fault(*last)).map_err(&why)? {
                let why = format!("{fault}; `trellis doctor` says what to do");
                return Err(SearchError::Index { doing: "written", why });
            }
            // That may take a while, and hinders nobody who searches.
            space.make_sketches().map_err(&why)?;
            let mut free = live.free(count).into_iter();
            let mut rows = Vec::with_capacity(count);
            for index in members {
                let vectors = documents[index].vectors.iter().flat_map(|vectors| &vectors.vectors);
                // In this order: a row that is taken out for nobody would be missing for the next one.
                let own = vectors.map(Vec::as_slice).zip(free.by_ref()).map(|(vector, row)| (row, vector));
                let own: Vec<(u64, &[f32])> = own.collect();
                places[index] = Some((space.id, own.iter().map(|(row, _)| *row).collect()));
                rows.extend(own);
            }
            let _nobody_looks = self.rows.write();
            space.write(&rows).map_err(&why)?;
        }
        Ok(places)
    }

    /// The rows of a space in the state that a searcher has.
    pub(crate) fn live_rows(&self, searcher: &Searcher, space: u64) -> Result<Arc<LiveRows>, SearchError> {
        let generation = searcher.generation().generation_id();
        let known = |cached: &&Cached| cached.generation == generation && cached.space == space;
        if let Some(cached) = self.live.lock().as_ref().filter(known) {
            return Ok(Arc::clone(&cached.live));
        }
        let live = Arc::new(LiveRows::read(searcher, space).map_err(failed("read"))?);
        *self.live.lock() = Some(Cached { generation, space, live: Arc::clone(&live) });
        Ok(live)
    }
}
