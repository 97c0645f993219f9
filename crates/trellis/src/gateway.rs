//! The gateway over an open data folder: for a server, and for a client that starts this program.

use crate::app::App;
use crate::seeds;
use crate::show::run_text::PlainRunText;
use std::sync::Arc;
use tokio::sync::watch;
use trellis_domain::Workspace;
use trellis_gateway::{Access, Calls, Founder, Gateway, Phase, Wiring};
use trellis_orchestrator::documents::Loader;
use trellis_orchestrator::ports::{BoxFuture, Config, ConfigError};
use trellis_orchestrator::tables::TableLoader;
use trellis_orchestrator::{Orchestrator, RunService};

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
        library: Arc::clone(&app.store.library) as _,
        documents: Some(documents),
        graph: Arc::clone(&app.store.graph) as _,
        knowledge: Arc::clone(&app.knowledge),
        tables,
        graph_rag: Some(app.graph_rag(&orchestrator.ports.prompter)),
        log: Arc::clone(&app.store.log) as _,
        run_text: Arc::new(PlainRunText),
        access: entrance.access,
        founder: Arc::new(Seeds(Arc::clone(&app.store.config) as _)),
        loopback_only: entrance.loopback_only,
        phase,
        calls: Calls::default(),
    }))
}

/// New workspaces start with our seeds.
#[derive(Debug)]
struct Seeds(Arc<dyn Config>);

impl Founder for Seeds {
    fn found<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<(), ConfigError>> {
        Box::pin(async move { seeds::apply(&*self.0, workspace).await.map(drop) })
    }
}
