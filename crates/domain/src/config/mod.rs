//! Configuration items: what they may contain, and what is wrong with those that do not fit.
//!
//! Values are JSON text stored under (workspace, type, key). One bad item never discards the good ones.

mod item;
mod read;
mod secrets;
mod settings;
mod tool;

pub use item::{
    ConfigItem, Example, McpItem, ONLY_QUEUES, PatternItem, PromptItem, PromptReply, TaskTypeItem, ToolServiceItem,
    not_served, validate,
};
pub use secrets::without_secrets;
pub use settings::{Settings, StoredItem};
pub use tool::{ArgumentItem, AskingItem, GRAPH_LIMITS, OnUncertain, ToolEffect, ToolItem, ToolKind};

/// The configuration types that the agent reads.
pub const AGENT_TYPES: [&str; 8] =
    ["tool", "tool-service", "mcp", "prompt", "agent", "agent-pattern", "agent-task-type", "schema"];

/// The type of items that the program keeps for itself: nobody else writes them.
pub const OWN_KIND: &str = "trellis";

/// What is wrong with an item: which one, which field, and how to mend it.
///
/// ```
/// use trellis_domain::config::validate;
///
/// let problem = validate("tool", "search", r#"{"type": "telepathy", "name": "search"}"#).unwrap_err();
/// assert!(problem.to_string().starts_with("tool/search: field `type`: unknown tool type `telepathy`"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}/{key}: field `{field}`: {what}; {mend}")]
pub struct Problem {
    pub kind: String,
    pub key: String,
    pub field: String,
    pub what: String,
    pub mend: String,
}

#[cfg(test)]
#[path = "../config_tests.rs"]
mod tests;
