//! A server that is spoken to: how the conversation begins, and what went wrong.

use super::discovered::discovered;
use super::input::AskedInResults;
use super::program::Running;
use super::servers::{Program, Transport};
use super::web::{Address, Bounded, MOST_BYTES, Trouble};
use crate::http::{Reach, cause, guarded_client};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest, ElicitationCapability,
    FormElicitationCapability, Implementation, ListToolsRequest, PaginatedRequestParams, PingRequest, ProtocolVersion,
    ServerResult, Tool,
};
use rmcp::service::{ClientInitializeError, NotificationContext, RunningService, ServiceError};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::{ClientHandler, ClientLifecycleMode, RoleClient, serve_client_with_lifecycle};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trellis_orchestrator::ports::{LeftOutTool, ToolList};

/// So much of a reason is told.
const TOLD: usize = 1_000;
const ENDED: &str = "it ended before it answered";
const NOT_A_LIST: &str = "it does not list its tools as the protocol says";
const NO_ANSWER: &str = "it does not answer as the protocol says; a form with a field that is no text, number, choice or truth value is enough";
const MOST_TOOLS: usize = 10_000;
const MOST_PAGES: usize = 1_000;

/// What a server is told of us, and what it tells without being asked.
#[derive(Debug)]
struct Client {
    config: ClientConfig,
    /// It has said that its list of tools is another one now.
    list_changed: AtomicBool,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.list_changed.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(super) struct Connection {
    service: RunningService<RoleClient, Client>,
    /// Ends with the connection.
    program: Option<Running>,
    trouble: Trouble,
}

impl Connection {
    pub(super) async fn open(
        transport: &Transport,
        reach: &Arc<Reach>,
        start_timeout: Duration,
    ) -> Result<Self, String> {
        match transport {
            Transport::Stdio(program) => Self::start(program, start_timeout).await,
            Transport::Http(address) => Self::reach(address, reach, start_timeout).await,
        }
    }

    async fn start(program: &Program, start_timeout: Duration) -> Result<Self, String> {
        let (mut running, transport) = Running::start(program)?;
        let mut service = begun(transport, start_timeout, Protocol::Newest).await;
        if service.as_ref().is_err_and(NotBegun::is_late) {
            drop(running);
            let again = Running::start(program)?;
            running = again.0;
            service = begun(again.1, start_timeout, Protocol::Older).await;
        }
        match service {
            Ok(service) => Ok(Self { service, program: Some(running), trouble: Trouble::default() }),
            Err(why) => Err(format!("`{}` was started, but {why}{}", program.command, running.last_words().await)),
        }
    }

    async fn reach(address: &Address, reach: &Arc<Reach>, start_timeout: Duration) -> Result<Self, String> {
        reach.check(&address.url).map_err(|refused| refused.to_string())?;
        let client = guarded_client(reach).map_err(|error| format!("no address can be called: {error}"))?;
        let config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
            .custom_headers(address.headers.iter().cloned().collect());
        let trouble = Trouble::default();
        let transport = StreamableHttpClientTransport::with_client(Bounded::new(client, Arc::clone(&trouble)), config);
        let service = begun(transport, start_timeout, Protocol::Newest).await;
        let service = service.map_err(|why| format!("{}: {why}", place(address)))?;
        Ok(Self { service, program: None, trouble })
    }

