//! The listening socket, the routes and who may use them.

use crate::api::denied_at;
use crate::peer::Connection;
use crate::rest::Denied;
use crate::room::Room;
use crate::{Gateway, docs, documents, health, rest, socket};
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tower::ServiceExt;
use tower_http::catch_panic::CatchPanicLayer;

/// All routes.
pub fn router(gateway: Arc<Gateway>) -> Router {
    let room = Room::new();
    Router::new()
        .route("/api/v1/socket", get(socket::upgrade))
        .route("/api/v1/document-stream", get(documents::stream))
        .route("/api/v1/{kind}", post(rest::workspace_service))
        .route("/api/v1/flow/{flow}/service/{kind}", post(rest::flow_service))
        .route("/api/v1/auth/{what}", post(rest::auth))
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/api/metrics", get(health::metrics))
        .route("/ontology", get(docs::ontology))
        // Until there is a page, whoever comes by browser is shown what there is.
        .route("/", get(async || Redirect::temporary("/api/docs")))
        .merge(docs::routes())
        .fallback(async |uri: Uri| denied_at(uri.path(), Denied::new(StatusCode::NOT_FOUND, NOTHING_HERE)))
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            let reason = format!("{method} is not possible here; /api/docs says what is");
            denied_at(uri.path(), Denied::new(StatusCode::METHOD_NOT_ALLOWED, reason))
        })
        .layer(middleware::from_fn_with_state(room.clone(), whole_bodies))
        .layer(Extension(room))
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
    denied_at(request.uri().path(), Denied::new(StatusCode::FORBIDDEN, "access denied"))
}

const NOTHING_HERE: &str = "there is nothing at this address; /api/docs says what there is";

/// Bodies are received here, so that all of them together take no more than there is room for.
async fn whole_bodies(State(room): State<Room>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let announced = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    match room.receive(body, announced).await {
        Ok((body, place)) => {
            let response = next.run(Request::from_parts(parts, Body::from(body))).await;
            drop(place);
            response
        }
        Err(denied) => denied_at(parts.uri.path(), denied),
    }
}

/// What somebody unknown sends is not read. The answer is that of the path, in its own words.
async fn known_callers(State(gateway): State<Arc<Gateway>>, request: Request, next: Next) -> Response {
    let is_known = rest::identify(&gateway, request.headers()).is_ok();
    next.run(if is_known { request } else { request.map(|_| Body::empty()) }).await
}

fn is_foreign(gateway: &Gateway, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    let origin = text(header::ORIGIN).map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    origin.is_some_and(|origin| origin != host) || (gateway.loopback_only && !is_loopback(host))
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

/// Held by each connection as long as it is open.
#[derive(Debug, Clone)]
pub(crate) struct Open(#[expect(dead_code, reason = "it only has to be there")] mpsc::Sender<Infallible>);

/// A listening socket. It is bound before anything else is opened, so that the address is known.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    pub async fn bind(address: &str) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
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
        let open = Open(open);
        let routes = router(Arc::clone(&gateway)).layer(Extension(open.clone()));
        let mut http = http1::Builder::new();
        // Whoever has said everything may close that half of the connection and wait for the reply.
        http.half_close(true).timer(TokioTimer::new()).header_read_timeout(IDLE);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = gateway.closed() => break,
            };
            let Some(stream) = ready(accepted).await else { continue };
            let routes = routes.clone();
            let stream = Connection::new(stream);
            let peer = stream.peer();
            let answer = service_fn(move |mut request: hyper::Request<Incoming>| {
                request.extensions_mut().insert(peer.clone());
                routes.clone().oneshot(request.map(Body::new))
            });
            let connection = http.serve_connection(TokioIo::new(stream), answer).with_upgrades();
            let (gateway, open) = (Arc::clone(&gateway), open.clone());
            tokio::spawn(async move {
                let mut connection = pin!(connection);
                let ended = tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = gateway.closed() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                };
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke");
                }
                drop(open);
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

async fn ready(accepted: std::io::Result<(TcpStream, SocketAddr)>) -> Option<TcpStream> {
    let stream = match accepted {
        Ok((stream, _)) => stream,
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
    Some(stream)
}
