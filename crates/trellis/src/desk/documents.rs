//! Documents that are searched, on the folder and at a server.

use super::Desk;
use super::server::Server;
use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::person;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Collection;
use trellis_orchestrator::documents::{ExtractedFacts, FactsProgress, LoadError, Loaded, NewDocument, Outcome};
use trellis_orchestrator::ports::Embedder;

/// A large document with many vectors takes its time, and more so one that a model reads passage by passage.
const LOADING: Duration = Duration::from_hours(12);

/// A file that is to be searched.
#[derive(Debug)]
pub(crate) struct DocumentFile {
    /// Where it lies: loaded from there again, it takes its own place.
    pub(crate) id: String,
    /// Its MIME type.
    pub(crate) kind: &'static str,
    pub(crate) content: Vec<u8>,
    /// Whether its facts are wanted, if there is a model for them.
    pub(crate) facts: bool,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct LoadedDocument {
    pub(crate) passages: u64,
    /// It was there already, as it is.
    #[serde(default)]
    pub(crate) unchanged: bool,
    /// None if nobody was asked for them.
    #[serde(default)]
    pub(crate) facts: Option<ExtractedFacts>,
}

impl Desk {
    /// Reads files in passages, which are found from then on. What came of each, in their order; of none but the first if
    /// nothing can be loaded at all.
    pub(crate) async fn load_documents(
        &self,
        collection: &Collection,
        files: Vec<DocumentFile>,
        (global, embedder): (&Global, Option<Arc<dyn Embedder>>),
        progress: impl Fn(FactsProgress) + Send + Sync + 'static,
    ) -> Vec<Result<LoadedDocument, Failure>> {
        match self {
            Self::Local(app) => {
                let wanted = files.iter().any(|file| file.facts);
                let extraction = if wanted { app.extraction(global) } else { Ok(None) };
                let loader = match extraction.and_then(|extraction| Ok((app.loader(embedder)?, extraction))) {
                    Ok((loader, extraction)) => loader.by(person::caller()).extracting(extraction).telling(progress),
                    Err(failure) => return vec![Err(failure)],
                };
                let documents = files.into_iter().map(|DocumentFile { id, kind, content, .. }| NewDocument {
                    id,
                    title: None,
                    kind: kind.to_owned(),
                    content,
                });
                let came = loader.load_all(app.workspace(), collection, documents).await;
                came.into_iter().map(|came| came.map(LoadedDocument::from).map_err(failure)).collect()
            }
            Self::Remote(server) => {
                let mut came = Vec::new();
                for file in files {
                    came.push(server.load_document(collection, file).await);
                }
                came
            }
        }
    }

    /// Removes a document by what it was loaded as. How many versions of it there were; none if there is no such document.
    pub(crate) async fn remove_document(&self, collection: &Collection, id: &str) -> Result<Option<u64>, Failure> {
        match self {
            Self::Local(app) => {
                let removed = app.loader(None)?.remove(app.workspace(), collection, id).await.map_err(failure)?;
                Ok(removed.map(|removed| removed.versions))
            }
            Self::Remote(server) => server.remove_document(collection, id).await,
        }
    }
}

fn failure(error: LoadError) -> Failure {
    let exit = match &error {
        LoadError::Read(_) => Exit::Usage,
        LoadError::Embed(_) | LoadError::Facts { .. } => Exit::Unreachable,
        LoadError::Library(_) | LoadError::Search(_) | LoadError::Knowledge(_) | LoadError::FactsBusy => {
            Exit::Unexpected
        }
    };
    Failure::new(exit, error.to_string())
}

impl From<Loaded> for LoadedDocument {
    fn from(loaded: Loaded) -> Self {
        let unchanged = loaded.outcome == Outcome::Unchanged;
        Self { passages: loaded.passages, unchanged, facts: loaded.facts }
    }
}

/// Services say in their replies what is wrong.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Reply {
    Loaded(LoadedDocument),
    Refused { error: Refusal },
}

#[derive(Debug, Deserialize)]
struct Refusal {
    message: String,
}

/// What the library says.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Listed {
    #[serde(default)]
    document_metadatas: Vec<Kept>,
    error: Option<Refusal>,
}

#[derive(Debug, Deserialize)]
struct Kept {
    id: String,
    #[serde(default)]
    comments: String,
    #[serde(default)]
    tags: Vec<String>,
}

impl Server {
    async fn load_document(&self, collection: &Collection, file: DocumentFile) -> Result<LoadedDocument, Failure> {
        let DocumentFile { id, kind: _, content, facts } = file;
        let mut body = json!({ "id": id, "data": BASE64.encode(content), "collection": collection, "facts": facts });
        if let Some(workspace) = self.named_workspace() {
            body["workspace"] = json!(workspace);
        }
        let path = ["flow", "default", "service", "document-load"];
        let request = self.request(Method::POST, &path, &[]).body(body.to_string());
        let reply: Reply = self.json_within(request, LOADING).await.map_err(|trouble| self.failure(trouble))?;
        match reply {
            Reply::Loaded(loaded) => Ok(loaded),
            Reply::Refused { error } => Err(Failure::usage(error.message)),
        }
    }

    /// What the library knows of a document goes last, so that asking again finds what is left.
    async fn remove_document(&self, collection: &Collection, id: &str) -> Result<Option<u64>, Failure> {
        let (comment, tag) = (format!("loaded as {id}"), format!("collection:{collection}"));
        let mut versions = 0;
        for kept in self.librarian(json!({"operation": "list-documents"})).await?.document_metadatas {
            if kept.comments == comment && kept.tags.contains(&tag) {
                self.librarian(json!({"operation": "remove-document", "document-id": kept.id})).await?;
                versions += 1;
            }
        }
        Ok(Some(versions).filter(|versions| *versions > 0))
    }

    async fn librarian(&self, mut body: Value) -> Result<Listed, Failure> {
        if let Some(workspace) = self.named_workspace() {
            body["workspace"] = json!(workspace);
        }
        let reply: Listed = self.ask(self.request(Method::POST, &["librarian"], &[]).body(body.to_string())).await?;
        match reply.error {
            Some(error) => Err(Failure::usage(error.message)),
            None => Ok(reply),
        }
    }
}
