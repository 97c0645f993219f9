//! `/api/v1/flow/{flow}/import/{kind}`: triples and rows from stock clients, over a WebSocket of their own.
//!
//! The client sends batches and hears nothing until it closes the connection. Its close is answered when everything is on
//! disk. A client that is refused tries the same again for ever, so that triples which cannot be kept are left out, and the
//! server's log says which.

use crate::bearer;
use crate::error::{Code, ErrorBody, ServiceError};
use crate::guests::Client;
use crate::import_rows::RowsImport;
use crate::inside::{Gateway, Inside};
use crate::knocks::Knock;
use axum::Extension;
use axum::extract::rejection::QueryRejection;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use trellis_domain::rdf::Quad;
use trellis_domain::{Collection, Surface};
use trellis_orchestrator::knowledge::check_loaded;
use trellis_orchestrator::ports::{KnowledgeError, KnowledgePlace};

/// Bytes of a message, which has a hundred triples.
const LARGEST_MESSAGE: usize = 4 << 20;
/// How long a client may say nothing. It asks whether we are there every 20 s.
const SILENT: Duration = Duration::from_mins(2);
/// Documents that one connection may load from.
const MOST_SOURCES: usize = 100;

/// What a client says in the address.
#[derive(Debug, Deserialize)]
pub(crate) struct Knocking {
    #[serde(default)]
    token: String,
    #[serde(default)]
    workspace: String,
}

/// What is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Triples,
    /// Texts about entities, for embeddings. They repeat literals of the triples; nothing is made of them.
    EntityContexts,
    Rows,
}

