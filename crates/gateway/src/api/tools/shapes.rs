//! What requests and replies about tools look like.

use serde::Serialize;
use serde_json::Value;
use trellis_orchestrator::toolbox::ListedTool;
use utoipa::ToSchema;

/// The tools of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ToolList {
    /// The version of the configuration
    pub(crate) version: u64,
    pub(crate) tools: Vec<ListedTool>,
}

/// A tool with its item.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OneTool {
    /// The version of the configuration
    pub(crate) version: u64,
    /// What the item is stored under
    pub(crate) key: String,
    /// The item as it is stored
    pub(crate) item: Value,
    /// What agents make of it; none if the item is wrong
    #[schema(nullable)]
    pub(crate) tool: Option<ListedTool>,
}

/// A tool that was stored.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddedTool {
    /// The version of the configuration
    pub(crate) version: u64,
    /// What the item is stored under
    pub(crate) key: String,
    /// The item as it is stored
    pub(crate) item: Value,
    pub(crate) tool: ListedTool,
    /// What was left out of an operation, and why
    pub(crate) notes: Vec<String>,
}

/// The item of a tool, or an operation of an `OpenAPI` document.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only the schema is used")]
#[schema(example = json!({
    "type": "http", "description": "The weather in a city now", "url": "https://api.example.com/now/{city}",
    "arguments": [{ "name": "city", "type": "string", "description": "The name of the city" }],
    "headers": { "authorization": "Bearer {secret:WEATHER}" }
}))]
pub(crate) struct NewTool {
    /// Such as `http`; not together with `openapi`
    #[serde(rename = "type")]
    #[schema(nullable = false)]
    kind: Option<String>,
    /// An `OpenAPI` document, version 3.0 or 3.1
    #[schema(nullable = false, value_type = Option<Object>)]
    openapi: Option<Value>,
    /// Which of its operations: `operationId`, or method and path as `GET /cities/{city}`
    #[schema(nullable = false)]
    operation: Option<String>,
    /// The address to use in place of the one that the document names
    #[schema(nullable = false)]
    server: Option<String>,
    /// Where the document was found, if it names its servers relative to that
    #[schema(nullable = false)]
    found_at: Option<String>,
    /// The operator's secrets that hold the keys it needs: `NAME`, or `SCHEME=NAME`
    #[schema(nullable = false)]
    secrets: Option<Vec<String>>,
}

/// One call.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only the schema is used")]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "arguments": { "city": "Oslo" } }))]
pub(crate) struct NewTrial {
    #[schema(nullable = false, value_type = Option<Object>)]
    arguments: Option<Value>,
    /// Call it although every call of it changes something more
    #[schema(nullable = false, rename = "unsafe")]
    r#unsafe: Option<bool>,
}

/// What a call brought.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "observation": "{\"celsius\": 7}", "failed": false, "ms": 112 }))]
pub(crate) struct TriedTool {
    /// What a model would be shown
    pub(crate) observation: String,
    /// It brought nothing, and the observation says why
    pub(crate) failed: bool,
    pub(crate) ms: u64,
}

/// What is looked for on MCP servers.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only the schema is used")]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "server": "files", "only": ["read_file"], "add": true }))]
pub(crate) struct NewDiscovery {
    /// Only this server
    #[schema(nullable = false)]
    server: Option<String>,
    /// Only these tools
    #[schema(nullable = false)]
    only: Option<Vec<String>>,
    /// Make them tools of the workspace
    #[schema(nullable = false)]
    add: Option<bool>,
}

/// What MCP servers have.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DiscoveredTools {
    pub(crate) tools: Vec<DiscoveredTool>,
    /// How servers differ from what is configured of them, a line for each tool; only if they are asked for all, without `add`
    pub(crate) changed: Vec<String>,
    /// Servers that did not answer
    pub(crate) failed: Vec<SilentServer>,
    /// The keys of the tools that were added
    pub(crate) added: Vec<String>,
    /// Tools that can be none here
    pub(crate) not_added: Vec<RefusedTool>,
    /// The version of the configuration, if something was added
    #[schema(nullable)]
    pub(crate) version: Option<u64>,
}

/// A tool on a server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DiscoveredTool {
    pub(crate) server: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) effect: String,
    #[schema(value_type = Vec<Object>)]
    pub(crate) arguments: Vec<Value>,
}

/// A tool on a server that can be none here.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefusedTool {
    pub(crate) server: String,
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// A server that did not say what it has.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SilentServer {
    pub(crate) server: String,
    pub(crate) reason: String,
}
