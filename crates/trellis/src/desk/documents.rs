//! Documents that are searched, on the folder and at a server.

use super::Desk;
use super::server::Server;
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
use trellis_orchestrator::documents::{LoadError, Loader, NewDocument, Outcome};
use trellis_orchestrator::ports::Embedder;

/// A large document with many vectors takes its time.
const LOADING: Duration = Duration::from_mins(10);

/// A file that is to be searched.
#[derive(Debug)]
pub(crate) struct DocumentFile {
    /// Where it lies: loaded from there again, it takes its own place.
    pub(crate) id: String,
    /// Its MIME type.
    pub(crate) kind: &'static str,
    pub(crate) content: Vec<u8>,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct LoadedDocument {
    pub(crate) passages: u64,
    /// It was there already, as it is.
    #[serde(default)]
    pub(crate) unchanged: bool,
}

impl Desk {
    /// Reads a file in passages, which are found from then on.
    pub(crate) async fn load_document(
        &self,
        collection: &Collection,
        file: DocumentFile,
        embedder: Option<Arc<dyn Embedder>>,
    ) -> Result<LoadedDocument, Failure> {
        match self {
            Self::Local(app) => {
                let DocumentFile { id, kind, content } = file;
                let document = NewDocument { id, title: None, kind: kind.to_owned(), content };
                load(&app.loader(embedder)?.by(person::caller()), app.workspace(), collection, document).await
            }
            Self::Remote(server) => server.load_document(collection, file).await,
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
        LoadError::Embed(_) => Exit::Unreachable,
        LoadError::Library(_) | LoadError::Search(_) => Exit::Unexpected,
    };
    Failure::new(exit, error.to_string())
}

async fn load(
    loader: &Loader,
    workspace: &trellis_domain::Workspace,
    collection: &Collection,
    document: NewDocument,
) -> Result<LoadedDocument, Failure> {
    let done = loader.load(workspace, collection, document).await.map_err(failure)?;
    Ok(LoadedDocument { passages: done.passages, unchanged: done.outcome == Outcome::Unchanged })
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
        let DocumentFile { id, kind: _, content } = file;
        let mut body = json!({ "id": id, "data": BASE64.encode(content), "collection": collection });
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
