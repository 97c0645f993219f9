//! A server for one test, and clients to talk to it.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use trellis_domain::record::Record;
use trellis_domain::run::RunSummary;
use trellis_domain::{Caller, Workspace};
use trellis_gateway::{Access, Calls, Founder, Gateway, ParquetReader, Phase, RunText, Server, Wiring, router};
use trellis_orchestrator::contract::play;
use trellis_orchestrator::contract::runs::{Bench, StorePorts};
use trellis_orchestrator::graph_rag::GraphRag;
use trellis_orchestrator::memory::scripted::ScriptedPrompter;
use trellis_orchestrator::memory::{
    EmptyLog, MemoryConfig, MemoryGraph, MemoryJournal, MemoryKnowledge, MemoryLibrary, MemoryTables,
};
use trellis_orchestrator::meter::{Metered, TokenMeter};
use trellis_orchestrator::orchestrator::{Options, Orchestrator, Ports};
use trellis_orchestrator::ports::{BoxFuture, Config, ConfigError, Graph, Log, Prompter, RealWorld};
use trellis_orchestrator::status::Nobody;
use trellis_orchestrator::tables::TableLoader;
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};

/// How a server is set up; the usual one lets everybody in, and its model plays what the question says.
pub(crate) struct Setup {
    pub(crate) store: StorePorts,
    pub(crate) model: Arc<dyn Prompter>,
    pub(crate) options: Options,
    pub(crate) access: Access,
    /// Says what a test wants it to say instead of what the store holds.
    pub(crate) graph: Option<Arc<dyn Graph>>,
    pub(crate) graph_rag: Option<GraphRag>,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) parquet: Option<ParquetReader>,
    /// Without workers, questions wait.
    pub(crate) at_work: bool,
    /// Goes on taking connections while it is about to stop.
    pub(crate) lingers: bool,
}

pub(crate) fn memory() -> StorePorts {
    (Arc::new(MemoryJournal::default()), Arc::new(MemoryConfig::new(Arc::new(RealWorld))))
}

impl Default for Setup {
    fn default() -> Self {
        let mut model = ScriptedPrompter::new(play::reply);
        model.piece = 3;
        let (options, access) = (Options::default(), Access::Open);
        Self {
            store: memory(),
            model: Arc::new(model),
            options,
            access,
            graph: None,
            graph_rag: None,
            log: Arc::new(EmptyLog),
            parquet: None,
            at_work: true,
            lingers: false,
        }
    }
}

pub(crate) struct House {
    pub(crate) bench: Bench,
    pub(crate) address: String,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) close: watch::Sender<Phase>,
    stop: watch::Sender<Option<Stop>>,
    tasks: Vec<JoinHandle<()>>,
}

/// Nothing is put into a new workspace but the fact that it exists.
#[derive(Debug)]
struct Bare(Arc<dyn Config>);

impl Founder for Bare {
    fn found<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<(), ConfigError>> {
        Box::pin(async move { self.0.put(workspace, Vec::new(), Caller::program()).await.map(drop) })
    }
}

/// Only how much there is to tell.
#[derive(Debug)]
struct Counted;

impl RunText for Counted {
    fn of(&self, run: &RunSummary, records: &[Arc<Record>], full: bool) -> String {
        format!("{} records of run {}, {}", records.len(), run.run, if full { "whole" } else { "cut" })
    }
}

impl House {
    pub(crate) async fn open() -> Self {
        Self::with(Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        let (journal, config) = setup.store.clone();
        let bench = Bench::play(setup.store).await;
        let meter = Arc::new(TokenMeter::default());
        let model = Arc::new(Metered::new(setup.model, Arc::clone(&meter)));
        let ports = Ports { prompter: model, ..bench.orchestrator.ports.clone() };
        let bench = Bench { orchestrator: Arc::new(Orchestrator::new(ports, setup.options)), ..bench };
        let (close, phase) = watch::channel(Phase::Serving);
        let knowledge = Arc::new(MemoryKnowledge::default());
        let ports = bench.orchestrator.ports.clone();
        let gateway = Arc::new(Gateway::new(Wiring {
            runs: bench.runs(),
            config: ports.config,
            prompter: ports.prompter,
            tools: ports.tools,
            world: ports.world,
            meter,
            limits: bench.orchestrator.options.limits.clone(),
            graph: setup
                .graph
                .unwrap_or_else(|| Arc::new(MemoryGraph::with_knowledge(Arc::clone(&journal), Arc::clone(&knowledge)))),
            knowledge: Arc::clone(&knowledge) as _,
            graph_rag: setup.graph_rag,
            tables: TableLoader::new(Arc::new(MemoryTables::default()), None),
            parquet: setup.parquet,
            log: setup.log,
            presence: Arc::new(Nobody),
            run_text: Arc::new(Counted),
            library: Arc::new(MemoryLibrary::new(journal, Arc::new(RealWorld))),
            documents: None,
            access: setup.access,
            founder: Arc::new(Bare(config)),
            loopback_only: true,
            phase,
            calls: Calls::default(),
        }));
        let own = Arc::clone(&gateway);
        let (address, served) = if setup.lingers {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            (address, tokio::spawn(async move { axum::serve(listener, router(gateway)).await.unwrap() }))
        } else {
            let server = Server::bind("127.0.0.1:0").await.unwrap();
            (server.address(), tokio::spawn(async move { server.serve(gateway).await.unwrap() }))
        };
        let mut tasks = vec![served];
        let (stop, stopped) = watch::channel(None);
        if setup.at_work {
            let workers = Workers::new(Arc::clone(&bench.orchestrator), WorkerOptions::default());
            tasks.push(tokio::spawn(async move { workers.run(stopped).await }));
        }
        Self { bench, address: address.to_string(), gateway: own, close, stop, tasks }
    }

    /// Stops as a server does, and waits for it. Work in hand is let go.
    pub(crate) async fn shut(self) {
        self.close.send_replace(Phase::Closed);
        self.stop.send_replace(Some(Stop::Abandon));
        for task in self.tasks {
            task.await.unwrap();
        }
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
        let mut reply = Vec::new();
        drop(self.request(method, path, headers, body).await.read_to_end(&mut reply).await);
        reply
    }

    /// A connection whose request is sent and whose reply is to be read.
    pub(crate) async fn request(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let (host, length) = (&self.address, body.len());
        let host = if headers.to_lowercase().contains("host:") { String::new() } else { format!("Host: {host}\r\n") };
        let head =
            format!("{method} {path} HTTP/1.1\r\n{host}Content-Length: {length}\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server may answer before it has read everything.
        drop(stream.write_all(body).await);
        stream
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
