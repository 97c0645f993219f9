//! What MCP servers have, and how it becomes configuration: a model is offered what is configured, and what was offered
//! is on record. A server that changes its list changes nothing by itself.

use crate::app::Purpose;
use crate::cli::{Global, Output};
use crate::desk::Desk;
use crate::failure::{Exit, Failure};
use crate::show::{aligned, clean, columns, note, one_line, print_json, print_line};
use crate::tool_settings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use trellis_domain::config::{StoredItem, validate};
use trellis_domain::counted;
use trellis_tools::mcp::Discovered;

/// What somebody asked for.
pub(super) struct Wanted<'a> {
    pub(super) server: Option<&'a str>,
    pub(super) only: &'a [String],
}

pub(super) async fn run(global: &Global, wanted: &Wanted<'_>, add: bool) -> Result<Exit, Failure> {
    let mcp = tool_settings::outside(global)?.mcp;
    let servers: Vec<_> = mcp.servers().filter(|name| wanted.server.is_none_or(|only| only == *name)).collect();
    if servers.is_empty() {
        return Err(no_server(wanted, mcp.servers().next().is_some()));
    }
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    // Some take their time to begin.
    let mcp = &mcp;
    let asked = servers.into_iter().map(|server| async move { (server, mcp.discover(server).await) });
    for (server, discovered) in futures_util::future::join_all(asked).await {
        match discovered {
            Ok(tools) => found.extend(tools),
            Err(why) => failed.push(format!("{}: {}", clean(server), one_line(&clean(&why)))),
        }
    }
    if let Some(missing) = wanted.only.iter().find(|only| found.iter().all(|tool| tool.name != **only))
        && failed.is_empty()
    {
        return Err(Failure::new(Exit::NotFound, format!("no server has a tool `{}`", clean(missing))));
    }
    found.retain(|tool| wanted.only.is_empty() || wanted.only.contains(&tool.name));
    if failed.is_empty() || !found.is_empty() {
        print(global, &found)?;
    }
    if add && !found.is_empty() {
        self::add(global, &found).await?;
    } else if !found.is_empty() {
        note("none of them is offered to a model yet: --add makes them tools");
    }
    if failed.is_empty() {
        return Ok(Exit::Ok);
    }
    Err(Failure::new(Exit::RunFailed, failed.join("\n")))
}

fn no_server(wanted: &Wanted<'_>, has_others: bool) -> Failure {
    match wanted.server {
        Some(name) if has_others => {
            Failure::new(Exit::NotFound, format!("there is no server `{}` in --mcp-config", clean(name)))
        }
        _ if std::path::Path::new(".mcp.json").exists() => Failure::usage(
            "no MCP server is named; there is a file .mcp.json here: --mcp-config .mcp.json uses it, which starts its programs",
        ),
        _ => Failure::usage("no MCP server is named: name a file that has `mcpServers` with --mcp-config"),
    }
}

fn print(global: &Global, found: &[Discovered]) -> Result<(), Failure> {
    if global.output != Output::Text {
        let tool = |tool: &Discovered| json!({ "server": tool.server, "name": tool.name, "description": tool.description, "arguments": tool.arguments });
        print_json(&json!({ "tools": found.iter().map(tool).collect::<Vec<_>>() }).to_string())?;
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
    aligned(&rows, columns()).iter().try_for_each(|line| print_line(line))?;
    Ok(())
}

/// Writes all of them at once, each under a name of its own.
async fn add(global: &Global, found: &[Discovered]) -> Result<(), Failure> {
    let desk = Desk::work(global, "tools", Purpose::Write).await?;
    let mut taken: BTreeMap<String, Value> = BTreeMap::new();
    for item in desk.items().await?.1.into_iter().filter(|item| item.kind == super::KIND) {
        taken.insert(item.key, serde_json::from_str(&item.value).unwrap_or_default());
    }
    let mut items = Vec::new();
    for tool in found {
        let name = free_name(tool, &taken);
        if items.iter().any(|item: &StoredItem| item.key == name) {
            note(&format!("{} lists {} twice; the first of them is added", clean(&tool.server), clean(&tool.name)));
            continue;
        }
        let value = tool.item(&name);
        taken.insert(name.clone(), value.clone());
        let item = StoredItem { kind: super::KIND.to_owned(), key: name, value: value.to_string() };
        validate(&item.kind, &item.key, &item.value).map_err(|problem| Failure::usage(problem.to_string()))?;
        items.push(item);
    }
    let names: Vec<_> = items.iter().map(|item| clean(&item.key)).collect();
    let version = desk.put(items).await?;
    let added = counted(names.len(), "tool");
    note(&format!("added {added}, configuration version {version}: {}", names.join(", ")));
    Ok(())
}

/// The tool's own name, unless another tool has it. A tool that was added before keeps the name that it got.
fn free_name(tool: &Discovered, taken: &BTreeMap<String, Value>) -> String {
    let is_it = |item: &Value| item["server"] == *tool.server && item["mcp-tool"] == *tool.name;
    if let Some((known, _)) = taken.iter().find(|(_, item)| is_it(item)) {
        return known.clone();
    }
    let is_free = |name: &String| taken.iter().all(|(key, item)| key != name && item["name"] != **name);
    let own = plain(&tool.name);
    let with_server = format!("{}_{own}", plain(&tool.server));
    let numbered = (2..).map(|number| format!("{with_server}_{number}"));
    let mut names = [own, with_server.clone()].into_iter().chain(numbered);
    names.find(is_free).unwrap_or(with_server)
}

/// A name that can be written down everywhere.
fn plain(name: &str) -> String {
    let is_plain = |c: &char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name: String = name.chars().take(100).map(|c| if is_plain(&c) { c } else { '_' }).collect();
    if name.is_empty() { "tool".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::config::ToolEffect;

    #[test]
    fn tools_keep_their_names_and_no_two_have_the_same() {
        let tool = |server: &str, name: &str| Discovered {
            server: server.to_owned(),
            name: name.to_owned(),
            description: String::new(),
            effect: ToolEffect::Read,
            arguments: Vec::new(),
        };
        let mut taken = BTreeMap::from([("search".to_owned(), json!({ "type": "http", "name": "search" }))]);
        for (server, name, expected) in [
            ("a", "now", "now"),
            ("a", "search", "a_search"),
            ("b", "now", "b_now"),
            ("a", "now", "now"),
            ("a", "../x y", ".._x_y"),
        ] {
            let tool = tool(server, name);
            let free = free_name(&tool, &taken);
            assert_eq!(free, expected);
            taken.insert(free.clone(), tool.item(&free));
        }
    }
}
