//! Tools from the command line: which there are, whether they can be called here, and what one brings.

mod discover;
mod openapi;

pub(super) use discover::left_out_line;

use crate::cli::{AddTool, Global, Output, ToolsCommand};
use crate::desk::{Desk, WantedCall};
use crate::failure::{Exit, Failure};
use crate::serving::Interrupt;
use crate::show::{aligned, clean, columns_for, note, one_line, print_json, print_line};
use crate::state::Purpose;
use discover::Wanted;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use trellis_domain::config::StoredItem;
use trellis_orchestrator::toolbox::{KIND, ListedTool, find_item};

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
        ToolsCommand::Test { name, arguments, may_be_unsafe } => test(global, name, arguments, *may_be_unsafe).await,
        ToolsCommand::Add(tool) => add(global, tool).await,
        ToolsCommand::Discover { server, add, only } => {
            discover::run(global, &Wanted { server: server.as_deref(), only }, *add).await
        }
        ToolsCommand::Remove { name } => {
            let desk = Desk::work(global, "tools", Purpose::Write).await?;
            let key = find_item(&desk.items().await?.1, name).map(|item| item.key.clone());
            let Some(version) = desk.delete(KIND, key.as_deref().unwrap_or(name)).await? else {
                return Err(unknown(name));
            };
            note(&format!("removed {}, configuration version {version}; runs that have begun keep it", clean(name)));
            Ok(Exit::Ok)
        }
    }
}

fn unknown(name: &str) -> Failure {
    Failure::new(Exit::NotFound, format!("there is no tool `{}`; `trellis tools list` lists them", clean(name)))
}

async fn list(global: &Global) -> Result<Exit, Failure> {
    let listed = Desk::work(global, "tools", Purpose::Read).await?.tools(global).await?;
    if global.output != Output::Text {
        print_json(&json!({ "tools": listed }).to_string())?;
        return Ok(Exit::Ok);
    }
    let rows = listed.iter().map(|tool| {
        let state = tool.why_not.as_ref().map(|why| format!("no: {}", one_line(&clean(why))));
        let state = state.unwrap_or_else(|| "yes".to_owned());
        vec![clean(&tool.name), tool.kind.clone(), clean(&tool.groups.join(", ")), state]
    });
    let header = ["TOOL", "TYPE", "GROUPS", "OFFERED HERE"].map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
    aligned(&rows, columns_for(global)).iter().try_for_each(|line| print_line(line))?;
    let notices: BTreeSet<_> = listed.iter().filter_map(|tool| tool.notice.as_ref()).collect();
    for notice in notices {
        note(&one_line(&clean(notice)));
    }
    Ok(Exit::Ok)
}

/// Calls a tool once, outside of any run, and prints what a model would be shown.
async fn test(global: &Global, name: &str, arguments: &[String], may_be_unsafe: bool) -> Result<Exit, Failure> {
    let desk = Desk::work(global, "tools", Purpose::Read).await?;
    let listed = desk.tools(global).await?;
    let tool = listed.iter().find(|tool| tool.name == name).ok_or_else(|| unknown(name))?;
    let call = WantedCall { name, arguments: read_arguments(tool, arguments)?, may_be_unsafe };
    let outcome = desk.try_tool(global, call).await?;
    if !outcome.failed {
        print_line(&clean(&outcome.observation))?;
        return Ok(Exit::Ok);
    }
    let why = outcome.observation.strip_prefix("Error: ").unwrap_or(&outcome.observation);
    Err(Failure::new(Exit::RunFailed, format!("the tool brought nothing: {why}")))
}

/// `name=value`, or one JSON object. What is no text by the tool's own words is read as JSON.
fn read_arguments(tool: &ListedTool, written: &[String]) -> Result<Map<String, Value>, Failure> {
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

async fn add(global: &Global, add: &AddTool) -> Result<Exit, Failure> {
    let value = match (&add.openapi, add.value.as_deref()) {
        (Some(place), None | Some("http")) => openapi::item(add, place).await?,
        (Some(_), Some(_)) => {
            return Err(Failure::usage("--openapi makes the tool; write `http`, or nothing, before it"));
        }
        (None, None | Some("http")) => {
            return Err(Failure::usage(
                "say what the tool is: JSON, @FILE, -, or http --openapi FILE|URL --operation ID",
            ));
        }
        (None, Some("-")) => super::read_input("the tool")?,
        (None, Some(value)) => match value.strip_prefix('@') {
            Some(file) => std::fs::read_to_string(file).map_err(|error| Failure::usage(format!("{file}: {error}")))?,
            None => value.to_owned(),
        },
    };
    let desk = Desk::work(global, "tools", Purpose::Write).await?;
    let (name, item) = (&add.name, StoredItem { kind: KIND.to_owned(), key: add.name.clone(), value });
    let version = desk.configure(global, vec![item]).await?;
    note(&format!("added {}, configuration version {version}; `trellis tools test {0}` calls it", clean(name)));
    Ok(Exit::Ok)
}
