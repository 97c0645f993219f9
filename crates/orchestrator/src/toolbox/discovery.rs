//! What servers have, and how it becomes configuration: a model is offered what is configured, and what was offered is on
//! record. A server that changes its list changes nothing by itself.

use super::KIND;
use crate::ports::{Discovered, LeftOutTool, ToolList, ToolServers};
use serde_json::Value;
use std::collections::BTreeMap;
use trellis_domain::Workspace;
use trellis_domain::config::{Problem, StoredItem, validate};

/// What servers said when they were asked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Discovery {
    pub tools: Vec<Discovered>,
    /// Tools that they have and nobody can use.
    pub left_out: Vec<LeftOutTool>,
    /// The servers that said.
    pub asked: Vec<String>,
    /// Servers that did not say, and why.
    pub failed: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiscoverError {
    #[error("no MCP server is named; the operator names servers in the file of --mcp-config")]
    NoServers,
    #[error("there is no MCP server `{name}`; there are {known}")]
    UnknownServer { name: String, known: String },
    #[error("no server has a tool `{0}`")]
    UnknownTool(String),
}

/// Asks one server or all of them, for some tools or all.
pub async fn discover(
    servers: Option<&dyn ToolServers>,
    workspace: &Workspace,
    server: Option<&str>,
    only: &[String],
) -> Result<Discovery, DiscoverError> {
    let servers = servers.ok_or(DiscoverError::NoServers)?;
    let known = servers.names(workspace);
    let wanted: Vec<_> = known.iter().filter(|name| server.is_none_or(|only| only == **name)).collect();
    match (wanted.is_empty(), server) {
        (true, Some(name)) if !known.is_empty() => {
            let name = name.chars().take(100).collect();
            return Err(DiscoverError::UnknownServer { name, known: known.join(", ") });
        }
        (true, _) => return Err(DiscoverError::NoServers),
        (false, _) => {}
    }
    let mut discovery = Discovery::default();
    // Some take their time to begin.
    let asked = wanted.into_iter().map(|server| async move { (server, servers.discover(workspace, server).await) });
    for (server, discovered) in futures_util::future::join_all(asked).await {
        match discovered {
            Ok(ToolList { tools, left_out }) => {
                discovery.asked.push(server.clone());
                discovery.tools.extend(tools);
                discovery.left_out.extend(left_out);
            }
            Err(why) => discovery.failed.push((server.clone(), why)),
        }
    }
    let is_there = |only: &String| {
        discovery.tools.iter().any(|tool| tool.name == *only) || discovery.left_out.iter().any(|it| it.name == *only)
    };
    if let Some(missing) = only.iter().find(|only| !is_there(only))
        && discovery.failed.is_empty()
    {
        return Err(DiscoverError::UnknownTool(missing.chars().take(100).collect()));
    }
    discovery.tools.retain(|tool| only.is_empty() || only.contains(&tool.name));
    discovery.left_out.retain(|tool| only.is_empty() || only.contains(&tool.name));
    Ok(discovery)
}

/// Items for tools that were discovered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewTools {
    pub items: Vec<StoredItem>,
    /// Tools that a server lists twice, as server and name; the first of them counts.
    pub twice: Vec<(String, String)>,
    /// Tools that can be none here, as server and name, and why.
    pub refused: Vec<(String, String, Problem)>,
}

/// The items of these tools beside those that are there, each under a name of its own. One that can be none keeps nobody
/// from the others.
pub fn new_tools(found: &[Discovered], present: &[StoredItem]) -> NewTools {
    let mut taken: BTreeMap<String, Value> = BTreeMap::new();
    for item in present.iter().filter(|item| item.kind == KIND) {
        taken.insert(item.key.clone(), serde_json::from_str(&item.value).unwrap_or_default());
    }
    let mut new = NewTools::default();
    for tool in found {
        let name = free_name(tool, &taken);
        if new.items.iter().any(|item| item.key == name) {
            new.twice.push((tool.server.clone(), tool.name.clone()));
            continue;
        }
        let value = tool.item(&name);
        let item = StoredItem { kind: KIND.to_owned(), key: name.clone(), value: value.to_string() };
        if let Err(problem) = validate(&item.kind, &item.key, &item.value) {
            new.refused.push((tool.server.clone(), tool.name.clone(), problem));
            continue;
        }
        taken.insert(name, value);
        new.items.push(item);
    }
    new
}

/// How servers differ from what is configured of them, a line for each tool. Servers that did not say are left out, and so
/// are tools that nobody has added.
pub fn changes(asked: &[String], found: &[Discovered], present: &[StoredItem]) -> Vec<String> {
    let tools = present.iter().filter(|item| item.kind == KIND);
    let tools = tools.filter_map(|item| Some((&item.key, serde_json::from_str::<Value>(&item.value).ok()?)));
    let change = |(key, item): (&String, Value)| {
        let (server, name) = (item["server"].as_str()?, item["mcp-tool"].as_str()?);
        if !asked.iter().any(|asked| asked == server) {
            return None;
        }
        let Some(tool) = found.iter().find(|tool| tool.server == server && tool.name == name) else {
            return Some(format!(
                "{key}: the tool `{name}` is not found at the server {server} any more; `trellis tools remove {key}` takes it away"
            ));
        };
        let live = tool.item(key);
        let differs: Vec<_> =
            ["arguments", "description", "effect"].into_iter().filter(|it| item[*it] != live[*it]).collect();
        let what = differs.join(", ");
        (!differs.is_empty()).then(|| format!("{key}: the server {server} says something else by now ({what}); `trellis tools discover {server} --add --only {name}` takes it over"))
    };
    tools.filter_map(change).collect()
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
    use serde_json::json;
    use trellis_domain::config::ToolEffect;

    #[test]
    fn what_a_server_says_otherwise_by_now_is_named() {
        let tool = |name: &str, arguments: Vec<Value>| Discovered {
            server: "s".to_owned(),
            name: name.to_owned(),
            description: String::new(),
            effect: ToolEffect::Read,
            arguments,
        };
        let stored = |key: &str, value: Value| StoredItem {
            kind: KIND.to_owned(),
            key: key.to_owned(),
            value: value.to_string(),
        };
        let (same, other, gone) = (tool("same", Vec::new()), tool("other", Vec::new()), tool("gone", Vec::new()));
        let elsewhere = json!({ "type": "mcp-tool", "server": "t", "mcp-tool": "x" });
        let present = [
            stored("same", same.item("same")),
            stored("mine", other.item("mine")),
            stored("gone", gone.item("gone")),
            stored("x", elsewhere),
            stored("http", json!({ "type": "http" })),
        ];
        let found = [same, tool("other", vec![json!({ "name": "a" })]), tool("new", Vec::new())];
        let told = changes(&["s".to_owned()], &found, &present);
        assert_eq!(
            told,
            [
                "mine: the server s says something else by now (arguments); `trellis tools discover s --add --only other` takes it over",
                "gone: the tool `gone` is not found at the server s any more; `trellis tools remove gone` takes it away",
            ]
        );
        assert!(changes(&[], &found, &present).is_empty());
    }

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
