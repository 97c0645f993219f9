//! Tools as people and programs look after them, at the command line and over the API alike: which there are and whether
//! they can be called here, one call of one of them, what servers have, and an operation of an API as a tool.
//!
//! Nothing of this belongs to a run, so nothing is recorded but changes of the configuration.

mod argument;
mod discovery;
pub mod openapi;
mod trial;

pub use argument::{argument, short, with_definitions};
pub use discovery::{DiscoverError, Discovery, NewTools, changes, discover, new_tools};
pub use trial::{Trial, TrialError, TrialOutcome, try_tool};

use crate::ports::{ToolRunner, ToolServers};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trellis_domain::Workspace;
use trellis_domain::config::{ArgumentItem, ConfigItem, Problem, Settings, StoredItem, ToolItem, validate};
use utoipa::ToSchema;

/// The type of the items that are tools.
pub const KIND: &str = "tool";

/// A tool, and whether it can be called here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListedTool {
    /// What models call it
    pub name: String,
    /// Such as `http`
    #[serde(rename = "type")]
    pub kind: String,
    pub description: String,
    pub groups: Vec<String>,
    /// What a call takes
    #[schema(value_type = Vec<Object>)]
    pub arguments: Vec<ArgumentItem>,
    /// What a call changes: `read` nothing, `idempotent` the same however often it is made, `unsafe` more with every call
    pub effect: String,
    /// Whether models are offered it
    pub can_be_called: bool,
    /// If not, why
    #[schema(nullable)]
    pub why_not: Option<String>,
    /// What somebody should look at, such as a server that has another list of tools by now
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub notice: Option<String>,
}

impl ListedTool {
    pub fn of(workspace: &Workspace, tool: &ToolItem, settings: &Settings, tools: &dyn ToolRunner) -> Self {
        let why_not = tools.obstacle(workspace, tool, settings);
        Self {
            name: tool.name.to_string(),
            kind: tool.kind.as_str().to_owned(),
            description: tool.description.clone(),
            groups: tool.groups.iter().map(ToString::to_string).collect(),
            arguments: tool.arguments.clone(),
            effect: tool.effect.as_str().to_owned(),
            can_be_called: why_not.is_none(),
            why_not,
            notice: another_list(workspace, tool, tools),
        }
    }
}

/// That the server of a tool has said that its list is another one. What models are offered stays what is configured.
fn another_list(workspace: &Workspace, tool: &ToolItem, tools: &dyn ToolRunner) -> Option<String> {
    let server = tool.setting("server")?;
    let is_another = tools.servers()?.has_another_list(workspace, server);
    is_another.then(|| {
        format!(
            "the MCP server `{server}` says that its tools have changed; `trellis tools discover {server}` tells how"
        )
    })
}

/// All tools of a workspace, by name.
pub fn list(workspace: &Workspace, settings: &Settings, tools: &dyn ToolRunner) -> Vec<ListedTool> {
    settings.tools.values().map(|tool| ListedTool::of(workspace, tool, settings, tools)).collect()
}

/// What is wrong with items that name a tool which the operator does not offer.
pub fn refused(items: &[StoredItem], workspace: &Workspace, servers: Option<&dyn ToolServers>) -> Vec<Problem> {
    let problem = |item: &StoredItem| {
        let servers = servers.filter(|_| item.kind == KIND)?;
        let Ok(ConfigItem::Tool(tool)) = validate(&item.kind, &item.key, &item.value) else { return None };
        let what = servers.refusal(workspace, tool.setting("server")?, tool.setting("mcp-tool")?)?;
        let mend = "name a tool that is offered, or ask the operator".to_owned();
        Some(Problem { kind: item.kind.clone(), key: item.key.clone(), field: "mcp-tool".to_owned(), what, mend })
    };
    items.iter().filter_map(problem).collect()
}

/// The item of a tool: the one under this key, else the one that models call so.
pub fn find_item<'i>(items: &'i [StoredItem], name: &str) -> Option<&'i StoredItem> {
    let mut tools = items.iter().filter(|item| item.kind == KIND);
    let is_called_so = |item: &&StoredItem| {
        serde_json::from_str::<Value>(&item.value).is_ok_and(|value| value["name"].as_str() == Some(name))
    };
    tools.clone().find(|item| item.key == name).or_else(|| tools.find(is_called_so))
}

#[cfg(test)]
#[path = "toolbox_tests.rs"]
mod tests;
