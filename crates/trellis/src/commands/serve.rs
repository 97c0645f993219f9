//! The server: workers, gateway, and how they stop.

use crate::app::{self, App};
use crate::cli::{Global, Serve};
use crate::failure::{Exit, Failure};
use crate::gateway::{Entrance, gateway};
use crate::limits;
use crate::query_settings;
use crate::serving::{Interrupt, Serving};
use crate::tokens;
use crate::tool_settings;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use trellis_gateway::{Access, Phase, Server};
use trellis_orchestrator::RunService;
use trellis_orchestrator::documents::Loader;
use trellis_orchestrator::ports::{Config, Role};
use trellis_store::QuerySettings;

pub(crate) async fn run(global: &Global, serve: &Serve) -> Result<Exit, Failure> {
    let operator = limits::of_operator(global, &serve.limit)?;
    let models = app::models(global)?;
    let queries = query_settings::of_operator(global, &serve.query_limit)?;
    let access = tokens::access(serve)?;
    let mut interrupt = Interrupt::new()?;
    allow_many_connections();
    // Before the folder is opened: its lock names the address.
    let server = Server::bind(&serve.listen).await.map_err(|error| cannot_listen(serve, &error))?;
    let loopback_only = server.address().ip().is_loopback();
    let is_open = matches!(access, Access::Open);
    if !loopback_only && is_open && !serve.no_auth {
        return Err(Failure::usage(format!(
            "{} can be reached from other machines and no token is set; set TRELLIS_TOKEN, name a file with --tokens, \
             or say --no-auth",
            serve.listen
        )));
    }
    let url = server.url();
    let app = App::open_to_serve(global, url.clone()).await?;
    if serve.no_workers && !app.store.is_shared() {
        let message = "nobody else can work on a data folder; leave --no-workers out, or name a --state";
        return Err(Failure::usage(message));
    }
    app.evaluate_queries(QuerySettings { spares: SPARES.min(queries.at_once), ..queries });
    let outside = tool_settings::outside(global)?;
    let loaders = app.loaders(global, &outside)?;
    let (documents, config) = (loaders.0.clone(), app.config());
    let sweeping = tokio::spawn(sweep(documents, config));
    let orchestrator = app.orchestrator(operator, models, outside);
    let runs = RunService::new(&orchestrator);
    let (stop, phase) = watch::channel(Phase::Serving);
    let entrance = Entrance { access, loopback_only: loopback_only && is_open && !serve.no_auth };
    let gateway = gateway(&app, &orchestrator, loaders, entrance, phase);
    let (stop_indexing, indexed) = watch::channel(false);
    let indexing = tokio::spawn(app.store.index(indexed));
    let mut workers = if serve.no_workers {
        Serving::listen(&orchestrator)
    } else {
        Serving::start_as(&orchestrator, app.worker_options(&[Role::Agent, Role::Aggregator]))
    };
    let open = runs.count_open().await?;
    tracing::info!(%url, data = %app.store, open_runs = open, "serving");
    let mut http = tokio::spawn(server.serve(Arc::clone(&gateway)));
    let stopped = tokio::select! {
        () = interrupt.received() => Ok(()),
        failure = workers.store_failure() => Err(failure),
        ended = &mut http => Err(Failure::unexpected(format!("the server ended by itself: {ended:?}"))),
    };
    tracing::info!("stopping: nothing new is accepted, calls in flight are finished");
    stop.send_replace(Phase::Draining);
    workers.drain_within(Duration::from_secs(serve.drain), &mut interrupt, gateway.calls().finished()).await?;
    stop.send_replace(Phase::Closed);
    stop_indexing.send_replace(true);
    // What clients have not read by then they read again when the server is back.
    if !http.is_finished() {
        tokio::select! {
            _ = &mut http => {}
            () = tokio::time::sleep(PARTING) => http.abort(),
            () = interrupt.received() => http.abort(),
        }
    }
    // It works on the folder, so it goes before the folder is given back.
    indexing.await.map_err(Failure::unexpected)?;
    sweeping.abort();
    drop(sweeping.await);
    let open = runs.count_open().await?;
    tracing::info!(open_runs = open, "stopped");
    stopped.map(|()| Exit::Ok)
}

/// Takes away what a process that died has left of documents that are gone. What is left again goes the next time.
async fn sweep(documents: Loader, config: Arc<dyn Config>) {
    if let Err(error) = documents.forget_orphans(&*config).await {
        tracing::warn!(%error, "facts of removed documents may be left");
    }
}

/// Each connection is an open file, and the usual limit is meant for programs that have few.
fn allow_many_connections() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
        if let Err(error) = raised {
            tracing::warn!(%error, "the limit of open files stays as it is");
        }
    }
}

/// Processes for queries that are started before somebody asks.
const SPARES: usize = 2;
/// How long clients may take to read their last replies.
const PARTING: Duration = Duration::from_secs(5);

fn cannot_listen(serve: &Serve, error: &std::io::Error) -> Failure {
    Failure::usage(format!(
        "cannot listen at {}: {error}; choose another address with --listen, such as 127.0.0.1:8889",
        serve.listen
    ))
}
