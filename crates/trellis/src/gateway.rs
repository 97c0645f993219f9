//! The gateway over an open data folder: for a server, and for a client that starts this program.

use crate::app::{App, parquet_program};
use crate::seeds;
use crate::show::run_text::PlainRunText;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use trellis_domain::Workspace;
use trellis_gateway::{Access, Calls, Founder, Gateway, ParquetReader, Phase, Wiring};
use trellis_orchestrator::documents::Loader;
use trellis_orchestrator::ports::{BoxFuture, Config, ConfigError, Process};
use trellis_orchestrator::status::Alone;
use trellis_orchestrator::tables::TableLoader;
use trellis_orchestrator::{Orchestrator, RunService};

/// How long an upload of Parquet waits for its turn: shorter than clients wait without a sign.
const PARQUET_PATIENCE: Duration = Duration::from_secs(20);

/// Who may use a gateway, and from where.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) access: Access,
    /// Nobody but this machine can reach it: other names for it are a trick.
    pub(crate) loopback_only: bool,
}

/// A gateway to everything in the folder, until the phase says that it closes.
pub(crate) fn gateway(
    app: &App,
    orchestrator: &Arc<Orchestrator>,
    (documents, tables): (Loader, TableLoader),
    entrance: Entrance,
    phase: watch::Receiver<Phase>,
) -> Arc<Gateway> {
    Arc::new(Gateway::new(Wiring {
        runs: RunService::new(orchestrator),
        config: app.config(),
        prompter: Arc::clone(&orchestrator.ports.prompter),
        tools: Arc::clone(&orchestrator.ports.tools),
        world: Arc::clone(&app.world),
        meter: Arc::clone(&app.meter),
        limits: orchestrator.options.limits.clone(),
        library: Arc::clone(&app.store.library),
        documents: Some(documents),
        graph: Arc::clone(&app.store.material.graph),
        knowledge: Arc::clone(&app.knowledge),
        tables,
        parquet: parquet_reader(app),
        graph_rag: Some(app.graph_rag(&orchestrator.ports.prompter)),
        log: Arc::clone(&app.store.log),
        presence: app.store.presence().unwrap_or_else(|| Arc::new(Alone::new(orchestrator, itself(app)))),
        run_text: Arc::new(PlainRunText),
        access: entrance.access,
        founder: Arc::new(Seeds(Arc::clone(&app.store.config))),
        loopback_only: entrance.loopback_only,
        phase,
        calls: Calls::default(),
    }))
}

/// What reads Parquet files that are sent. They wait in the data folder; without one, among the temporary files.
fn parquet_reader(app: &App) -> Option<ParquetReader> {
    let place = app.store.folder().map_or_else(std::env::temp_dir, |folder| folder.path().to_owned());
    let program = parquet_program().ok()?;
    Some(ParquetReader { program, folder: place.join("uploads"), patience: PARQUET_PATIENCE })
}

/// This process, for people who look after it.
fn itself(app: &App) -> Process {
    Process { command: "serve".to_owned(), id: std::process::id().to_string(), since: app.world.now() }
}

/// New workspaces start with our seeds.
#[derive(Debug)]
struct Seeds(Arc<dyn Config>);

impl Founder for Seeds {
    fn found<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<(), ConfigError>> {
        Box::pin(async move { seeds::apply(&*self.0, workspace).await.map(drop) })
    }
}
