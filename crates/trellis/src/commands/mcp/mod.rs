//! An MCP server for the program that starts this one: over the data folder, or in front of a server that has one. Nothing
//! but the protocol goes to stdout.

mod bridge;
mod message;

use crate::app::{self, App};
use crate::cli::Global;
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::gateway::{Entrance, gateway};
use crate::limits;
use crate::named::Limit;
use crate::person;
use crate::serving::{Interrupt, Serving};
use crate::show::note;
use crate::state::Purpose;
use crate::tool_settings;
use std::sync::Arc;
use tokio::sync::watch;
use trellis_gateway::{Access, Identity, McpError, Phase, Reach, serve_streams};
use trellis_models::Models;
use trellis_orchestrator::RunService;
use trellis_patterns::router::OperatorLimits;

pub(crate) async fn run(global: &Global, limit: &[Limit]) -> Result<Exit, Failure> {
    let mut interrupt = Interrupt::new()?;
    let own = own_means(global, limit);
    let desk = match &own {
        Ok(_) => Desk::work(global, "mcp", Purpose::Write).await?,
        // What is wrong with the settings here is no matter of a server's.
        Err(_) => match Desk::look(global, "mcp") {
            Ok(remote @ Desk::Remote(_)) => remote,
            Ok(Desk::Local(_)) | Err(_) => return own.map(|_| Exit::Ok),
        },
    };
    match desk {
        Desk::Local(app) => Box::pin(here(&app, global, own?, &mut interrupt)).await,
        Desk::Remote(server) => {
            if !global.model.is_empty() || !limit.is_empty() {
                let url = server.url();
                let message = format!("{url} has its own models and limits; leave --model and --limit out");
                return Err(Failure::usage(message));
            }
            tokio::select! {
                passed_on = bridge::run(server) => passed_on.map(|()| Exit::Ok),
                () = interrupt.received() => Ok(Exit::Ok),
            }
        }
    }
}

/// The limits and models of this machine, which only runs on its own folder need.
fn own_means(global: &Global, limit: &[Limit]) -> Result<(OperatorLimits, Models), Failure> {
    Ok((limits::of_operator(global, limit)?, app::models(global)?))
}

/// Answers with workers of its own, until the client closes its end.
async fn here(
    app: &App,
    global: &Global,
    (operator, models): (OperatorLimits, Models),
    interrupt: &mut Interrupt,
) -> Result<Exit, Failure> {
    let outside = tool_settings::outside(global)?;
    let loaders = app.loaders(global, &outside)?;
    let orchestrator = app.orchestrator(operator, models, outside);
    let (close, phase) = watch::channel(Phase::Serving);
    let entrance = Entrance { access: Access::Open, loopback_only: true };
    let gateway = gateway(app, &orchestrator, loaders, entrance, phase);
    let mut workers = Serving::start(&orchestrator);
    // Whoever starts the program works on the folder with their own rights.
    let identity = Identity { name: Some(person::user()), reach: Reach::All };
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let ended = {
        let serving = serve_streams(Arc::clone(&gateway), &identity, app.workspace().as_str(), input, output);
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            ended = &mut serving => ended.map_err(failure),
            failure = workers.store_failure() => Err(failure),
            () = interrupt.received() => {
                close.send_replace(Phase::Closed);
                serving.await.map_err(failure)
            }
        }
    };
    close.send_replace(Phase::Closed);
    workers.abandon().await?;
    let open = RunService::new(&orchestrator).count_open().await?;
    if open > 0 && !global.quiet {
        note(&format!("open runs: {open}; the next `trellis mcp` goes on with them, and so does `trellis resume`"));
    }
    ended.map(|()| Exit::Ok)
}

fn failure(error: McpError) -> Failure {
    match error {
        McpError::Workspace(_) => Failure::new(Exit::NotFound, error.to_string()),
        McpError::Beginning(_) | McpError::BrokeOff(_) => Failure::usage(error.to_string()),
    }
}
