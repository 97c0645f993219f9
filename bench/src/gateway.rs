//! What the socket adds to a session, how soon text arrives where a thousand listen, and what idle listeners cost.
//!
//! The clients are a process of their own, so that the server's figures are the server's.

use crate::machine::{cpu, memory};
use crate::setup::{Engine, QUESTION, ask, follow, seeds};
use anyhow::{Context, Result, bail, ensure};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use trellis_domain::Workspace;
use trellis_domain::parts::Piece;
use trellis_domain::record::Record;
use trellis_domain::run::RunSummary;
use trellis_gateway::{Access, Calls, Founder, Gateway, Phase, RunText, Server, Wiring};
use trellis_models::{ModelReply, ModelRequest, OnPiece, Provider, ProviderError, Rehearsal};
use trellis_orchestrator::ports::{BoxFuture, ConfigError};
use trellis_orchestrator::tables::TableLoader;

const SESSIONS: usize = 6000;
/// How often the two ways take turns.
const ROUNDS: usize = 6;
const AT_ONCE: usize = 64;
const STREAMS: usize = 1000;
const IDLE: usize = 10_000;
/// Pieces of a streamed answer, and the pause before each.
const PIECES: usize = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// The same sessions without and with a socket in between.
pub(crate) async fn sockets() -> Result<()> {
    let engine = Engine::new(Arc::new(Rehearsal::instant()), seeds()?).await?;
    let (_stop, _workers) = engine.serve(1024);
    let next = Arc::new(AtomicUsize::new(0));
    let inside = async |sessions: usize, offset: usize| -> Result<Duration> {
        let before = cpu();
        next.store(0, Ordering::Relaxed);
        let callers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let (runs, next) = (engine.runs.clone(), Arc::clone(&next));
                tokio::spawn(async move {
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        if n >= sessions {
                            return anyhow::Ok(());
                        }
                        let run = ask(&runs, n + offset).await?;
                        follow(&runs, &run).await?;
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.await??;
        }
        Ok(cpu().saturating_sub(before))
    };
    let (address, _close) = open(&engine).await?;
    // Turn by turn, so that neither profits from what the other has warmed up or filled.
    let (mut without, mut with, mut wall) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for round in 0..ROUNDS {
        without += inside(SESSIONS / ROUNDS, round * SESSIONS).await?;
        let (before, started) = (cpu(), Instant::now());
        client(&["ask", &address, &(SESSIONS / ROUNDS).to_string(), &AT_ONCE.to_string()]).await?;
        with += cpu().saturating_sub(before);
        wall += started.elapsed();
    }
    let each = |used: Duration| used.as_secs_f64() * 1000.0 / SESSIONS as f64;
    println!(
        "sockets       {:.2} ms CPU per session over WebSocket against {:.2} in process: {:.2} ms more (target at most 1)",
        each(with),
        each(without),
        each(with) - each(without),
    );
    println!("              {:.0} sessions per second at {AT_ONCE} sockets", SESSIONS as f64 / wall.as_secs_f64());
    Ok(())
}

/// A thousand answers at once, a piece of each every 50 ms.
pub(crate) async fn streams() -> Result<()> {
    let engine = Engine::new(Arc::new(Ticking), seeds()?).await?;
    let (_stop, _workers) = engine.serve(2 * STREAMS);
    let (address, _close) = open(&engine).await?;
    let before = cpu();
    let told = client(&["stream", &address, &STREAMS.to_string()]).await?;
    let used = cpu().saturating_sub(before);
    let figure = |name: &str| told[name].as_f64().unwrap_or(f64::NAN);
    ensure!(told["pieces"] == STREAMS * PIECES, "not every piece arrived: {told}");
    println!(
        "streams       {STREAMS} at once, {} pieces, all delivered; added latency p50 {:.1} ms, p99 {:.1} ms (target 50), worst {:.0} ms",
        STREAMS * PIECES,
        figure("p50"),
        figure("p99"),
        figure("worst"),
    );
    println!(
        "              memory {} MB at most (target 300), {:.0} µs CPU per piece",
        memory().1,
        used.as_secs_f64() * 1e6 / (STREAMS * PIECES) as f64,
    );
    Ok(())
}

/// Connections that say nothing, and a session beside them.
pub(crate) async fn idle() -> Result<()> {
    let engine = Engine::new(Arc::new(Rehearsal::instant()), seeds()?).await?;
    let (_stop, _workers) = engine.serve(64);
    let (address, _close) = open(&engine).await?;
    let before = memory().0;
    let told = client(&["idle", &address, &IDLE.to_string()]).await?;
    let after = memory().1;
    println!(
        "idle          {} sockets open: {} MB more, a session beside them took {:.0} ms",
        told["open"],
        after.saturating_sub(before),
        told["ms"].as_f64().unwrap_or(f64::NAN),
    );
    Ok(())
}

async fn open(engine: &Engine) -> Result<(String, watch::Sender<Phase>)> {
    let server = Server::bind("127.0.0.1:0").await?;
    let address = server.address().to_string();
    let (close, phase) = watch::channel(Phase::Serving);
    let ports = engine.orchestrator.ports.clone();
    let gateway = Gateway::new(Wiring {
        runs: engine.runs.clone(),
        config: ports.config,
        prompter: ports.prompter,
        tools: ports.tools,
        world: ports.world,
        meter: Arc::default(),
        limits: engine.orchestrator.options.limits.clone(),
        library: Arc::clone(&engine.store.library) as _,
        documents: None,
        graph: Arc::clone(&engine.store.graph) as _,
        knowledge: Arc::clone(&engine.store.knowledge) as _,
        graph_rag: None,
        tables: TableLoader::new(Arc::clone(&engine.store.tables) as _, None),
        parquet: None,
        log: Arc::clone(&engine.store.log) as _,
        presence: Arc::new(trellis_orchestrator::status::Nobody),
        run_text: Arc::new(Nobody),
        access: Access::Open,
        founder: Arc::new(Nobody),
        loopback_only: true,
        phase,
        calls: Calls::default(),
    });
    tokio::spawn(server.serve(Arc::new(gateway)));
    Ok((address, close))
}

#[derive(Debug)]
struct Nobody;

impl RunText for Nobody {
    fn of(&self, _run: &RunSummary, _records: &[Arc<Record>], _full: bool) -> String {
        String::new()
    }
}

impl Founder for Nobody {
    fn found<'a>(&'a self, _workspace: &'a Workspace) -> BoxFuture<'a, Result<(), ConfigError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// A model that writes the time, again and again.
#[derive(Debug)]
struct Ticking;

impl Provider for Ticking {
    fn name(&self) -> String {
        "ticking".to_owned()
    }

    fn complete<'a>(
        &'a self,
        _request: &'a ModelRequest,
        on_piece: &'a mut OnPiece<'_>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        Box::pin(async move {
            let mut text = "Thought: it ticks\nFinal Answer: begin".to_owned();
            let mut stopped = on_piece(Piece::Text(&text)).is_break();
            for _ in 0..PIECES {
                if stopped {
                    break;
                }
                tokio::time::sleep(PAUSE).await;
                let piece = format!(" {}", micros());
                text.push_str(&piece);
                stopped = on_piece(Piece::Text(&piece)).is_break();
            }
            Ok(ModelReply { text, model: "ticking".to_owned(), ..ModelReply::default() })
        })
    }
}

fn micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// Runs this program as the clients of a server, and reads what it has found out.
async fn client(arguments: &[&str]) -> Result<Value> {
    let program = std::env::current_exe()?;
    let mut child = Command::new(program).arg("client").args(arguments).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("the client has an output")?).lines();
    let line = lines.next_line().await?.unwrap_or_default();
    let status = child.wait().await?;
    if !status.success() {
        bail!("the client failed: {status}");
    }
    Ok(serde_json::from_str(&line)?)
}

