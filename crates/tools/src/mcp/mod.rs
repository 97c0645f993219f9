//! Tools on MCP servers: programs of the operator, and addresses.
//!
//! Programs are named in the operator's own file and nowhere else: whoever may configure a workspace cannot start any.
//! The addresses of `mcp` items are a workspace's own, and only called where the operator allows it.

mod connection;
mod content;
mod discovered;
mod program;
mod server_client;
mod servers;
mod web;

pub use servers::{Server, Servers, read_servers};

use crate::http::Reach;
use parking_lot::Mutex;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use rmcp::model::{CallToolRequestParams, JsonObject, RequestMetaObject};
use serde_json::Value;
use server_client::ServerClient;
use servers::{AT_ONCE, START_TIMEOUT, Transport};
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::Workspace;
use trellis_domain::config::{McpItem, Settings, ToolItem};
use trellis_orchestrator::ports::{BoxFuture, Discovered, ToolCall, ToolError, ToolOutput, ToolServers};
use web::Address;

/// Where a call says that it is the same as one before.
const KEY: &str = "trellis/idempotency-key";
/// Connections to addresses of workspaces that are kept.
const MOST_KEPT: usize = 64;

/// Calls tools on MCP servers.
#[derive(Debug, Default)]
pub struct Mcp {
    /// The operator's, by name, or why one cannot be used.
    servers: BTreeMap<String, Result<Arc<ServerClient>, String>>,
    /// Those of workspaces, the latest used last.
    others: Mutex<Vec<(Place, Arc<ServerClient>)>>,
    reach: Arc<Reach>,
}

/// An address of a workspace, with what is sent there. No workspace talks over the connection of another.
#[derive(Clone, PartialEq)]
struct Place {
    workspace: Workspace,
    url: String,
    token: Option<String>,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.url, self.workspace)
    }
}

impl Mcp {
    /// `reach` is what addresses of workspaces are held against. The operator's own servers are reached anyway.
    pub fn new(servers: Servers, reach: Reach) -> Self {
        let line = |server: Server| {
            let reach = match &server.transport {
                Transport::Http(address) => Reach { hosts: vec![host_of(&address.url)], private: true },
                Transport::Stdio(_) => Reach::default(),
            };
            Arc::new(ServerClient::new(server, Arc::new(reach)))
        };
        let servers = servers.into_iter().map(|(name, server)| (name, server.map(line))).collect();
        Self { servers, others: Mutex::default(), reach: Arc::new(reach) }
    }

    /// The names of the operator's servers.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// Why a tool cannot be called here, as far as that shows before it is.
    pub(crate) fn obstacle(&self, tool: &ToolItem, settings: &Settings) -> Option<String> {
        match tool.setting("server") {
            Some(name) => self.server(name).err(),
            None => item(tool, settings).and_then(|item| self.address(item).map(drop)).err(),
        }
    }

    fn server(&self, name: &str) -> Result<&Arc<ServerClient>, String> {
        let unknown =
            || format!("there is no MCP server `{name}`; the operator names servers in the file of --mcp-config");
        let server = self.servers.get(name).ok_or_else(unknown)?;
        server.as_ref().map_err(|why| format!("the MCP server `{name}` cannot be used: {why}"))
    }

    /// The address of a workspace's own server, if it may be called.
    fn address(&self, item: &McpItem) -> Result<Address, String> {
        let url = Url::parse(&item.url).map_err(|error| format!("the `url` of its `mcp` item is none: {error}"))?;
        self.reach.check(&url).map_err(|refused| refused.to_string())?;
        let mut headers = Vec::new();
        if let Some(token) = item.auth_token.as_deref().filter(|token| !token.is_empty()) {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| "the `auth-token` of its `mcp` item has characters that no token may have")?;
            value.set_sensitive(true);
            headers.push((AUTHORIZATION, value));
        }
        Ok(Address { url, headers })
    }

    pub(crate) async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let (client, name) = self.client(call).map_err(ToolError::new)?;
        let mut wanted = CallToolRequestParams::new(name.clone());
        // What a model leaves out because it may, it often writes as null.
        let given = call.arguments.iter().filter(|(name, value)| !value.is_null() || is_required(&call.tool, name));
        let given: JsonObject = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        wanted = wanted.with_arguments(given);
        let mut meta = RequestMetaObject::default();
        meta.0.insert(KEY.to_owned(), call.idempotency_key.clone().into());
        wanted.meta = Some(meta);
        let answer = client.call(wanted, call.timeout).await.and_then(content::told);
        let answer = answer.map_err(|why| client.redacted(why)).map(|text| client.redacted(text));
        let text = answer.map_err(|why| ToolError::new(format!("`{name}`: {why}")))?;
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }

    /// Where a call goes, and what the tool is called there.
    fn client(&self, call: &ToolCall) -> Result<(Arc<ServerClient>, String), String> {
        let remote = call.tool.setting("mcp-tool").unwrap_or_default();
        if let Some(name) = call.tool.setting("server") {
            return Ok((Arc::clone(self.server(name)?), remote.to_owned()));
        }
        let item = item(&call.tool, &call.settings)?;
        let address = self.address(item)?;
        let (workspace, url) = (call.scope.workspace.clone(), item.url.clone());
        let place = Place { workspace, url, token: item.auth_token.clone() };
        Ok((self.kept(place, address), item.remote_name.clone()))
    }

    fn kept(&self, place: Place, address: Address) -> Arc<ServerClient> {
        let mut others = self.others.lock();
        let known = others.iter().position(|(known, _)| *known == place).map(|known| others.remove(known).1);
        let line = known.unwrap_or_else(|| {
            let (start_timeout, at_once) = (START_TIMEOUT, AT_ONCE);
            let secrets = place.token.as_deref().and_then(servers::secret).into_iter().collect();
            let server = Server { transport: Transport::Http(address), start_timeout, timeout: None, at_once, secrets };
            Arc::new(ServerClient::new(server, Arc::clone(&self.reach)))
        });
        others.push((place, Arc::clone(&line)));
        let too_many = others.len().saturating_sub(MOST_KEPT);
        others.drain(..too_many);
        line
    }

    /// The tools that one of the operator's servers has.
    pub async fn discover(&self, server: &str) -> Result<Vec<Discovered>, String> {
        let client = self.server(server)?;
        client.tools(server).await.map_err(|why| client.redacted(why))
    }
}

impl ToolServers for Mcp {
    fn names(&self, _workspace: &Workspace) -> Vec<String> {
        self.servers.keys().cloned().collect()
    }

    fn discover<'a>(
        &'a self,
        _workspace: &'a Workspace,
        server: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Discovered>, String>> {
        Box::pin(self.discover(server))
    }
}

fn item<'s>(tool: &ToolItem, settings: &'s Settings) -> Result<&'s McpItem, String> {
    let key = tool.setting("mcp-tool").unwrap_or_default();
    settings.mcp.get(key).ok_or_else(|| format!("there is no `mcp` item `{key}`"))
}

/// Whether the server wants an argument, whatever it is.
fn is_required(tool: &ToolItem, name: &str) -> bool {
    let mut arguments = tool.settings.get("arguments").and_then(Value::as_array).into_iter().flatten();
    arguments.any(|argument| argument["name"] == *name && argument["required"] == true)
}

fn host_of(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or_default();
    format!("{}:{port}", url.host_str().unwrap_or_default())
}

#[cfg(test)]
mod tests;
