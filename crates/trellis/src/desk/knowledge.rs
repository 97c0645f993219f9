//! Loaded knowledge, on the folder and at a server.

use super::Desk;
use super::server::{Server, ServerTrouble};
use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::person;
use hyper::body::{Body, Frame};
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use std::io::Read;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use trellis_domain::Collection;
use trellis_orchestrator::knowledge::{LoadError, Loaded, NewSource, check_loaded, load};
use trellis_orchestrator::ports::{KnowledgeError, KnowledgePlace, LoadedCollection};
use trellis_rdf::{Format, Origin, ReadError, Statements};

/// Bytes that are sent together, and how many such pieces wait to be sent.
const PIECE: usize = 64 << 10;
const WAITING: usize = 4;
/// A server that takes nothing for so long, or has nothing to say when it has everything, is given up.
pub(super) const SILENT: Duration = Duration::from_mins(10);

/// A file of RDF, opened.
pub(crate) struct RdfFile {
    pub(crate) reader: Box<dyn Read + Send>,
    pub(crate) format: Format,
    pub(crate) origin: Origin,
    /// What its load is remembered by.
    pub(crate) source: String,
}

impl Desk {
    /// Loads a file into a collection, and tells how far it is.
    pub(crate) async fn load_rdf(
        &self,
        collection: &Collection,
        file: RdfFile,
        progress: impl Fn(Loaded) + Send + 'static,
    ) -> Result<Loaded, Failure> {
        match self {
            Self::Local(app) => app.load_rdf(collection, file, progress).await,
            Self::Remote(server) => server.load_rdf(collection, file).await,
        }
    }

    /// What is loaded, by name.
    pub(crate) async fn collections(&self) -> Result<Vec<LoadedCollection>, Failure> {
        match self {
            Self::Local(app) => Ok(app.knowledge.collections(app.workspace()).await?),
            Self::Remote(server) => {
                let listed: Collections = server.ask(server.request(Method::GET, &["collections"], &[])).await?;
                Ok(listed.collections)
            }
        }
    }

    /// How many quads a collection had.
    pub(crate) async fn remove_knowledge(&self, collection: &Collection) -> Result<u64, Failure> {
        match self {
            Self::Local(app) => {
                let removed = app.knowledge.remove(&app.place(collection)).await?;
                let nothing =
                    format!("the collection `{collection}` has no knowledge; `trellis knowledge list` lists all");
                removed.ok_or_else(|| Failure::new(Exit::NotFound, nothing))
            }
            Self::Remote(server) => {
                let path = ["collections", collection.as_str(), "knowledge"];
                let removed: Removed = server.ask(server.request(Method::DELETE, &path, &[])).await?;
                Ok(removed.quads)
            }
        }
    }
}

#[derive(Debug, Deserialize)]
struct Collections {
    collections: Vec<LoadedCollection>,
}

#[derive(Debug, Deserialize)]
struct Removed {
    quads: u64,
}

impl From<KnowledgeError> for Failure {
    fn from(error: KnowledgeError) -> Self {
        match error {
            KnowledgeError::Refused(message) => Self::usage(message),
            KnowledgeError::Busy(message) => Self::new(Exit::Limit, message),
            KnowledgeError::Store(error) => error.into(),
        }
    }
}

impl App {
    fn place(&self, collection: &Collection) -> KnowledgePlace {
        KnowledgePlace { workspace: self.workspace().clone(), collection: collection.clone() }
    }

    async fn load_rdf(
        &self,
        collection: &Collection,
        file: RdfFile,
        progress: impl Fn(Loaded) + Send + 'static,
    ) -> Result<Loaded, Failure> {
        let RdfFile { reader, format, origin, source } = file;
        let wrong = |error: ReadError| Failure::usage(error.to_string());
        let statements = Statements::new(reader, format, origin, check_loaded).map_err(wrong)?;
        let knowledge = Arc::clone(&self.knowledge);
        let source = NewSource { place: self.place(collection), name: source, by: person::caller() };
        match load(knowledge, source, statements, progress).await {
            Ok(loaded) => Ok(loaded),
            Err(LoadError::Source(error)) => Err(wrong(error)),
            Err(LoadError::Knowledge(error)) => Err(error.into()),
        }
    }
}

impl Server {
    async fn load_rdf(&self, collection: &Collection, file: RdfFile) -> Result<Loaded, Failure> {
        let RdfFile { reader, format, origin, source } = file;
        let mut query = vec![("format", format.name()), ("source", &*source), ("scope", &*origin.scope)];
        query.extend(origin.base.as_deref().map(|base| ("base", base)));
        let path = ["collections", collection.as_str(), "knowledge"];
        let (upload, sent) = Upload::of(reader);
        let request = self.request(Method::POST, &path, &query).body(reqwest::Body::wrap(upload));
        let name = origin.name;
        self.json_while::<Loaded>(request, &sent, SILENT).await.map_err(|trouble| match trouble {
            // The server knows the file by another name than the one who types.
            ServerTrouble::Refused(refusal) if refusal.status == StatusCode::UNPROCESSABLE_ENTITY => {
                let message = refusal.message.replacen(&source, &name, 1);
                Failure::usage(message)
            }
            trouble @ (ServerTrouble::Lost(_) | ServerTrouble::Refused(_) | ServerTrouble::Foreign(_)) => {
                self.failure(trouble)
            }
        })
    }
}

/// A file on its way, a few pieces in memory.
pub(super) struct Upload(mpsc::Receiver<std::io::Result<Vec<u8>>>);

impl Upload {
    /// It also counts what was sent.
    pub(super) fn of(mut reader: Box<dyn Read + Send>) -> (Self, Arc<AtomicU64>) {
        let (pieces, waiting) = mpsc::channel(WAITING);
        let sent = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&sent);
        tokio::task::spawn_blocking(move || {
            loop {
                let mut piece = vec![0; PIECE];
                let read = reader.read(&mut piece).map(|size| {
                    piece.truncate(size);
                    piece
                });
                let is_last = read.as_ref().map_or(true, Vec::is_empty);
                let size = read.as_ref().map_or(0, Vec::len) as u64;
                // A server that does not want more has a reason, which it tells.
                if (size > 0 || read.is_err()) && pieces.blocking_send(read).is_err() || is_last {
                    return;
                }
                counter.fetch_add(size, Ordering::Relaxed);
            }
        });
        (Self(waiting), sent)
    }
}

impl Body for Upload {
    type Data = bytes::Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| piece.map(|bytes| Frame::data(bytes.into()))))
    }
}