/// The other side of the measurements above.
pub(crate) async fn be_client(arguments: Vec<String>) -> Result<()> {
    let number = |place: usize| -> Result<usize> { Ok(arguments.get(place).context("a number")?.parse()?) };
    let address = arguments.get(1).context("an address")?.clone();
    let told = match arguments.first().map(String::as_str) {
        Some("ask") => ask_many(&address, number(2)?, number(3)?).await?,
        Some("stream") => stream_many(&address, number(2)?).await?,
        Some("idle") => idle_many(&address, number(2)?).await?,
        _ => bail!("this is for the benchmarks themselves"),
    };
    println!("{told}");
    Ok(())
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn connect(address: &str) -> Result<Socket> {
    let (mut socket, _) = connect_async(format!("ws://{address}/api/v1/socket")).await?;
    socket.send(Message::text(r#"{"type":"auth","token":""}"#)).await?;
    socket.next().await.context("an answer to who we are")??;
    Ok(socket)
}

/// Asks, and hands each frame to somebody until the dialog is over.
async fn dialog(socket: &mut Socket, mut each: impl FnMut(&str)) -> Result<()> {
    let request = json!({"question": QUESTION, "streaming": true, "pattern": "react"});
    let envelope = json!({"id": "1", "service": "agent", "flow": "default", "request": request});
    socket.send(Message::text(envelope.to_string())).await?;
    loop {
        let frame = socket.next().await.context("the connection ended")??;
        if let Message::Text(text) = frame {
            each(&text);
            if text.ends_with(r#""complete":true}"#) {
                ensure!(text.contains(r#""end_of_dialog":true"#) && !text.contains(r#""error""#), "{text}");
                return Ok(());
            }
        }
    }
}

async fn ask_many(address: &str, sessions: usize, at_once: usize) -> Result<Value> {
    let next = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> = (0..at_once)
        .map(|_| {
            let (address, next) = (address.to_owned(), Arc::clone(&next));
            tokio::spawn(async move {
                let mut socket = connect(&address).await?;
                while next.fetch_add(1, Ordering::Relaxed) < sessions {
                    dialog(&mut socket, |_| {}).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok(json!({}))
}

async fn stream_many(address: &str, streams: usize) -> Result<Value> {
    let mut sockets = Vec::with_capacity(streams);
    for _ in 0..streams {
        sockets.push(connect(address).await?);
    }
    let listeners: Vec<_> = sockets
        .into_iter()
        .map(|mut socket| {
            tokio::spawn(async move {
                let mut late = Vec::with_capacity(PIECES);
                dialog(&mut socket, |frame| {
                    let now = micros();
                    if let Some((_, rest)) = frame.split_once(r#""message_type":"answer","content":""#)
                        && let Some((content, _)) = rest.split_once('"')
                    {
                        let written = content.split(' ').filter_map(|word| word.parse::<u64>().ok());
                        late.extend(written.map(|written| now.saturating_sub(written)));
                    }
                })
                .await?;
                anyhow::Ok(late)
            })
        })
        .collect();
    let mut late = Vec::new();
    for listener in listeners {
        late.extend(listener.await??);
    }
    late.sort_unstable();
    let at = |share: usize| late.get(late.len() * share / 100).copied().unwrap_or_default() as f64 / 1000.0;
    let worst = late.last().copied().unwrap_or_default() as f64 / 1000.0;
    Ok(json!({"pieces": late.len(), "p50": at(50), "p99": at(99), "worst": worst}))
}

async fn idle_many(address: &str, sockets: usize) -> Result<Value> {
    let mut open = Vec::with_capacity(sockets);
    for _ in 0..sockets {
        open.push(connect(address).await?);
    }
    let started = Instant::now();
    dialog(&mut open[sockets / 2], |_| {}).await?;
    Ok(json!({"open": open.len(), "ms": started.elapsed().as_millis()}))
}
