//! Sessions per second over PostgreSQL alone, and what a second process adds when models are what is waited for.

use crate::machine::cpu;
use crate::setup::{ask, follow, seeds};
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use trellis_domain::{Caller, Surface, Workspace};
use trellis_models::{ModelReply, ModelRequest, OnPiece, Provider, ProviderError, Rehearsal, TemplatePrompter};
use trellis_orchestrator::RunService;
use trellis_orchestrator::hub::Hub;
use trellis_orchestrator::orchestrator::{Options, Orchestrator, Ports};
use trellis_orchestrator::permits::CallCapacity;
use trellis_orchestrator::ports::{BoxFuture, Config, RealWorld, World};
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};
use trellis_postgres::{Database, DatabaseSettings, PostgresConfig, PostgresJournal, PostgresQueue, PostgresStream};
use trellis_servers::Postgres;
use trellis_tools::Tools;

const AT_ONCE: usize = 64;
const SESSIONS: usize = 3_000;
const MODEL: Duration = Duration::from_millis(500);
const CALLS_AT_ONCE: usize = 16;

/// The rehearsal, with time that each call takes and room for so many calls.
#[derive(Debug)]
struct Slowed {
    model: Rehearsal,
    delay: Duration,
    capacity: Option<Arc<CallCapacity>>,
}

impl Provider for Slowed {
    fn name(&self) -> String {
        self.model.name()
    }

    fn reads_variables(&self) -> bool {
        true
    }

    fn capacity(&self) -> Option<&Arc<CallCapacity>> {
        self.capacity.as_ref()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        on_piece: &'a mut OnPiece<'_>,
    ) -> BoxFuture<'a, Result<ModelReply, ProviderError>> {
        Box::pin(async move {
            if self.delay > Duration::ZERO {
                tokio::time::sleep(self.delay).await;
            }
            self.model.complete(request, on_piece).await
        })
    }
}

/// What one process of a cluster has.
struct Process {
    runs: RunService,
    stop: watch::Sender<Option<Stop>>,
    serving: JoinHandle<()>,
}

impl Process {
    async fn start(server: &Postgres, schema: &str, model: Slowed) -> Result<Self> {
        let world: Arc<dyn World> = Arc::new(RealWorld);
        let settings = DatabaseSettings { schema: schema.to_owned(), ..DatabaseSettings::of(&server.address()) };
        let database = Database::open(settings).await?;
        let journal = Arc::new(PostgresJournal::new(database.clone(), &*world));
        let config = Arc::new(PostgresConfig::new(&journal, Arc::clone(&world)));
        let by = Caller::new(None, Surface::CommandLine);
        config.put(&Workspace::default(), seeds()?, by).await?;
        let prompter = Arc::new(TemplatePrompter::new(Arc::new(model), Arc::clone(&world)));
        let ports = Ports {
            journal,
            queue: Arc::new(PostgresQueue::new(&database)),
            config,
            tools: Arc::new(Tools::new(Arc::clone(&prompter) as _)),
            prompter,
            hub: Arc::new(Hub::shared(Arc::new(PostgresStream::open(&database).await?), Arc::clone(&world))),
            world,
        };
        let orchestrator = Arc::new(Orchestrator::new(ports, Options::default()));
        let (stop, stopped) = watch::channel(None);
        let workers = Workers::new(Arc::clone(&orchestrator), WorkerOptions::default());
        let serving = tokio::spawn(async move { workers.run(stopped).await });
        Ok(Self { runs: RunService::new(&orchestrator), stop, serving })
    }

    async fn stop(self) -> Result<()> {
        self.stop.send_replace(Some(Stop::Drain));
        Ok(self.serving.await?)
    }
}

/// Asks all processes by turns, and waits for every answer.
async fn ask_all(processes: &[Process], sessions: usize) -> Result<Duration> {
    let (next, begun) = (Arc::new(AtomicUsize::new(0)), Instant::now());
    let callers: Vec<_> = (0..AT_ONCE)
        .map(|caller| {
            let (runs, next) = (processes[caller % processes.len()].runs.clone(), Arc::clone(&next));
            tokio::spawn(async move {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= sessions {
                        return anyhow::Ok(());
                    }
                    let run = ask(&runs, n).await?;
                    follow(&runs, &run).await?;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok(begun.elapsed())
}

/// The database is the state, the queue and the stream.
pub(crate) async fn postgres() -> Result<()> {
    let server = Postgres::start();
    let instant = Slowed { model: Rehearsal::instant(), delay: Duration::ZERO, capacity: None };
    let processes = [Process::start(&server, "sessions", instant).await?];
    let before = cpu();
    let wall = ask_all(&processes, SESSIONS).await?;
    let used = cpu().saturating_sub(before);
    println!(
        "postgresql    {:.0} ReAct sessions per second at {AT_ONCE} concurrent (target 300), one process and the server on \
         this machine; {:.2} ms CPU per session without the server's",
        SESSIONS as f64 / wall.as_secs_f64(),
        used.as_secs_f64() * 1000.0 / SESSIONS as f64,
    );
    let [process] = processes;
    process.stop().await
}

/// A slow model that takes so many calls of each process.
pub(crate) async fn second_process() -> Result<()> {
    const PER_PROCESS: usize = 60;
    let mut rates = Vec::new();
    for count in [1, 2] {
        let server = Postgres::start();
        let mut processes = Vec::new();
        for _ in 0..count {
            let capacity = Some(CallCapacity::new(CALLS_AT_ONCE));
            let slow = Slowed { model: Rehearsal::instant(), delay: MODEL, capacity };
            processes.push(Process::start(&server, "workers", slow).await?);
        }
        let sessions = PER_PROCESS * count;
        rates.push(sessions as f64 / ask_all(&processes, sessions).await?.as_secs_f64());
        for process in processes {
            process.stop().await?;
        }
    }
    println!(
        "workers       {:.2} and {:.2} ReAct sessions per second with one and two processes, {CALLS_AT_ONCE} calls of 500 ms at a \
         time in each: {:.2} times (target 1.7)",
        rates[0],
        rates[1],
        rates[1] / rates[0],
    );
    Ok(())
}
