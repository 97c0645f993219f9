//! A server for one test, and clients to talk to it.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use trellis_domain::Workspace;
use trellis_gateway::{Access, Founder, Gateway, Server};
use trellis_orchestrator::contract::runs::Bench;
use trellis_orchestrator::memory::{MemoryConfig, MemoryGraph, MemoryJournal, MemoryLibrary};
use trellis_orchestrator::ports::{BoxFuture, ConfigError, Graph, RealWorld};
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};

pub(crate) struct House {
    pub(crate) bench: Bench,
    pub(crate) address: String,
    pub(crate) close: watch::Sender<bool>,
    _stop: watch::Sender<Option<Stop>>,
}

/// Nothing is put into a new workspace but the fact that it exists.
#[derive(Debug)]
struct Bare(Arc<MemoryConfig>);

impl Founder for Bare {
    fn found<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<(), ConfigError>> {
        use trellis_orchestrator::ports::Config;
        Box::pin(async move { self.0.put(workspace, Vec::new()).await.map(drop) })
    }
}

impl House {
    /// A server that lets everybody in, and whose model plays what the question says.
    pub(crate) async fn open() -> Self {
        Self::with(Access::Open).await
    }

    pub(crate) async fn with(access: Access) -> Self {
        Self::built(access, None).await
    }

    /// A server whose graph says what a test wants it to say.
    pub(crate) async fn with_graph(graph: Arc<dyn Graph>) -> Self {
        Self::built(Access::Open, Some(graph)).await
    }

    async fn built(access: Access, graph: Option<Arc<dyn Graph>>) -> Self {
        let world = Arc::new(RealWorld);
        let config = Arc::new(MemoryConfig::new(Arc::clone(&world) as _));
        let journal = Arc::new(MemoryJournal::default());
        let bench = Bench::play((Arc::clone(&journal) as _, Arc::clone(&config) as _)).await;
        let server = Server::bind("127.0.0.1:0").await.unwrap();
        let address = server.address().to_string();
        let (close, closing) = watch::channel(false);
        let gateway = Gateway {
            orchestrator: Arc::clone(&bench.orchestrator),
            graph: graph.unwrap_or_else(|| Arc::new(MemoryGraph::new(Arc::clone(&journal) as _))),
            library: Arc::new(MemoryLibrary::new(journal, world)),
            access,
            founder: Arc::new(Bare(config)),
            loopback_only: true,
            closing,
        };
        tokio::spawn(server.serve(Arc::new(gateway)));
        let (stop, stopped) = watch::channel(None);
        let workers = Workers::new(Arc::clone(&bench.orchestrator), WorkerOptions::default());
        tokio::spawn(async move { workers.run(stopped).await });
        Self { bench, address, close, _stop: stop }
    }

    /// A socket whose owner has said who it is.
    pub(crate) async fn socket(&self) -> Socket {
        let mut socket = Socket::connect(&self.address, &[]).await.unwrap();
        socket.send(json!({"type": "auth", "token": ""})).await;
        assert_eq!(socket.next().await, json!({"type": "auth-ok", "default_workspace": "default"}));
        socket
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.http("POST", path, "", body.to_string().as_bytes()).await
    }

    /// One request on a connection of its own. Headers end with a line break each.
    pub(crate) async fn http(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> (u16, Value) {
        let reply = self.raw(method, path, headers, body).await;
        let reply = String::from_utf8_lossy(&reply).into_owned();
        let status = reply.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = reply.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, serde_json::from_str(body).unwrap_or_else(|_| json!(body)))
    }

    /// The reply as it comes over the wire.
    pub(crate) async fn raw(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let (host, length) = (&self.address, body.len());
        let host = if headers.to_lowercase().contains("host:") { String::new() } else { format!("Host: {host}\r\n") };
        let head =
            format!("{method} {path} HTTP/1.1\r\n{host}Content-Length: {length}\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server may answer before it has read everything.
        drop(stream.write_all(body).await);
        let mut reply = Vec::new();
        drop(stream.read_to_end(&mut reply).await);
        reply
    }
}

pub(crate) struct Socket(pub(crate) WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Socket {
    /// The status of the refusal if there is no socket to be had.
    pub(crate) async fn connect(address: &str, headers: &[(&'static str, &str)]) -> Result<Self, String> {
        let mut request = format!("ws://{address}/api/v1/socket").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        connect_async(request).await.map(|(socket, _)| Self(socket)).map_err(|error| error.to_string())
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    /// The next JSON frame. The end of the connection is null.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return Value::Null,
            }
        }
    }

    /// All replies to a request, up to the complete one.
    pub(crate) async fn replies(&mut self) -> Vec<Value> {
        let mut replies = Vec::new();
        loop {
            let reply = self.next().await;
            assert!(!reply.is_null(), "the connection ended after {replies:?}");
            let complete = reply["complete"] == true;
            replies.push(reply);
            if complete {
                return replies;
            }
        }
    }

    /// A question to an agent, as the stock client asks it.
    pub(crate) async fn ask(&mut self, id: &str, scene: &Value, streaming: bool) {
        let request = json!({"question": scene.to_string(), "streaming": streaming});
        self.send(json!({"id": id, "workspace": "default", "service": "agent", "flow": "default", "request": request}))
            .await;
    }
}
