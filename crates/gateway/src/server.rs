//! The listening socket, the routes and who may use them.

use crate::rest::Denied;
use crate::runs::{self, Fault};
use crate::{Gateway, bounds, configuration, docs, documents, health, rest, socket, sparql};
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use axum::{Extension, Router};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tower_http::catch_panic::CatchPanicLayer;

/// All routes.
pub fn router(gateway: Arc<Gateway>) -> Router {
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
        .layer(DefaultBodyLimit::max(bounds::BODY))
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
    if [runs::ROOT, configuration::ROOT, sparql::ROOT].iter().any(|root| request.uri().path().starts_with(root)) {
        return Fault::forbidden().into_response();
    }
    Denied::new(StatusCode::FORBIDDEN, "access denied").into_response()
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

/// Held by each socket as long as it is open.
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
        let until = Arc::clone(&gateway);
        // Text that is written now is to be read now.
        let listener = self.listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection gathers what it sends");
            }
        });
        let (open, mut all_closed) = mpsc::channel(1);
        let router = router(gateway).layer(Extension(Open(open)));
        axum::serve(listener, router).with_graceful_shutdown(async move { until.closed().await }).await?;
        // Sockets are connections no more as far as HTTP knows. Each holds on to the channel until it has closed.
        all_closed.recv().await;
        Ok(())
    }
}
