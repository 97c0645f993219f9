//! Tools from the command line: which there are, whether they can be called here, and what one brings.

mod discover;

use crate::app::{self, App, Purpose};
use crate::cli::{Global, Output, ToolsCommand};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::limits;
use crate::serving::Interrupt;
use crate::show::{aligned, clean, columns, note, one_line, print_json, print_line};
use crate::tool_settings;
use discover::Wanted;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Collection;
use trellis_domain::config::{Settings, StoredItem, ToolItem};
use trellis_orchestrator::ports::{Config as _, RealWorld, ToolCall, ToolRunner, World};
use trellis_tools::Tools;

const KIND: &str = "tool";

pub(crate) async fn run(global: &Global, command: &ToolsCommand) -> Result<Exit, Failure> {
    // Programs that were started are not in the terminal's group: they end when what is done here is let go.
    let mut interrupt = Interrupt::new()?;
    tokio::select! {
        done = perform(global, command) => done,
        () = interrupt.received() => Err(Failure::new(Exit::Interrupted, "interrupted")),
    }
}

async fn perform(global: &Global, command: &ToolsCommand) -> Result<Exit, Failure> {
    match command {
        ToolsCommand::List => list(global).await,
        ToolsCommand::Test { name, arguments } => test(global, name, arguments).await,
        ToolsCommand::Add { name, value } => add(global, name, value).await,
        ToolsCommand::Discover { server, add, only } => {
            discover::run(global, &Wanted { server: server.as_deref(), only }, *add).await
        }
        ToolsCommand::Remove { name } => {
            let desk = Desk::work(global, "tools", Purpose::Write).await?;
            let Some(version) = desk.delete(KIND, name).await? else { return Err(unknown(name)) };
            note(&format!("removed {}, configuration version {version}; runs that have begun keep it", clean(name)));
            Ok(Exit::Ok)
        }
    }
}

/// A folder's tools as they would be called.
struct Bench {
    app: App,
    settings: Arc<Settings>,
    tools: Tools,
}

impl Bench {
    async fn open(global: &Global) -> Result<Self, Failure> {
        if global.url.is_some() {
            return Err(Failure::usage("tools are called by the process that has the folder: leave --url out"));
        }
        let app = App::open(global, "tools", Purpose::Read).await.map_err(Failure::from)?;
        let (version, items) = app.store.config.all(app.workspace()).await?;
        let settings = Arc::new(Settings::take(version, items).0);
        let prompter = app.prompter(app::models(global)?);
        let tools = Tools::new(prompter).with(tool_settings::outside(global)?);
        let tools = tools.with_documents(Arc::clone(&app.search)).with_tables(Arc::clone(&app.store.tables) as _);
        Ok(Self { app, settings, tools })
    }

    fn tool(&self, name: &str) -> Result<&Arc<ToolItem>, Failure> {
        self.settings.tools.values().find(|tool| tool.name == name).ok_or_else(|| unknown(name))
    }
}

fn unknown(name: &str) -> Failure {
    Failure::new(Exit::NotFound, format!("there is no tool `{}`; `trellis tools list` lists them", clean(name)))
}

async fn list(global: &Global) -> Result<Exit, Failure> {
    let bench = Bench::open(global).await?;
    let listed = bench.settings.tools.values().map(|tool| {
        let obstacle = bench.tools.obstacle(tool, &bench.settings);
        (tool, obstacle)
    });
    if global.output != Output::Text {
        let tool = |(tool, obstacle): (&Arc<ToolItem>, Option<String>)| {
            json!({
                "name": tool.name, "type": tool.kind.as_str(), "description": tool.description, "groups": tool.groups,
                "arguments": tool.arguments, "can_be_called": obstacle.is_none(), "why_not": obstacle,
            })
        };
        print_json(&json!({ "tools": listed.map(tool).collect::<Vec<_>>() }).to_string())?;
        return Ok(Exit::Ok);
    }
    let rows = listed.map(|(tool, obstacle)| {
        let state = obstacle.map_or_else(|| "yes".to_owned(), |why| format!("no: {}", one_line(&clean(&why))));
        vec![clean(&tool.name), tool.kind.as_str().to_owned(), clean(&tool.groups.join(", ")), state]
    });
    let header = ["TOOL", "TYPE", "GROUPS", "OFFERED HERE"].map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
    aligned(&rows, columns()).iter().try_for_each(|line| print_line(line))?;
    Ok(Exit::Ok)
}

/// Calls a tool once, outside of any run, and prints what a model would be shown.
async fn test(global: &Global, name: &str, arguments: &[String]) -> Result<Exit, Failure> {
    let bench = Bench::open(global).await?;
    let tool = bench.tool(name)?;
    let limits = limits::of_operator(global, &[])?.usual;
    let call = ToolCall {
        scope: bench.app.scope.clone(),
        collection: Collection::default(),
        settings: Arc::clone(&bench.settings),
        tool: Arc::clone(tool),
        arguments: read_arguments(tool, arguments)?,
        idempotency_key: RealWorld.fresh_id(),
        step: None,
        timeout: Duration::from_millis(limits.tool_timeout_ms),
        max_reply_bytes: limits.max_reply_bytes,
        labels: None,
        permit: trellis_orchestrator::permits::Permit::default(),
    };
    let timeout = call.timeout;
    let called = tokio::time::timeout(timeout, bench.tools.call(call)).await;
    match called {
        Ok(Ok(output)) => {
            print_line(&clean(&output.text))?;
            Ok(Exit::Ok)
        }
        Ok(Err(error)) => Err(Failure::new(Exit::RunFailed, format!("the tool brought nothing: {error}"))),
        Err(_) => Err(Failure::new(Exit::RunFailed, format!("the tool did not answer within {} s", timeout.as_secs()))),
    }
}

/// `name=value`, or one JSON object. What is no text by the tool's own words is read as JSON.
fn read_arguments(tool: &ToolItem, written: &[String]) -> Result<Map<String, Value>, Failure> {
    if let [only] = written
        && let Ok(Value::Object(members)) = serde_json::from_str(only)
    {
        return Ok(members);
    }
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            Failure::usage(format!(
                "`{}` is no argument; write NAME=VALUE, or all of them as one JSON object",
                clean(text)
            ))
        })?;
        let is_text = tool.arguments.iter().all(|argument| argument.name != name || argument.kind == "string");
        let value = if is_text { None } else { serde_json::from_str(value).ok() }.unwrap_or_else(|| value.into());
        Ok((name.to_owned(), value))
    };
    written.iter().map(pair).collect()
}

async fn add(global: &Global, name: &str, value: &str) -> Result<Exit, Failure> {
    let value = match value.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).map_err(|error| Failure::usage(format!("{file}: {error}")))?,
        None if value == "-" => super::read_input("the tool")?,
        None => value.to_owned(),
    };
    let desk = Desk::work(global, "tools", Purpose::Write).await?;
    let item = StoredItem { kind: KIND.to_owned(), key: name.to_owned(), value };
    let version = desk.put(vec![item]).await?;
    note(&format!("added {}, configuration version {version}; `trellis tools test {0}` calls it", clean(name)));
    Ok(Exit::Ok)
}
