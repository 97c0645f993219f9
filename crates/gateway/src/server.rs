//! The listening socket, the routes and who may use them.

use crate::api;
use crate::api::takes_upload;
use crate::bearer;
use crate::bounds;
use crate::capacity::Turn;
use crate::docs;
use crate::documents;
use crate::error::{Code, ServiceError};
use crate::figures;
use crate::guests::Client;
use crate::health;
use crate::import;
use crate::inside::Gateway;
use crate::knocks::Knock;
use crate::line::Line;
use crate::mcp::{self, McpRefusal};
use crate::openai::{self, OpenAiError};
use crate::page;
use crate::peer::Connection;
use crate::request_memory::BodyPlace;
use crate::rest;
use crate::socket;
use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, Method, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, InvalidInput};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tower::ServiceExt;
use tower_http::catch_panic::CatchPanicLayer;

/// All routes.
pub fn router(gateway: Arc<Gateway>) -> Router {
    Router::new()
        .route("/api/v1/socket", get(socket::upgrade))
        .route("/api/v1/document-stream", get(documents::stream))
        .route("/api/v1/{kind}", post(rest::workspace_service))
        .route("/api/v1/flow/{flow}/service/{kind}", post(rest::flow_service))
        .route("/api/v1/flow/{flow}/import/{kind}", get(import::upgrade))
        .route("/api/v1/auth/{what}", post(rest::auth))
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/api/metrics", get(health::metrics))
        .route("/api/metrics/query", get(figures::query))
        .route("/ontology", get(docs::ontology))
        .route("/", get(page_or_reference))
        .route("/index.html", get(page_or_reference))
        .merge(openai::routes())
        .merge(mcp::routes())
        .merge(docs::routes())
        .fallback(page_or_nothing)
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            let reason = format!("{method} is not possible here; /api/docs says what is");
            error_at(uri.path(), ServiceError::new(Code::MethodNotAllowed, reason))
        })
        .layer(middleware::from_fn_with_state(Arc::clone(&gateway), held_replies))
        .layer(middleware::from_fn_with_state(Arc::clone(&gateway), whole_bodies))
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(Arc::clone(&gateway), known_callers))
        .layer(middleware::from_fn_with_state(Arc::clone(&gateway), same_site))
        .layer(CatchPanicLayer::new())
        .with_state(gateway)
}

/// A page of another site must not act for whoever looks at it: a browser says where a page comes from. Where no
/// token is asked for, a name that leads here by a foreign trick is refused too.
async fn same_site(State(gateway): State<Arc<Gateway>>, request: Request, next: Next) -> Response {
    if !is_foreign(&gateway, request.headers()) {
        return next.run(request).await;
    }
    error_at(request.uri().path(), ServiceError::new(Code::AccessDenied, "access denied"))
}

/// A person gets the page; a program is led to what says how it can go on.
async fn page_or_reference(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    page::response(&method, &uri, &headers).unwrap_or_else(|| Redirect::temporary("/api/docs").into_response())
}

/// What has no route: a file of the page, an address within it, or nothing.
async fn page_or_nothing(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let nothing = || error_at(uri.path(), ServiceError::new(Code::NotFound, NOTHING_HERE));
    page::response(&method, &uri, &headers).unwrap_or_else(nothing)
}

const NOTHING_HERE: &str = "there is nothing at this address; /api/docs says what there is";

/// Bodies are received here, so that all of them together take no more than there is room for. Files that are loaded are
/// read as they come instead.
async fn whole_bodies(State(gateway): State<Arc<Gateway>>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() || takes_upload(request.uri().path()) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let announced = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    match gateway.capacity().memory.receive(body, announced).await {
        Ok((body, place)) => {
            let (mut request, place) = (Request::from_parts(parts, Body::from(body)), BodyPlace::new(place));
            request.extensions_mut().insert(place.clone());
            let response = next.run(request).await;
            place.give_back();
            response
        }
        Err(error) => error_at(parts.uri.path(), error),
    }
}

/// Bodies of unauthenticated requests are discarded. The answer is that of the path, in its own words.
async fn known_callers(State(gateway): State<Arc<Gateway>>, request: Request, next: Next) -> Response {
    let (client, token) = (request.extensions().get::<Client>(), bearer::token(request.headers()));
    match gateway.capacity().knocks.knock(gateway.access(), client.map(|client| client.address), token) {
        Knock::Known(_) => {
            if let Some(client) = client {
                client.guest.introduced();
            }
            next.run(request).await
        }
        Knock::Unknown => next.run(request.map(|_| Body::empty())).await,
        Knock::TooMany(seconds) => error_at(request.uri().path(), ServiceError::too_many_wrong_tokens(seconds)),
    }
}

/// Replies that are made whole wait here to be sent, so that all of them together take no more than there is room for.
async fn held_replies(State(gateway): State<Arc<Gateway>>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let turn = if may_be_large(&path) { Some(gateway.capacity().make().await) } else { None };
    if let Some(turn) = &turn {
        request.extensions_mut().insert(turn.clone());
    }
    let response = next.run(request).await;
    // Whoever has made a reply out of turn, because that took long, does not wait: many could.
    let placed = gateway.capacity().unread.place(response, turn.as_ref().is_some_and(Turn::is_held)).await;
    placed.unwrap_or_else(|| {
        let full = "the server holds as much as it can of replies that nobody reads; ask again in a moment";
        error_at(&path, ServiceError::gateway(full).retry_after(1))
    })
}

