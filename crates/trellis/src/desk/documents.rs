//! Documents that are searched, on the folder and at a server.

use super::Desk;
use super::server::Server;
use crate::failure::{Exit, Failure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
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
                load(&app.loader(embedder)?, app.workspace(), collection, document).await
            }
            Self::Remote(server) => server.load_document(collection, file).await,
        }
    }
}

async fn load(
    loader: &Loader,
    workspace: &trellis_domain::Workspace,
    collection: &Collection,
    document: NewDocument,
) -> Result<LoadedDocument, Failure> {
    let done = loader.load(workspace, collection, document).await.map_err(|error| {
        let exit = match &error {
            LoadError::Read(_) => Exit::Usage,
            LoadError::Embed(_) => Exit::Unreachable,
            LoadError::Library(_) | LoadError::Search(_) => Exit::Unexpected,
        };
        Failure::new(exit, error.to_string())
    })?;
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
}
