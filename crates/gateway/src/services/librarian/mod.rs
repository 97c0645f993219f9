//! Documents, as the stock clients add, look at and remove them.

mod content;
mod metadata;
mod processing;
mod uploads;

use crate::call::Call;
use crate::error::{ServiceError, StreamError};
use crate::inside::Gateway;
use crate::outbox::Outbox;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use metadata::{changes, processing, read_document, read_processing, written};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trellis_domain::ids::InvalidId;
use trellis_domain::{Collection, ConversationId, SessionId, Workspace};
use trellis_orchestrator::documents::{LoadError, Loader};
use trellis_orchestrator::library::add;
use trellis_orchestrator::ports::{Library, LibraryError, Listing, StoredDocument};

/// What an operation works on.
struct Desk<'a> {
    call: &'a Call,
}

/// One reply, whole.
pub(crate) async fn answer(call: Call) -> Result<Value, ServiceError> {
    Desk { call: &call }.answer().await
}

/// A document piece by piece if it is asked for so; else one reply.
pub(crate) async fn stream(gateway: &Gateway, call: Call, outbox: &Outbox) -> Result<(), StreamError> {
    let desk = Desk { call: &call };
    match call.members().operation()? {
        "stream-document" => return desk.stream_content(gateway, outbox).await,
        "get-document-content" => desk.check_fits().await?,
        // Others on the socket do not wait for it.
        "add-processing" => return Ok(outbox.last(&desk.answer().await?).await?),
        _ => {}
    }
    let _floor = outbox.floor().await;
    Ok(outbox.last(&desk.answer().await?).await?)
}

/// Whether a request may keep its caller waiting.
pub(crate) fn takes_long(call: &Call) -> bool {
    call.members().operation().is_ok_and(|operation| operation == "add-processing")
}

/// The content of a document, read while it is sent.
pub(crate) async fn streamed(gateway: &Arc<Gateway>, call: &Call) -> Result<Option<Response>, ServiceError> {
    match call.members().operation()? {
        "get-document-content" => Desk { call }.whole_content(gateway).await.map(Some),
        _ => Ok(None),
    }
}

