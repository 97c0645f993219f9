//! The agent orchestrator of a TrustGraph deployment: its queues, its configuration, its services, our journal.

use crate::app::App;
use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::limits;
use crate::orchestrator_flags::OrchestratorFlags;
use crate::serving::{Interrupt, Serving};
use crate::state::State;
use crate::tool_settings;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use trellis_brokers::BrokerAddress;
use trellis_brokers::trustgraph::{FolderNotes, TrustGraph, TrustGraphError, TrustGraphOptions};
use trellis_domain::limits::SomeLimits;
use trellis_orchestrator::RunService;
use trellis_orchestrator::ports::{Config, Notes, Role};

/// How long a broker that cannot be reached yet is left alone.
const AGAIN: Duration = Duration::from_secs(2);
/// Dialogs of a flow for each unit of `--concurrency`: none of them holds a message while it waits.
const DIALOGS: usize = 16;
/// Beside the journal: which dialogs are open.
const NOTES: &str = "trustgraph";

pub(crate) async fn run(global: &Global, flags: &OrchestratorFlags) -> Result<Exit, Failure> {
    if flags.pubsub_backend != "rabbitmq" {
        return Err(Failure::usage(format!(
            "`trellis orchestrator` speaks to RabbitMQ only, and --pubsub-backend is {:?}; say --pubsub-backend rabbitmq",
            flags.pubsub_backend
        )));
    }
    let ignored = flags.ignored.given();
    if !ignored.is_empty() {
        tracing::info!(flags = ignored.join(" "), "these flags of the original mean nothing here and are ignored");
    }
    let operator = limits::of_operator(global, &[])?;
    let mut interrupt = Interrupt::new()?;
    let app = App::open_for_deployment(global).await?;
    let Some(trustgraph) = connect(flags, &app, &mut interrupt).await? else { return Ok(Exit::Ok) };
    let trustgraph = Arc::new(trustgraph);
    let outside = tool_settings::outside(global)?;
    let orchestrator =
        app.orchestrator_with(operator, trustgraph.prompter(), outside, |others| trustgraph.tools(others));
    let runs = RunService::new(&orchestrator);
    let (stop, stopped) = watch::channel(false);
    // The deployment's triple store has the graph. That of a folder nobody can ask before this process ends. Whoever does then
    // takes in what it lacks as far as there is time, and is told of the rest.
    let indexed = app.store.is_asked().then(|| tokio::spawn(app.store.index(stopped.clone())));
    let mut workers = Serving::start_as(&orchestrator, app.worker_options(&[Role::Agent, Role::Aggregator]));
    let open = runs.count_open().await?;
    tracing::info!(id = flags.id, data = %app.store, open_runs = open, "serving a TrustGraph deployment");
    let config: Arc<dyn Config> = Arc::clone(&app.store.config);
    let notes = notes(&app.store)?;
    let mut served = tokio::spawn({
        let (trustgraph, runs) = (Arc::clone(&trustgraph), runs.clone());
        async move { trustgraph.serve(runs, config, notes, stopped).await }
    });
    let ended = tokio::select! {
        () = interrupt.received() => Ok(()),
        failure = workers.store_failure() => Err(failure),
        ended = &mut served => Err(Failure::unexpected(format!("the deployment is not served any more: {ended:?}"))),
    };
    tracing::info!("stopping: nothing new is taken, calls in flight are finished");
    stop.send_replace(true);
    let taking = async {
        if !served.is_finished() {
            drop((&mut served).await);
        }
    };
    workers.drain_within(Duration::from_secs(flags.drain), &mut interrupt, taking).await?;
    if let Some(indexing) = indexed {
        indexing.await.map_err(Failure::unexpected)?;
    }
    let open = runs.count_open().await?;
    tracing::info!(open_runs = open, "stopped");
    ended.map(|()| Exit::Ok)
}

/// Beside the journal: what was promised to whoever asked.
fn notes(state: &State) -> Result<Arc<dyn Notes>, Failure> {
    if let Some(notes) = state.notes() {
        return Ok(notes);
    }
    let folder = state.only_folder()?.path().join(NOTES);
    let unusable = |error| Failure::new(Exit::DataFolder, format!("{}: {error}", folder.display()));
    Ok(Arc::new(FolderNotes::open(&folder).map_err(unusable)?))
}

/// Connects as soon as the broker is there. None if somebody wants to stop first.
async fn connect(
    flags: &OrchestratorFlags,
    app: &App,
    interrupt: &mut Interrupt,
) -> Result<Option<TrustGraph>, Failure> {
    let OrchestratorFlags { rabbitmq_host, rabbitmq_port, rabbitmq_username, .. } = flags;
    let (password, virtual_host) = (&flags.rabbitmq_password, &flags.rabbitmq_vhost);
    let address = BrokerAddress::rabbitmq(rabbitmq_host, *rabbitmq_port, rabbitmq_username, password, virtual_host);
    let options = TrustGraphOptions {
        id: flags.id.clone(),
        notices: flags.config_push_queue.clone(),
        config_timeout: Duration::from_secs(flags.config_timeout),
        prompt_timeout: Duration::from_secs(flags.prompt_timeout),
        librarian_timeout: Duration::from_secs(flags.librarian_timeout),
        limits: SomeLimits { max_iterations: Some(flags.max_iterations), ..SomeLimits::default() },
        dialogs_per_flow: usize::from(flags.concurrency.max(1)) * DIALOGS,
    };
    loop {
        match TrustGraph::connect(address.clone(), options.clone(), Arc::clone(&app.world)).await {
            Ok(trustgraph) => return Ok(Some(trustgraph)),
            Err(error @ TrustGraphError::NotATopic(_)) => return Err(Failure::usage(error.to_string())),
            Err(error @ TrustGraphError::Broker(_)) => tracing::warn!(%error, "it is tried again"),
        }
        tokio::select! {
            () = interrupt.received() => return Ok(None),
            () = app.world.sleep(AGAIN) => {}
        }
    }
}
