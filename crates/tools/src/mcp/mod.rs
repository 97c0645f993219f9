//! Tools on MCP servers: programs of the operator, and addresses.
//!
//! Programs are named in the operator's own file and nowhere else: whoever may configure a workspace cannot start any.
//! The addresses of `mcp` items are a workspace's own, and only called where the operator allows it.

mod connection;
mod content;
mod discovered;
mod input;
mod left_behind;
mod program;
mod server_client;
mod servers;
mod web;

pub use left_behind::{Guard, stand_guard};
pub use servers::{Listed, Offer, Server, Servers, read_servers};

use crate::http::Reach;
use content::Told;
use parking_lot::Mutex;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use rmcp::model::{CallToolRequestParams, JsonObject, RequestMetaObject};
use serde_json::Value;
use server_client::ServerClient;
use servers::{AT_ONCE, START_TIMEOUT, Transport};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Workspace;
use trellis_domain::config::{McpItem, Settings, ToolItem};
use trellis_orchestrator::ports::{
    BoxFuture, CallInput, ToolCall, ToolError, ToolList, ToolOutput, ToolQuestion, ToolServers,
};
use web::Address;

/// Where a call says that it is the same as one before.
const KEY: &str = "trellis/idempotency-key";
/// How often a call is made again that its server puts off, and after how long the first time.
const MOST_AGAIN: u32 = 5;
const AGAIN_AFTER: Duration = Duration::from_millis(250);
/// Connections to addresses of workspaces that are kept.
const MOST_KEPT: usize = 64;

/// Calls tools on MCP servers.
#[derive(Debug, Default)]
pub struct Mcp {
    /// The operator's, by name.
    servers: BTreeMap<String, Offered>,
    /// Those of workspaces, the latest used last.
    others: Mutex<Vec<(Place, Arc<ServerClient>)>>,
    reach: Arc<Reach>,
}

/// A server of the operator's, or why it cannot be used, for those who may.
#[derive(Debug)]
struct Offered {
    offer: Offer,
    client: Result<Arc<ServerClient>, String>,
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
    /// `reach` is what addresses of workspaces are held against. The operator's own servers are reached anyway. With a
    /// `guard`, programs end also if this process is killed.
    pub fn new(servers: Servers, reach: Reach, guard: Option<&Guard>) -> Self {
        let line = |mut server: Server| {
            let reach = match &mut server.transport {
                Transport::Http(address) => Reach { hosts: vec![host_of(&address.url)], private: true },
                Transport::Stdio(program) => {
                    program.guard = guard.cloned();
                    Reach::default()
                }
            };
            Arc::new(ServerClient::new(server, Arc::new(reach)))
        };
        let offered = |Listed { offer, server }| Offered { offer, client: server.map(line) };
        let servers = servers.into_iter().map(|(name, listed)| (name, offered(listed))).collect();
        Self { servers, others: Mutex::default(), reach: Arc::new(reach) }
    }

    /// Why a tool cannot be called here, as far as that shows before it is.
    pub(crate) fn obstacle(&self, workspace: &Workspace, tool: &ToolItem, settings: &Settings) -> Option<String> {
        match tool.setting("server") {
            Some(name) => self.tool(workspace, name, remote(tool)).err(),
            None => item(tool, settings).and_then(|item| self.address(item).map(drop)).err(),
        }
    }

    /// A server that the workspace may use. One of others is as unknown as one that nobody has named.
    fn offered(&self, workspace: &Workspace, name: &str) -> Result<&Offered, String> {
        let unknown =
            || format!("there is no MCP server `{name}`; the operator names servers in the file of --mcp-config");
        self.servers.get(name).filter(|server| server.offer.is_for(workspace)).ok_or_else(unknown)
    }

    fn server(&self, workspace: &Workspace, name: &str) -> Result<&Arc<ServerClient>, String> {
        let server = self.offered(workspace, name)?;
        server.client.as_ref().map_err(|why| format!("the MCP server `{name}` cannot be used: {why}"))
    }

