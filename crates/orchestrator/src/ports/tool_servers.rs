//! Servers that have tools of their own, which become configuration before any model is offered them.

use super::BoxFuture;
use serde_json::{Value, json};
use trellis_domain::Workspace;
use trellis_domain::config::ToolEffect;

/// A tool that a server has.
#[derive(Debug, Clone, PartialEq)]
pub struct Discovered {
    pub server: String,
    pub name: String,
    pub description: String,
    /// What a call changes, by the server's own account.
    pub effect: ToolEffect,
    /// What calls of it take, as the members of configuration items say it.
    pub arguments: Vec<Value>,
}

impl Discovered {
    /// The item under which the tool is offered by this name.
    pub fn item(&self, name: &str) -> Value {
        json!({
            "type": "mcp-tool", "name": name, "description": self.description, "server": self.server,
            "mcp-tool": self.name, "effect": self.effect.as_str(), "arguments": self.arguments,
        })
    }
}

/// What a server lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolList {
    pub tools: Vec<Discovered>,
    /// Tools that cannot be used, and why. They keep nobody from the others.
    pub left_out: Vec<LeftOutTool>,
}

/// A tool that a server has and nobody can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutTool {
    pub server: String,
    /// Its name, or its place in the list if it has none.
    pub name: String,
    pub reason: String,
}

/// The servers of the operator.
pub trait ToolServers: Send + Sync + std::fmt::Debug {
    /// Those that a workspace may use, by name.
    fn names(&self, workspace: &Workspace) -> Vec<String>;

    /// The tools that one of them has for a workspace. The error says why they are not known.
    fn discover<'a>(&'a self, workspace: &'a Workspace, server: &'a str) -> BoxFuture<'a, Result<ToolList, String>>;

    /// Whether one of them has said that its list of tools is another one since it was asked for it. Known only of servers
    /// that are spoken to.
    fn has_another_list(&self, _workspace: &Workspace, _server: &str) -> bool {
        false
    }

    /// Why a tool of one of them is none for a workspace, whatever the server has: the operator does not offer it.
    fn refusal(&self, _workspace: &Workspace, _server: &str, _tool: &str) -> Option<String> {
        None
    }
}