/// Import triples or rows
///
/// A WebSocket, as stock TrustGraph clients speak it (`tg-load-turtle`, `tg-load-knowledge`): messages with `metadata`
/// (`id`, `collection`) and `triples`, or for `tg-load-structured-data` with `schema_name` and `values`. Closing it waits until everything is stored.
#[utoipa::path(
    get, path = "/api/v1/flow/{flow}/import/{kind}", tag = "compatible", operation_id = "import",
    params(
        ("flow" = String, Path, description = "The name of a flow"),
        ("kind" = String, Path, description = "`triples` or `rows`; `entity-contexts` are read and left"),
        ("token" = Option<String>, Query, description = "Who is there"),
        ("workspace" = Option<String>, Query, description = "The workspace, else the caller's own"),
    ),
    responses(
        (status = 101, description = "The connection is a WebSocket now"),
        (status = 400, description = "This is no WebSocket handshake", body = ErrorBody),
        (status = 401, description = "No token, or one that nobody knows", body = ErrorBody),
        (status = 403, description = "From a page of another site, or the workspace is not the token's", body = ErrorBody),
        (status = 404, description = "Nothing of this kind is imported, or no such workspace", body = ErrorBody),
        (status = 429, description = "Too many wrong tokens came from this address", body = ErrorBody),
        (status = 503, description = "Too many imports at once", body = ErrorBody),
    ),
)]
pub(crate) async fn upgrade(
    State(gateway): State<Arc<Gateway>>,
    Path((_flow, kind)): Path<(String, String)>,
    knocking: Result<Query<Knocking>, QueryRejection>,
    client: Option<Extension<Client>>,
    headers: HeaderMap,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ServiceError> {
    let Query(knocking) = knocking.map_err(|error| ServiceError::request(error.body_text()))?;
    let address = client.as_ref().map(|client| client.address);
    let token = if knocking.token.is_empty() { bearer::token(&headers) } else { &knocking.token };
    let identity = match gateway.capacity().knocks.knock(gateway.access(), address, token) {
        Knock::Known(identity) => identity,
        Knock::Unknown => return Err(ServiceError::new(Code::AuthRequired, "auth failure")),
        Knock::TooMany(seconds) => return Err(ServiceError::too_many_wrong_tokens(seconds)),
    };
    let inside = gateway.enter(&identity, &knocking.workspace).await?;
    let kind = match kind.as_str() {
        "triples" => Kind::Triples,
        "entity-contexts" => Kind::EntityContexts,
        "rows" => Kind::Rows,
        other => return Err(ServiceError::new(Code::NotFound, format!("`{other}` cannot be imported here"))),
    };
    let socket = socket.map_err(|error| ServiceError::request(error.body_text()))?;
    let full = "as many imports are under way as may be at once; try again in a moment";
    let permit = gateway.capacity().loads.begin(inside.workspace());
    let permit = permit.ok_or_else(|| ServiceError::gateway(full).retry_after(5))?;
    if let Some(client) = &client {
        client.guest.introduced();
    }
    let socket = socket.max_message_size(LARGEST_MESSAGE).max_frame_size(LARGEST_MESSAGE);
    Ok(socket
        .on_upgrade(move |socket| async move {
            // Held as long as the connection is.
            let _held = (permit, client);
            let mut importing =
                Importing { inside, kind, sources: BTreeSet::new(), left_out: 0, rows: RowsImport::default() };
            tokio::select! {
                () = importing.serve(socket) => {}
                () = gateway.closed() => {}
            }
        })
        .into_response())
}

/// A batch.
#[derive(Debug, Deserialize)]
struct Batch {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    triples: Vec<Quad>,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    id: String,
    #[serde(default)]
    collection: String,
}

struct Importing {
    inside: Inside,
    kind: Kind,
    sources: BTreeSet<(KnowledgePlace, String)>,
    left_out: usize,
    rows: RowsImport,
}

impl Importing {
    async fn serve(&mut self, mut socket: WebSocket) {
        loop {
            // What came is kept; the source stays unfinished.
            let Ok(Some(Ok(message))) = timeout(SILENT, socket.recv()).await else { return };
            let taken = match message {
                Message::Text(text) => self.take(text.as_bytes()).await,
                Message::Binary(bytes) => self.take(&bytes).await,
                Message::Ping(_) | Message::Pong(_) => Ok(()),
                Message::Close(_) => self.finish().await,
            };
            if let Err(error) = taken {
                tracing::warn!(error = %error.message, "an import was ended");
                let reason = error.message.chars().take(30).collect::<String>().into();
                let code = if error.code == Code::BadRequest { close_code::POLICY } else { close_code::ERROR };
                drop(socket.send(Message::Close(Some(CloseFrame { code, reason }))).await);
                return;
            }
        }
    }

    async fn take(&mut self, message: &[u8]) -> Result<(), ServiceError> {
        match self.kind {
            Kind::EntityContexts => return Ok(()),
            Kind::Rows => return self.rows.take(&self.inside, message).await,
            Kind::Triples => {}
        }
        let wrong = |error: serde_json::Error| ServiceError::request(format!("not a batch of triples: {error}"));
        let mut batch: Batch = serde_json::from_slice(message).map_err(wrong)?;
        let collection = match batch.metadata.collection.as_str() {
            "" => Collection::default(),
            name => Collection::new(name).map_err(|error| ServiceError::request(error.to_string()))?,
        };
        let source = if batch.metadata.id.is_empty() { "an import".to_owned() } else { batch.metadata.id };
        let place = KnowledgePlace { workspace: self.inside.workspace().clone(), collection };
        batch.triples.retain(|quad| match check_loaded(quad) {
            Ok(()) => true,
            Err(why) => {
                self.left_out += 1;
                tracing::warn!(why, collection = %place.collection, source, "a triple was left out");
                false
            }
        });
        self.inside.knowledge().add(&place, &source, batch.triples).await?;
        let known = (place, source);
        if !self.sources.contains(&known) {
            let (place, source) = &known;
            let by = self.inside.caller(Surface::TrustgraphSocket);
            self.inside.knowledge().note_loader(place, source, &by).await?;
            self.sources.insert(known);
        }
        if self.sources.len() > MOST_SOURCES { self.finish().await } else { Ok(()) }
    }

    /// Everything that came is on disk.
    async fn finish(&mut self) -> Result<(), ServiceError> {
        self.rows.finish(&self.inside).await?;
        for (place, source) in std::mem::take(&mut self.sources) {
            self.inside
                .knowledge()
                .finish(&place, &source)
                .await
                .map_err(|error: KnowledgeError| ServiceError::gateway(error.to_string()))?;
        }
        Ok(())
    }
}
