//! The real engine with the rehearsal model, as `trellis ask` wires it.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use trellis_domain::config::StoredItem;
use trellis_domain::limits::SomeLimits;
use trellis_domain::message::AgentRequest;
use trellis_domain::record::Name;
use trellis_domain::{Caller, RequestId, RunId, Scope, Surface, Workspace};
use trellis_models::{Provider, TemplatePrompter};
use trellis_orchestrator::RunService;
use trellis_orchestrator::accept::{Question, UnknownNames};
use trellis_orchestrator::hub::{Hub, Item};
use trellis_orchestrator::orchestrator::{Options, Orchestrator, Ports};
use trellis_orchestrator::ports::{Config, RealWorld, World};
use trellis_orchestrator::queue::FairQueue;
use trellis_orchestrator::workers::{Stop, WorkerOptions, Workers};
use trellis_store::{Holder, Store};
use trellis_tools::Tools;

/// The specification's question: three tool calls and an answer.
pub(crate) const QUESTION: &str = "Assess the risk profile of Company X as a potential partner";

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

pub(crate) struct Engine {
    pub(crate) store: Store,
    pub(crate) orchestrator: Arc<Orchestrator>,
    pub(crate) runs: RunService,
    /// Removed with the engine.
    folder: Option<TempDir>,
}

impl Engine {
    /// A new folder with these items.
    pub(crate) async fn new(provider: Arc<dyn Provider>, seeds: Vec<StoredItem>) -> Result<Self> {
        let folder = TempDir::new()?;
        let engine = Self::at(folder.path(), provider)?;
        engine.store.config.put(&Workspace::default(), seeds, Caller::new(None, Surface::CommandLine)).await?;
        Ok(Self { folder: Some(folder), ..engine })
    }

    /// An existing folder.
    pub(crate) fn at(folder: &Path, provider: Arc<dyn Provider>) -> Result<Self> {
        let world: Arc<dyn World> = Arc::new(RealWorld);
        let holder = Holder { pid: std::process::id(), command: "bench".to_owned(), url: None };
        let store = Store::open(folder, &holder, Arc::clone(&world))?;
        let prompter = Arc::new(TemplatePrompter::new(provider, Arc::clone(&world)));
        let ports = Ports {
            journal: Arc::clone(&store.journal) as _,
            queue: Arc::new(FairQueue::new(Arc::clone(&world))),
            config: Arc::clone(&store.config) as _,
            tools: Arc::new(Tools::new(Arc::clone(&prompter) as _)),
            prompter,
            hub: Arc::new(Hub::default()),
            world,
        };
        let mut options = Options { max_open_runs: 20_000, ..Options::default() };
        options.limits.usual.max_siblings = 1_000;
        options.limits.maximum.max_siblings = Some(1_000);
        options.limits.maximum.steps_at_once = Some(100);
        let orchestrator = Arc::new(Orchestrator::new(ports, options));
        Ok(Self { store, runs: RunService::new(&orchestrator), orchestrator, folder: None })
    }

    /// Starts the workers; the sender stops them.
    pub(crate) fn serve(&self, concurrency: usize) -> (watch::Sender<Option<Stop>>, JoinHandle<()>) {
        let (stop, stopped) = watch::channel(None);
        let options = WorkerOptions { concurrency, ..WorkerOptions::default() };
        let workers = Workers::new(Arc::clone(&self.orchestrator), options);
        (stop, tokio::spawn(async move { workers.run(stopped).await }))
    }

    pub(crate) fn disk_mb(&self) -> u64 {
        fn size(path: &std::path::Path) -> u64 {
            use std::os::unix::fs::MetadataExt;
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries
                .map(|entry| match entry.metadata() {
                    Ok(data) if data.is_dir() => size(&entry.path()),
                    Ok(data) => data.blocks() * 512,
                    Err(_) => 0,
                })
                .sum()
        }
        self.folder.as_ref().map_or(0, |folder| size(folder.path()) >> 20)
    }
}

pub(crate) async fn ask(runs: &RunService, n: usize) -> Result<RunId> {
    let question = Question {
        scope: Scope::default(),
        request_id: RequestId::new(&format!("bench-{n}"))?,
        request: AgentRequest {
            question: QUESTION.to_owned(),
            pattern: "react".to_owned(),
            streaming: true,
            ..AgentRequest::default()
        },
        limits: SomeLimits::default(),
        names: UnknownNames::Refuse,
        selection: trellis_domain::Selection::default(),
        by: None,
    };
    Ok(runs.accept(question).await?.run)
}

/// Reads a run's stream to its end, as a caller does.
pub(crate) async fn follow(runs: &RunService, run: &RunId) -> Result<()> {
    let mut subscription = runs.follow(&Workspace::default(), run, 0);
    loop {
        if let Item::Record(record) = subscription.next().await?
            && record.header.name == Name::end()
            && record.header.session == *run
        {
            return Ok(());
        }
    }
}

/// The `trellis` that was built beside this program.
pub(crate) fn program() -> Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("trellis");
    ensure!(program.exists(), "{} is missing; `cargo xtask bench` builds it", program.display());
    Ok(program)
}

/// The configuration that a new data folder starts with, as the program itself writes it.
pub(crate) fn seeds() -> Result<Vec<StoredItem>> {
    let folder = TempDir::new()?;
    let output =
        Command::new(program()?).args(["config", "list", "--output", "json", "--data"]).arg(folder.path()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed: Value = serde_json::from_slice(&output.stdout)?;
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let items = listed["items"].as_array().context("the list has items")?.iter();
    Ok(items
        .map(|item| StoredItem { kind: text(&item["type"]), key: text(&item["key"]), value: text(&item["value"]) })
        .collect())
}