    /// The server of a tool, if the operator lets the workspace use both.
    fn tool(&self, workspace: &Workspace, server: &str, tool: &str) -> Result<&Arc<ServerClient>, String> {
        if let Some(why) = self.refusal(workspace, server, tool) {
            return Err(why);
        }
        self.server(workspace, server)
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
        if let CallInput::Given(given) = &call.input {
            wanted = input::answered(wanted, given);
        }
        let answer = told(&client, wanted, call).await.map_err(|why| client.redacted(why));
        match answer.map_err(|why| ToolError::new(format!("`{name}`: {why}")))? {
            Told::Text(text) => Ok(ToolOutput { text: client.redacted(text), ..ToolOutput::default() }),
            Told::Asks(_) if call.input == CallInput::Nobody => Err(ToolError::new(format!(
                "`{name}`: the server asks for input, and only in a run somebody can be asked"
            ))),
            Told::Asks(mut asks) => {
                let shown = |form| input::shown(form, &|text| client.redacted(text.to_owned()));
                let forms: Result<_, _> = asks.forms.into_iter().map(shown).collect();
                asks.forms = forms.map_err(|why| ToolError::new(format!("`{name}`: {why}")))?;
                Ok(ToolOutput { asks: Some(Box::new(asks)), ..ToolOutput::default() })
            }
        }
    }

    /// Where a call goes, and what the tool is called there.
    fn client(&self, call: &ToolCall) -> Result<(Arc<ServerClient>, String), String> {
        if let Some(name) = call.tool.setting("server") {
            let remote = remote(&call.tool);
            return Ok((Arc::clone(self.tool(&call.scope.workspace, name, remote)?), remote.to_owned()));
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

    /// The tools that one of the operator's servers has for a workspace.
    async fn discovered(&self, workspace: &Workspace, server: &str) -> Result<ToolList, String> {
        let client = self.server(workspace, server)?;
        let mut list = client.tools(server).await.map_err(|why| client.redacted(why))?;
        let offer = &self.offered(workspace, server)?.offer;
        list.tools.retain(|tool| offer.has(&tool.name));
        list.left_out.retain(|tool| offer.has(&tool.name));
        for tool in &mut list.left_out {
            tool.reason = client.redacted(std::mem::take(&mut tool.reason));
        }
        Ok(list)
    }
}

impl ToolServers for Mcp {
    fn names(&self, workspace: &Workspace) -> Vec<String> {
        let known = self.servers.iter().filter(|(_, server)| server.offer.is_for(workspace));
        known.map(|(name, _)| name.clone()).collect()
    }

    fn discover<'a>(&'a self, workspace: &'a Workspace, server: &'a str) -> BoxFuture<'a, Result<ToolList, String>> {
        Box::pin(self.discovered(workspace, server))
    }

    fn has_another_list(&self, workspace: &Workspace, server: &str) -> bool {
        let open = self.server(workspace, server).ok().and_then(|client| client.open());
        open.is_some_and(|connection| connection.has_another_list())
    }

    fn refusal(&self, workspace: &Workspace, server: &str, tool: &str) -> Option<String> {
        // Of a server that is not known here nothing is known of its tools either.
        let offer = &self.offered(workspace, server).ok()?.offer;
        let only = offer.tools.as_ref().filter(|only| !only.contains(tool))?;
        let only = only.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let only = if only.is_empty() { "none".to_owned() } else { only };
        Some(format!("the operator does not offer the tool `{tool}` of the MCP server `{server}`; offered are: {only}"))
    }
}

/// What a server says in the end. One that asks nobody anything, and only wants to be called again with its state, is.
async fn told(client: &Arc<ServerClient>, mut wanted: CallToolRequestParams, call: &ToolCall) -> Result<Told, String> {
    for round in 0..MOST_AGAIN {
        let state = match content::told(client.call(wanted.clone(), call.timeout).await?)? {
            Told::Asks(ToolQuestion { forms, state: Some(state) }) if forms.is_empty() => state,
            Told::Asks(ToolQuestion { forms, .. }) if forms.is_empty() => {
                return Err("the server asks for nothing".to_owned());
            }
            told @ (Told::Text(_) | Told::Asks(_)) => return Ok(told),
        };
        wanted.input_responses = None;
        wanted.request_state = Some(state);
        tokio::time::sleep(AGAIN_AFTER * (1 << round)).await;
    }
    Err(format!("the server wanted to be called again {MOST_AGAIN} times"))
}

/// What a tool is called on its server.
fn remote(tool: &ToolItem) -> &str {
    tool.setting("mcp-tool").unwrap_or_default()
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