impl Desk<'_> {
    fn library(&self) -> &dyn Library {
        self.call.inside.library()
    }

    fn workspace(&self) -> &Workspace {
        self.call.workspace()
    }

    async fn answer(&self) -> Result<Value, ServiceError> {
        match self.call.members().operation()? {
            "add-document" => self.add().await,
            "add-child-document" => self.add_child().await,
            "update-document" => self.update().await,
            "remove-document" => self.remove().await,
            "get-document" | "get-document-metadata" => self.describe().await,
            "get-document-content" => self.short_content().await,
            "stream-document" => self.one_chunk().await,
            "list-documents" => self.list().await,
            "list-children" => self.list_children().await,
            "begin-upload" => self.begin_upload().await,
            "upload-chunk" => self.upload_chunk().await,
            "complete-upload" => self.complete_upload().await,
            "abort-upload" => self.abort_upload().await,
            "get-upload-status" => self.upload_status().await,
            "list-uploads" => self.list_uploads().await,
            "add-processing" => self.add_processing().await,
            "remove-processing" => self.remove_processing().await,
            "list-processing" => self.list_processing().await,
            _ => Err(ServiceError::unknown_operation()),
        }
    }

    async fn add(&self) -> Result<Value, ServiceError> {
        let document = read_document(self.call.members(), self.now())?;
        add(self.library(), self.workspace(), document, &self.content()?).await?;
        Ok(reply([]))
    }

    async fn add_child(&self) -> Result<Value, ServiceError> {
        let mut document = read_document(self.call.members(), self.now())?;
        if document.parent.is_none() {
            return Err(ServiceError::request("the member `parent-id` is missing; a child needs the id of its parent"));
        }
        if document.document_type == metadata::SOURCE {
            "extracted".clone_into(&mut document.document_type);
        }
        let added = add(self.library(), self.workspace(), document, &self.content()?).await?;
        Ok(reply([("document-id", json!(added.metadata.id))]))
    }

    async fn update(&self) -> Result<Value, ServiceError> {
        let (id, changes) = changes(self.call.members())?;
        let document = self.library().update(self.workspace(), id, changes).await?;
        Ok(reply([("document-metadata", written(&document))]))
    }

    /// What was read of it leaves first: should this be stopped in between, asking again finds the rest.
    async fn remove(&self) -> Result<Value, ServiceError> {
        if let Some(loader) = self.call.inside.documents() {
            loader.forget(self.workspace(), self.document_id()?).await.map_err(unforgotten)?;
            self.remove_processed(loader).await?;
        }
        self.library().remove(self.workspace(), self.document_id()?).await?;
        Ok(reply([]))
    }

    /// What was loaded of the document because it was processed, wherever that was.
    async fn remove_processed(&self, loader: &Loader) -> Result<(), ServiceError> {
        let (library, workspace, id) = (self.library(), self.workspace(), self.document_id()?);
        for processing in library.processings(workspace).await?.into_iter().filter(|it| it.document == id) {
            if let Ok(collection) = Collection::new(&processing.collection) {
                loader.remove(workspace, &collection, id).await.map_err(unforgotten)?;
            }
            library.remove_processing(workspace, &processing.id).await?;
        }
        Ok(())
    }

    async fn describe(&self) -> Result<Value, ServiceError> {
        Ok(reply([("document-metadata", written(&self.document().await?))]))
    }

    async fn list(&self) -> Result<Value, ServiceError> {
        let members = self.call.members();
        match members.list("criteria")? {
            [] => {}
            [criterion] => return self.texts_of_runs(criterion).await,
            _ => return Err(ServiceError::request("write one of the `criteria`, not several")),
        }
        let listing = if members.flag("include-children")? { Listing::All } else { Listing::TopLevel };
        self.listed(&listing).await
    }

    /// What runs have thought, observed and answered is no document of anybody's own: it is listed by where it belongs.
    async fn texts_of_runs(&self, criterion: &Value) -> Result<Value, ServiceError> {
        const MOST: usize = 1_000;
        let text = |name| criterion.get(name).and_then(Value::as_str).unwrap_or_default();
        let (texts, value) = (self.call.inside.runs().texts(), text("value"));
        let wrong = |error: InvalidId| ServiceError::request(error.to_string());
        let found = match text("key") {
            "session" => texts.of_session(self.workspace(), &SessionId::new(value).map_err(wrong)?).await?,
            "conversation" => {
                let conversation = ConversationId::new(value).map_err(wrong)?;
                texts.of_conversation(self.workspace(), &conversation, MOST).await?
            }
            _ => {
                let ask = "documents are searched by `criteria` with the key `session` or `conversation`; else list them all and choose";
                return Err(ServiceError::request(ask));
            }
        };
        Ok(reply([("document-metadatas", found.iter().map(written).collect())]))
    }

    async fn list_children(&self) -> Result<Value, ServiceError> {
        self.listed(&Listing::ChildrenOf(self.document_id()?.to_owned())).await
    }

    async fn listed(&self, listing: &Listing) -> Result<Value, ServiceError> {
        let documents = self.library().list(self.workspace(), listing).await?;
        Ok(reply([("document-metadatas", documents.iter().map(written).collect())]))
    }

    /// A document that is processed is searched afterwards. It is loaded before that is noted: loading again changes
    /// nothing, so that whoever was interrupted may say it again.
    async fn add_processing(&self) -> Result<Value, ServiceError> {
        let processing = read_processing(self.call.members(), self.now())?;
        let known = self.library().processings(self.workspace()).await?;
        if known.iter().all(|known| known.id != processing.id) {
            self.load(&processing).await?;
        }
        self.library().add_processing(self.workspace(), processing).await?;
        Ok(reply([]))
    }

    async fn remove_processing(&self) -> Result<Value, ServiceError> {
        let id = self.call.members().required("processing-id")?;
        self.library().remove_processing(self.workspace(), id).await?;
        Ok(reply([]))
    }

    async fn list_processing(&self) -> Result<Value, ServiceError> {
        let all = self.library().processings(self.workspace()).await?;
        Ok(reply([("processing-metadatas", all.iter().map(processing).collect())]))
    }

    fn document_id(&self) -> Result<&str, ServiceError> {
        self.call.members().required("document-id")
    }

    /// The document that is asked for.
    async fn document(&self) -> Result<StoredDocument, ServiceError> {
        let id = self.document_id()?;
        let found = self.library().find(self.workspace(), id).await?;
        Ok(found.ok_or_else(|| LibraryError::NotFound(id.to_owned()))?)
    }

    /// The bytes that came with the request.
    fn content(&self) -> Result<Vec<u8>, ServiceError> {
        let text = self.call.members().text("content")?;
        let text =
            text.ok_or_else(|| ServiceError::request("the member `content` is missing; it must be a base64 text"))?;
        STANDARD
            .decode(text)
            .map_err(|error| ServiceError::request(format!("the member `content` is not base64: {error}")))
    }

    fn now(&self) -> trellis_domain::Timestamp {
        self.call.inside.world().now()
    }
}

fn unforgotten(error: LoadError) -> ServiceError {
    match error {
        LoadError::Search(error) => error.into(),
        LoadError::Library(error) => error.into(),
        error @ (LoadError::Read(_)
        | LoadError::Embed(_)
        | LoadError::Knowledge(_)
        | LoadError::Facts { .. }
        | LoadError::FactsBusy) => ServiceError::gateway(error.to_string()),
    }
}

/// A reply with these members. The two lists are always there, as in the original.
fn reply<const N: usize>(members: [(&str, Value); N]) -> Value {
    let mut reply = Map::new();
    for name in ["document-metadatas", "processing-metadatas"] {
        reply.insert(name.to_owned(), json!([]));
    }
    reply.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
    Value::Object(reply)
}
