//! A process that works on runs and takes no questions.

use crate::app::{self, App};
use crate::cli::{Background, Global};
use crate::cluster::Cluster;
use crate::failure::{Exit, Failure};
use crate::limits;
use crate::serving::{Interrupt, Serving};
use crate::state::Purpose;
use crate::tool_settings;
use std::time::Duration;
use trellis_orchestrator::RunService;
use trellis_orchestrator::ports::Role;

/// What such a process does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    command: &'static str,
    roles: &'static [Role],
}

/// Everything: models are asked and tools called, and teams come together.
pub(crate) const WORKER: Work = Work { command: "worker", roles: &[Role::Agent, Role::Aggregator] };
/// The same, but that others bring teams together.
pub(crate) const ONLY_TURNS: Work = Work { command: "worker", roles: &[Role::Agent] };
/// Only the fan-ins, for which a process needs neither models nor tools.
pub(crate) const AGGREGATOR: Work = Work { command: "aggregator", roles: &[Role::Aggregator] };

pub(crate) async fn run(global: &Global, background: &Background, work: Work) -> Result<Exit, Failure> {
    let Work { command, roles } = work;
    let asks = roles.contains(&Role::Agent);
    let own = if asks { Some((limits::of_operator(global, &[])?, app::models(global)?)) } else { None };
    let mut interrupt = Interrupt::new()?;
    let cluster = Cluster::named(global)?.ok_or_else(|| {
        Failure::usage(format!(
            "`trellis {command}` works on a state that processes share; name it: --state (TRELLIS_STATE) \
             postgres://USER:PASSWORD@HOST:5432/NAME"
        ))
    })?;
    let app = App::open_shared(global, &cluster, command, Purpose::Write).await?;
    let orchestrator = match own {
        Some((operator, models)) => app.orchestrator(operator, models, tool_settings::outside(global)?),
        None => app.idle_orchestrator(),
    };
    let mut serving = Serving::start_as(&orchestrator, app.worker_options(roles));
    tracing::info!(state = %app.store, command, "working");
    let stopped = tokio::select! {
        () = interrupt.received() => Ok(()),
        failure = serving.store_failure() => Err(failure),
    };
    tracing::info!("stopping: nothing new is taken, calls in flight are finished");
    serving.drain_within(Duration::from_secs(background.drain), &mut interrupt, std::future::ready(())).await?;
    let open = RunService::new(&orchestrator).count_open().await?;
    tracing::info!(open_runs = open, "stopped");
    stopped.map(|()| Exit::Ok)
}