    pub(super) fn is_over(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    pub(super) async fn call(&self, call: CallToolRequestParams) -> Result<CallToolResponse, String> {
        self.expect_more();
        match self.service.call_tool_once(call).await {
            Ok(answer) => Ok(answer),
            Err(ServiceError::UnexpectedResponse) => Err(NO_ANSWER.to_owned()),
            Err(error) => Err(self.why(error).await),
        }
    }

    /// The tools that the server has. A server may have an endless list of them.
    pub(super) async fn tools(&self, server: &str) -> Result<ToolList, String> {
        let (mut list, mut bytes, mut cursors) = (ToolList::default(), 0, Vec::new());
        self.service.service().list_changed.store(false, Ordering::Relaxed);
        loop {
            self.expect_more();
            let asked = PaginatedRequestParams::default().with_cursor(cursors.last().cloned());
            let page = match self.service.list_tools(Some(asked.clone())).await {
                Ok(page) => Page { tools: page.tools, unreadable: Vec::new(), next: page.next_cursor },
                Err(ServiceError::UnexpectedResponse) => self.tool_by_tool(asked).await?,
                Err(error) => return Err(self.why(error).await),
            };
            let found = page.tools.iter().map(|tool| discovered(server, tool));
            list.tools.extend(found.inspect(|tool| bytes += tool.item("").to_string().len()));
            let unreadable = page.unreadable.into_iter();
            let unreadable = unreadable.inspect(|(name, reason)| bytes += name.len() + reason.len());
            let left_out = |(name, reason)| LeftOutTool { server: server.to_owned(), name, reason };
            list.left_out.extend(unreadable.map(left_out));
            let Some(next) = page.next.filter(|next| !next.is_empty()) else { return Ok(list) };
            bytes += next.len();
            let count = list.tools.len() + list.left_out.len();
            if count > MOST_TOOLS || bytes > MOST_BYTES || cursors.len() > MOST_PAGES || cursors.contains(&next) {
                return Err("its list of tools has no end".to_owned());
            }
            cursors.push(next);
        }
    }

    /// A page that the SDK takes for nothing because of some of its tools: the others are there all the same.
    async fn tool_by_tool(&self, asked: PaginatedRequestParams) -> Result<Page, String> {
        self.expect_more();
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(asked));
        let answer = match self.service.send_request(request).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.why(error).await),
        };
        let ServerResult::CustomResult(page) = answer else { return Err(NOT_A_LIST.to_owned()) };
        Page::read(&page.0).ok_or_else(|| NOT_A_LIST.to_owned())
    }

    /// Whether the server has said that its list is another one since it was asked for it.
    pub(super) fn has_another_list(&self) -> bool {
        self.service.service().list_changed.load(Ordering::Relaxed)
    }

    /// Whether the server answers anything at all.
    pub(super) async fn gives_a_sign(&self) -> bool {
        let ping = self.service.send_request(ClientRequest::PingRequest(PingRequest::default())).await;
        // One that does not know this answers so.
        !matches!(ping, Err(ServiceError::TransportClosed | ServiceError::TransportSend(_)))
    }

    /// Nobody is listened to any more; whoever waits is told so.
    pub(super) fn end(&self) {
        self.service.cancellation_token().cancel();
        if let Some(program) = &self.program {
            program.kill();
        }
    }

    fn expect_more(&self) {
        if let Some(program) = &self.program {
            program.expect_more();
        }
    }

    async fn why(&self, error: ServiceError) -> String {
        let words = match &self.program {
            Some(program) if self.is_over() => program.last_words().await,
            Some(_) | None => self.trouble.lock().take().map(|why| format!(" ({why})")).unwrap_or_default(),
        };
        let why = if let ServiceError::McpError(error) = error {
            error.message.into_owned()
        } else if let ServiceError::TransportSend(error) = error {
            of_transport(&*error.error)
        } else if matches!(error, ServiceError::TransportClosed) {
            "the server has gone away".to_owned()
        } else {
            error.to_string()
        };
        short(&why) + &words
    }
}

/// A part of a list of tools.
#[derive(Debug)]
struct Page {
    tools: Vec<Tool>,
    /// What is not described as the protocol says, and why not.
    unreadable: Vec<(String, String)>,
    next: Option<String>,
}