/// Whether a reply is made at once from what is stored, and may be large.
fn may_be_large(path: &str) -> bool {
    const SERVICES: [&str; 5] = ["librarian", "config", "flow", "collection-management", "iam"];
    let Some(rest) = path.strip_prefix("/api/v1/") else { return false };
    let (first, last) = (rest.split('/').next().unwrap_or_default(), rest.rsplit('/').next().unwrap_or_default());
    match first {
        "configuration" => true,
        // The list; what else is done with tools may take its time.
        "tools" => rest == first,
        "runs" => ["records", "trace", "graph"].contains(&last),
        "flow" if rest != first => last == "triples",
        service => SERVICES.contains(&service),
    }
}

fn is_foreign(gateway: &Gateway, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    let origin = text(header::ORIGIN).map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    origin.is_some_and(|origin| origin != host) || (gateway.is_loopback_only() && !is_loopback(host))
}

/// Whether a `Host` header names this machine to itself.
fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let address: Option<std::net::IpAddr> = name.parse().ok();
    name.is_empty() || name.eq_ignore_ascii_case("localhost") || address.is_some_and(|address| address.is_loopback())
}

/// A listening socket. It is bound before anything else is opened, so that the address is known.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    pub async fn bind(address: &str) -> std::io::Result<Self> {
        let mut failed = None;
        for address in tokio::net::lookup_host(address).await? {
            match listen(address) {
                Ok(listener) => return Ok(Self { address: listener.local_addr()?, listener }),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| std::io::Error::new(InvalidInput, "this is no address")))
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients on this machine reach it.
    pub fn url(&self) -> String {
        let (address, port) = (self.address.ip(), self.address.port());
        if address.is_unspecified() { format!("http://localhost:{port}/") } else { format!("http://{}/", self.address) }
    }

    /// Serves until the gateway closes and all replies are out.
    pub async fn serve(self, gateway: Arc<Gateway>) -> std::io::Result<()> {
        let (open, mut all_closed) = mpsc::channel(1);
        let routes = router(Arc::clone(&gateway));
        let mut http = http1::Builder::new();
        // Whoever has said everything may close that half of the connection and wait for the reply.
        http.half_close(true).timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(bounds::HEADERS);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = gateway.closed() => break,
            };
            let Some((stream, address)) = ready(accepted).await else { continue };
            let Some(guest) = gateway.capacity().guests.welcome() else {
                tracing::warn!(from = %address, "a connection was refused: there are too many");
                continue;
            };
            let client = Client::new(address, guest, open.clone());
            let stream = Connection::new(stream);
            let (routes, at_the_other_end, still_there) = (routes.clone(), client.clone(), stream.peer());
            let answer = service_fn(move |mut request: hyper::Request<Incoming>| {
                request.extensions_mut().insert(at_the_other_end.clone());
                request.extensions_mut().insert(still_there.clone());
                routes.clone().oneshot(request.map(Body::new))
            });
            let line = Line::new(stream, gateway.capacity().unread.clone());
            let connection = http.serve_connection(TokioIo::new(line), answer).with_upgrades();
            let gateway = Arc::clone(&gateway);
            tokio::spawn(async move {
                let mut connection = pin!(connection);
                let ended = tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = client.guest.has_to_leave() => return,
                    () = gateway.closed() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                };
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke");
                }
            });
        }
        drop((self.listener, routes, open));
        // Sockets are connections no more as far as HTTP knows: they hold on to the channel themselves.
        all_closed.recv().await;
        Ok(())
    }
}

/// How long a connection may be open without a request.
const IDLE: Duration = Duration::from_mins(1);
/// How long to wait for connections to close when there are too many.
const TOO_MANY: Duration = Duration::from_millis(200);

/// Listens with a bound on what the system keeps of what a peer does not read.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    const BACKLOG: u32 = 1024;
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // On Windows this would let others take the address away.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(bounds::SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn ready(accepted: std::io::Result<(TcpStream, SocketAddr)>) -> Option<(TcpStream, SocketAddr)> {
    let (stream, address) = match accepted {
        Ok(accepted) => accepted,
        // The peer was gone before it was welcomed.
        Err(error) if [ConnectionAborted, ConnectionReset, ConnectionRefused].contains(&error.kind()) => return None,
        Err(error) => {
            tracing::error!(%error, "cannot take a connection; are too many files open?");
            tokio::time::sleep(TOO_MANY).await;
            return None;
        }
    };
    // Text that is written now is to be read now.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection gathers what it sends");
    }
    Some((stream, address))
}

/// An error in the shape that the path has.
fn error_at(path: &str, error: ServiceError) -> Response {
    let is_openai = path.strip_prefix(openai::ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_openai {
        return OpenAiError::from(error).into_response();
    }
    if path == mcp::ROOT { McpRefusal::from(error).into_response() } else { api::error_at(path, error) }
}
