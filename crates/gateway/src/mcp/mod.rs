//! Trellis as tools of other agents, over the Model Context Protocol: at `/mcp`, and over a pair of streams for clients
//! that start the program themselves.
//!
//! The protocol is the official SDK's, in its mode without sessions: each request is served by itself, for the workspace
//! that its token reaches, and nothing is kept that a restart could lose. What goes on between requests is a run, which is
//! on record. So is what a task stands for: its id is that of a run.

mod arguments;
mod ask;
mod elicit;
mod error;
mod explain;
mod lines;
mod reply;
mod search;
mod server;
mod tasks;
mod tools;
mod words;

pub(crate) use error::McpRefusal;

use self::lines::BoundedLines;
use self::server::McpServer;
use crate::access::Identity;
use crate::api::{ApiError, Entered};
use crate::bounds;
use crate::error::{Code, ServiceError};
use crate::inside::Gateway;
use crate::json::check_values;
use crate::peer::{Peer, while_there};
use crate::request_memory::BodyPlace;
use crate::unread::Unread;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Extension, Router};
use futures_util::StreamExt;
use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// Where it is.
pub(crate) const ROOT: &str = "/mcp";
/// Silence that is broken by a comment, so that nobody takes the connection for dead.
const QUIET: Duration = Duration::from_secs(15);

pub(crate) fn routes() -> Router<Arc<Gateway>> {
    Router::new().route(ROOT, any(over_http))
}

/// One message of a client, and the stream of what is said to it until it is answered.
async fn over_http(
    State(gateway): State<Arc<Gateway>>,
    entered: Result<Entered, ApiError>,
    place: Option<Extension<BodyPlace>>,
    peer: Option<Extension<Peer>>,
    request: Request,
) -> Result<Response, McpRefusal> {
    let inside = entered?.inside;
    let (mut parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, bounds::BODY).await.map_err(|error| ApiError::request(error.to_string()))?;
    check_values(&body)
        .map_err(|error| ServiceError::new(Code::TooLarge, format!("the message is too large: {error}")))?;
    name_task(&mut parts.headers, &body);
    let unread = gateway.capacity().unread.clone();
    let server = McpServer::over_http(gateway, inside, place.map(|Extension(place)| place));
    // Which hosts and origins a request may come from is one rule for all paths.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_sse_keep_alive(Some(QUIET))
        .with_max_request_body_bytes(bounds::BODY)
        .disable_allowed_hosts();
    let service =
        StreamableHttpService::new(move || Ok(server.clone()), Arc::new(NeverSessionManager::default()), config);
    let handled = service.handle(Request::from_parts(parts, Body::from(body)));
    // Whoever has left waits for nothing any more. A run that was begun goes on.
    let Some(response) = while_there(peer.as_deref(), handled).await else {
        return Err(ServiceError::gateway("the caller has left").into());
    };
    let left = async move {
        match peer {
            Some(Extension(peer)) => peer.left().await,
            None => std::future::pending().await,
        }
    };
    Ok(response.map(|body| Body::from_stream(held(Body::new(body), unread).take_until(left))).into_response())
}

/// A message that only asks which task it is about.
#[derive(Deserialize)]
struct AboutTask {
    params: NamedTask,
}

#[derive(Deserialize)]
struct NamedTask {
    #[serde(rename = "taskId")]
    id: String,
}

/// The id of a task is to stand in a header as well, for whatever routes by it. `FastMCP` leaves it out: what counts is in the
/// message.
fn name_task(headers: &mut HeaderMap, body: &[u8]) {
    const NAME: HeaderName = HeaderName::from_static("mcp-name");
    let is_about_task = headers.get("mcp-method").is_some_and(|method| method.as_bytes().starts_with(b"tasks/"));
    if !is_about_task || headers.contains_key(NAME) {
        return;
    }
    let task = serde_json::from_slice::<AboutTask>(body).ok();
    if let Some(id) = task.and_then(|task| HeaderValue::from_str(&task.params.id).ok()) {
        headers.insert(NAME, id);
    }
}

/// A reply that takes its room piece by piece, until it is read.
fn held(body: Body, unread: Unread) -> impl futures_util::Stream<Item = Result<Bytes, axum::Error>> + Send {
    body.into_data_stream().then(move |piece| {
        let unread = unread.clone();
        async move {
            match piece {
                Ok(bytes) if bytes.len() > bounds::SMALL => {
                    let room = unread.take(bytes.len()).await;
                    Ok(Unread::hold(bytes, room))
                }
                small_or_broken => small_or_broken,
            }
        }
    })
}

/// Why a client that started the program is not served any more.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    #[error("the workspace cannot be used: {0}")]
    Workspace(String),
    #[error("the client did not begin as the protocol asks: {0}")]
    Beginning(String),
    #[error("{0}")]
    BrokeOff(String),
}

/// Serves one client over a pair of streams, until it closes them or the gateway closes.
pub async fn serve_streams(
    gateway: Arc<Gateway>,
    identity: &Identity,
    workspace: &str,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), McpError> {
    let inside = gateway.enter(identity, workspace).await;
    let inside = inside.map_err(|error| McpError::Workspace(ApiError::from(error).into_parts().2))?;
    let server = McpServer::over_streams(Arc::clone(&gateway), inside);
    let (input, cut) = BoundedLines::new(input, bounds::BODY);
    let transport = AsyncRwTransport::new(input, output).with_max_line_length(usize::MAX);
    let running = tokio::select! {
        running = server.serve(transport) => running,
        () = gateway.closed() => return Ok(()),
    };
    let running = match running {
        Ok(running) => running,
        // A client that leaves before it has said anything has done nothing wrong.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) if !cut.happened() => return Ok(()),
        Err(error) => return Err(McpError::Beginning(error.to_string())),
    };
    let leave = running.cancellation_token();
    let mut waiting = std::pin::pin!(running.waiting());
    let ended = tokio::select! {
        ended = &mut waiting => ended,
        () = gateway.closed() => {
            leave.cancel();
            waiting.await
        }
    };
    if cut.happened() {
        let longest = bounds::BODY >> 20;
        return Err(McpError::BrokeOff(format!("the client sent a message of more than {longest} MiB in one line")));
    }
    ended.map(drop).map_err(|error| McpError::BrokeOff(format!("speaking with the client broke off: {error}")))
}
