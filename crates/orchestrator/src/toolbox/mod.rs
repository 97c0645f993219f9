//! Tools as people and programs look after them, at the command line and over the API alike: which there are and whether
//! they can be called here, one call of one of them, what servers have, and an operation of an API as a tool.
//!
//! Nothing of this belongs to a run, so nothing is recorded but changes of the configuration.

mod argument;
mod discovery;
pub mod openapi;
mod trial;

pub use argument::{argument, short};
pub use discovery::{DiscoverError, Discovery, NewTools, discover, new_tools};
pub use trial::{Trial, TrialError, TrialOutcome, try_tool};

use crate::ports::ToolRunner;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use trellis_domain::config::{ArgumentItem, Settings, StoredItem, ToolItem};
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
}

impl ListedTool {
    pub fn of(tool: &ToolItem, settings: &Settings, tools: &dyn ToolRunner) -> Self {
        let why_not = tools.obstacle(tool, settings);
        Self {
            name: tool.name.to_string(),
            kind: tool.kind.as_str().to_owned(),
            description: tool.description.clone(),
            groups: tool.groups.iter().map(ToString::to_string).collect(),
            arguments: tool.arguments.clone(),
            effect: tool.effect.as_str().to_owned(),
            can_be_called: why_not.is_none(),
            why_not,
        }
    }
}

/// All tools of a workspace, by name.
pub fn list(settings: &Settings, tools: &dyn ToolRunner) -> Vec<ListedTool> {
    settings.tools.values().map(|tool| ListedTool::of(tool, settings, tools)).collect()
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