impl Page {
    fn read(page: &Value) -> Option<Self> {
        let next = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        let mut read = Self { tools: Vec::new(), unreadable: Vec::new(), next };
        for (tool, number) in page.get("tools")?.as_array()?.iter().zip(1..) {
            match serde_json::from_value(tool.clone()) {
                Ok(tool) => read.tools.push(tool),
                Err(error) => {
                    let name = tool.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
                    let name = name.map_or_else(|| format!("tool {number}"), short);
                    let reason = format!("it is not described as the protocol says: {}", short(&error.to_string()));
                    read.unreadable.push((name, reason));
                }
            }
        }
        Some(read)
    }
}

/// Where a server is, without what may be secret.
fn place(address: &Address) -> String {
    let mut url = address.url.clone();
    url.set_query(None);
    url.to_string()
}

/// How a conversation is begun.
#[derive(Debug, Clone, Copy)]
enum Protocol {
    /// As the newest servers want it; and as older ones do, if they do not know that.
    Newest,
    Older,
}

/// Why a conversation has not begun.
enum NotBegun {
    Error(Box<ClientInitializeError>),
    TimedOut(Duration),
}

impl NotBegun {
    /// The SDK waits ten seconds for an answer to how newer clients begin, and then begins as older ones do. A program that
    /// is installed first needs longer, and its answer to the first is taken for one to the second.
    fn is_late(&self) -> bool {
        let is_other = |error: &ClientInitializeError| {
            matches!(
                error,
                ClientInitializeError::UncorrelatedErrorResponse { .. }
                    | ClientInitializeError::ConflictInitResponseId(..)
            )
        };
        matches!(self, Self::Error(error) if is_other(error))
    }
}

impl std::fmt::Display for NotBegun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Error(error) => f.write_str(&reason(error)),
            Self::TimedOut(limit) => write!(f, "it did not answer within {} s", limit.as_secs_f32()),
        }
    }
}

async fn begun<T, E, A>(
    transport: T,
    start_timeout: Duration,
    protocol: Protocol,
) -> Result<RunningService<RoleClient, Client>, NotBegun>
where
    T: rmcp::transport::IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let us = Implementation::new("trellis", env!("CARGO_PKG_VERSION"));
    let forms = ElicitationCapability::new().with_form(FormElicitationCapability::default());
    let capabilities = ClientCapabilities::builder().enable_elicitation_with(forms).build();
    let mut config = ClientConfig::new(capabilities, us);
    let lifecycle = match protocol {
        Protocol::Newest => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
        Protocol::Older => {
            config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
            ClientLifecycleMode::Initialize
        }
    };
    let client = Client { config, list_changed: AtomicBool::new(false) };
    let transport = AskedInResults(transport.into_transport());
    let begun = tokio::time::timeout(start_timeout, serve_client_with_lifecycle(client, transport, lifecycle));
    match begun.await {
        Ok(Ok(service)) => Ok(service),
        Ok(Err(error)) => Err(NotBegun::Error(Box::new(error))),
        Err(_) => Err(NotBegun::TimedOut(start_timeout)),
    }
}

fn reason(error: &ClientInitializeError) -> String {
    if matches!(error, ClientInitializeError::ConnectionClosed(_)) {
        ENDED.to_owned()
    } else if let ClientInitializeError::TransportError { error, .. } = error {
        of_transport(&*error.error)
    } else if let ClientInitializeError::JsonRpcError(error) = error {
        short(&error.message)
    } else if let ClientInitializeError::LegacyFallbackFailed { fallback, .. } = error {
        // How older servers are spoken to is what counts for those that know nothing newer.
        reason(fallback)
    } else {
        short(&error.to_string())
    }
}

/// What somebody can mend.
fn of_transport(error: &(dyn std::error::Error + 'static)) -> String {
    let has_ended = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    if error.downcast_ref::<std::io::Error>().is_some_and(has_ended) {
        return ENDED.to_owned();
    }
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => cause(error),
        Some(StreamableHttpError::UnexpectedServerResponse(what)) => short(what),
        Some(_) | None => short(&error.to_string()),
    }
}

/// A server may quote itself at length.
fn short(text: &str) -> String {
    let end = text.floor_char_boundary(TOLD);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}
