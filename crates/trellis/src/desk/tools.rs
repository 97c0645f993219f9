//! Tools where a command works: in the folder by the process itself, or at the server that has it.

use super::{Desk, Server};
use crate::app::{self, App};
use crate::cli::Global;
use crate::failure::{Exit, Failure};
use crate::limits;
use crate::tool_settings;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::config::{Settings, StoredItem};
use trellis_orchestrator::ports::ConfigError;
use trellis_orchestrator::toolbox::{self, KIND, ListedTool, Trial, TrialError, TrialOutcome};
use trellis_tools::Tools;

/// A tool may take its own time, and the server answers after it.
const LONGEST_CALL: Duration = Duration::from_hours(2);

/// What is called, and with what.
#[derive(Debug)]
pub(crate) struct WantedCall<'a> {
    pub(crate) name: &'a str,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) may_be_unsafe: bool,
}

#[derive(Debug, Deserialize)]
struct ListedTools {
    tools: Vec<ListedTool>,
}

#[derive(Debug, Deserialize)]
struct Tried {
    observation: String,
    failed: bool,
    ms: u64,
}

impl Desk {
    /// All tools, and whether they can be called there.
    pub(crate) async fn tools(&self, global: &Global) -> Result<Vec<ListedTool>, Failure> {
        match self {
            Self::Local(app) => {
                let (settings, tools) = bench(app, global).await?;
                Ok(toolbox::list(app.workspace(), &settings, &tools))
            }
            Self::Remote(server) => {
                let listed: ListedTools = server.ask(server.request(Method::GET, &["tools"], &[])).await?;
                Ok(listed.tools)
            }
        }
    }

    /// Calls a tool once.
    pub(crate) async fn try_tool(&self, global: &Global, call: WantedCall<'_>) -> Result<TrialOutcome, Failure> {
        match self {
            Self::Local(app) => here(app, global, call).await,
            Self::Remote(server) => there(server, call).await,
        }
    }
}

/// That the operator offers the tools that items name.
pub(super) fn check_offered(app: &App, global: &Global, items: &[StoredItem]) -> Result<(), Failure> {
    if items.iter().all(|item| item.kind != KIND) {
        return Ok(());
    }
    let mcp = tool_settings::outside(global)?.mcp;
    let refused = toolbox::refused(items, app.workspace(), Some(&mcp));
    if refused.is_empty() { Ok(()) } else { Err(ConfigError::Invalid(refused).into()) }
}

/// A folder's tools as they would be called.
async fn bench(app: &App, global: &Global) -> Result<(Arc<Settings>, Tools), Failure> {
    let (version, items) = app.store.config.all(app.workspace()).await?;
    let settings = Arc::new(Settings::take(version, items).0);
    let prompter = app.prompter(app::models(global)?);
    Ok((settings, app.tools(&prompter, tool_settings::outside(global)?)))
}

async fn here(app: &App, global: &Global, call: WantedCall<'_>) -> Result<TrialOutcome, Failure> {
    let (settings, tools) = bench(app, global).await?;
    let limits = limits::of_operator(global, &[])?.usual;
    let WantedCall { name, arguments, may_be_unsafe } = call;
    let trial = Trial { scope: app.scope.clone(), settings, name, arguments, may_be_unsafe, limits: &limits };
    toolbox::try_tool(&tools, &*app.world, trial).await.map_err(|error| match error {
        TrialError::Unknown(_) => Failure::new(Exit::NotFound, format!("{error}; `trellis tools list` lists them")),
        TrialError::NotHere { .. } => Failure::new(Exit::RunFailed, error.to_string()),
        TrialError::Unsafe(_) => Failure::usage(format!("{error}; --unsafe calls it all the same")),
    })
}

async fn there(server: &Server, call: WantedCall<'_>) -> Result<TrialOutcome, Failure> {
    let body = json!({ "arguments": call.arguments, "unsafe": call.may_be_unsafe }).to_string();
    let request = server.request(Method::POST, &["tools", call.name, "test"], &[]).body(body);
    let Tried { observation, failed, ms } = server.ask_within(request, LONGEST_CALL).await?;
    Ok(TrialOutcome { observation, failed, ms })
}
