//! What MCP servers have, and how it becomes configuration: a model is offered what is configured, and what was offered
//! is on record. A server that changes its list changes nothing by itself.

use crate::app::workspace;
use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::{aligned, clean, columns_for, note, one_line, print_json, print_line};
use crate::state::Purpose;
use crate::tool_settings;
use serde_json::json;
use trellis_domain::counted;
use trellis_orchestrator::ports::{Discovered, LeftOutTool};
use trellis_orchestrator::toolbox::{DiscoverError, Discovery, changes, discover, new_tools};

/// What somebody asked for.
pub(super) struct Wanted<'a> {
    pub(super) server: Option<&'a str>,
    pub(super) only: &'a [String],
}

pub(super) async fn run(global: &Global, wanted: &Wanted<'_>, add: bool) -> Result<Exit, Failure> {
    let mcp = tool_settings::outside(global)?.mcp;
    let workspace = workspace(global)?.unwrap_or_default();
    let discovery = discover(Some(&mcp), &workspace, wanted.server, wanted.only).await.map_err(undiscovered)?;
    if !add && wanted.only.is_empty() {
        tell_changes(global, &discovery).await;
    }
    discovery.left_out.iter().for_each(|tool| note(&left_out_line(tool)));
    let line = |(server, why): &(String, String)| format!("{}: {}", clean(server), one_line(&clean(why)));
    let (found, failed): (_, Vec<_>) = (discovery.tools, discovery.failed.iter().map(line).collect());
    if failed.is_empty() || !found.is_empty() {
        print(global, &found, &discovery.left_out)?;
    }
    let mut exit = Exit::Ok;
    if add && !found.is_empty() {
        exit = self::add(global, &found).await?;
        if exit == Exit::Ok && !discovery.left_out.is_empty() {
            exit = Exit::Partial;
        }
    } else if !found.is_empty() {
        note("none of them is offered to a model yet: --add makes them tools");
    }
    if failed.is_empty() {
        return Ok(exit);
    }
    Err(Failure::new(Exit::RunFailed, failed.join("\n")))
}

/// A tool that nobody can use, and why.
pub(in crate::commands) fn left_out_line(LeftOutTool { server, name, reason }: &LeftOutTool) -> String {
    format!("{} of {} is left out: {}", clean(name), clean(server), one_line(&clean(reason)))
}

/// What servers say otherwise by now than when their tools were added. What models are offered changes with `--add` only.
async fn tell_changes(global: &Global, discovery: &Discovery) {
    // Where nothing is configured yet, nothing has changed.
    let Ok(desk) = Desk::look(global, "tools discover") else { return };
    let Ok((_, items)) = desk.items().await else { return };
    for line in changes(&discovery.asked, &discovery.tools, &items) {
        note(&one_line(&clean(&line)));
    }
}

fn undiscovered(error: DiscoverError) -> Failure {
    match error {
        DiscoverError::UnknownServer { .. } | DiscoverError::UnknownTool(_) => {
            Failure::new(Exit::NotFound, clean(&error.to_string()))
        }
        DiscoverError::NoServers if std::path::Path::new(".mcp.json").exists() => Failure::usage(
            "no MCP server is named; there is a file .mcp.json here: --mcp-config .mcp.json uses it, which starts its programs",
        ),
        DiscoverError::NoServers => {
            Failure::usage("no MCP server is named: name a file that has `mcpServers` with --mcp-config")
        }
    }
}

fn print(global: &Global, found: &[Discovered], left_out: &[LeftOutTool]) -> Result<(), Failure> {
    if global.output != Output::Text {
        let tool = |tool: &Discovered| json!({ "server": tool.server, "name": tool.name, "description": tool.description, "arguments": tool.arguments });
        let gap = |tool: &LeftOutTool| json!({ "server": tool.server, "name": tool.name, "reason": tool.reason });
        let found: Vec<_> = found.iter().map(tool).collect();
        let left_out: Vec<_> = left_out.iter().map(gap).collect();
        print_json(&json!({ "tools": found, "left_out": left_out }).to_string())?;
        return Ok(());
    }
    let rows = found.iter().map(|tool| {
        let names = tool.arguments.iter().filter_map(|argument| argument["name"].as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        let description = one_line(&clean(&tool.description));
        vec![clean(&tool.server), clean(&tool.name), clean(&names), description]
    });
    let header = ["SERVER", "TOOL", "ARGUMENTS", "DESCRIPTION"].map(str::to_owned).to_vec();
    let rows: Vec<_> = std::iter::once(header).chain(rows).collect();
    aligned(&rows, columns_for(global)).iter().try_for_each(|line| print_line(line))?;
    Ok(())
}

/// Writes those that can be tools at once, each under a name of its own, and tells of the others.
async fn add(global: &Global, found: &[Discovered]) -> Result<Exit, Failure> {
    let desk = Desk::work(global, "tools", Purpose::Write).await?;
    let new = new_tools(found, &desk.items().await?.1);
    let refused: Vec<_> = new
        .refused
        .iter()
        .map(|(server, tool, problem)| {
            format!(
                "{} of {} can be no tool here: {}",
                clean(tool),
                clean(server),
                one_line(&clean(&problem.to_string()))
            )
        })
        .collect();
    if new.items.is_empty() && !refused.is_empty() {
        return Err(Failure::new(Exit::InvalidConfig, refused.join("\n")));
    }
    for line in &refused {
        note(line);
    }
    for (server, tool) in &new.twice {
        note(&format!("{} lists {} twice; the first of them is added", clean(server), clean(tool)));
    }
    let names: Vec<_> = new.items.iter().map(|item| clean(&item.key)).collect();
    let version = desk.put(new.items).await?;
    let added = counted(names.len(), "tool");
    note(&format!("added {added}, configuration version {version}: {}", names.join(", ")));
    Ok(if refused.is_empty() { Exit::Ok } else { Exit::Partial })
}
