//! One server: where it is, how it is asked, and what its refusals mean here.

use crate::failure::{Exit, Failure};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::timeout;
use trellis_domain::Workspace;
use trellis_domain::run::RunState;
use trellis_models::{EndpointError, address, cause, client};
use trellis_store::Holder;

const TOKEN: &str = "TRUSTGRAPH_TOKEN";
const CONNECT: Duration = Duration::from_secs(10);
/// How long a reply may take.
const REPLY_TIMEOUT: Duration = Duration::from_mins(1);

/// Why this server is asked, and so what to do if it cannot be.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// `--url`
    Flag,
    /// `TRUSTGRAPH_URL`
    Environment,
    /// It has the data folder.
    Lock(Holder),
}

/// A server that commands are passed on to.
#[derive(Debug)]
pub(crate) struct Server {
    client: Client,
    base: Url,
    /// The address without anything that is nobody's business.
    shown: String,
    origin: Origin,
    with_token: bool,
    /// The workspace that was named; else the server takes that of the token.
    pub(super) workspace: Option<Workspace>,
}

/// Why there is no reply to work with.
#[derive(Debug)]
pub(super) enum ServerTrouble {
    /// Nobody is there, or the connection broke: this may pass.
    Lost(String),
    Refused(ServerRefusal),
    /// Somebody else lives there.
    Foreign(String),
}

/// What a server says when it does not do as asked.
#[derive(Debug)]
pub(super) struct ServerRefusal {
    pub(super) status: StatusCode,
    pub(super) kind: String,
    pub(super) message: String,
    /// The state of a run that had ended already.
    pub(super) state: Option<RunState>,
}

impl Server {
    pub(crate) fn new(base: &str, origin: Origin, workspace: Option<Workspace>) -> Result<Self, Failure> {
        let wrong = |error: EndpointError| {
            let whose = match &origin {
                Origin::Flag => "--url",
                Origin::Environment => "TRUSTGRAPH_URL",
                Origin::Lock(_) => "the lock of the data folder",
            };
            let why = match error {
                EndpointError::NotAnAddress(given) => {
                    format!("`{given}` is not a web address; write one such as http://localhost:8888/")
                }
                error @ (EndpointError::UnusableKey(_)
                | EndpointError::UnusableHeader(_)
                | EndpointError::NoSecurity(_)) => error.to_string(),
            };
            Failure::usage(format!("{whose}: {why}"))
        };
        let (mut base, shown) = address(base, "/").map_err(wrong)?;
        base.set_query(None);
        base.set_fragment(None);
        let mut headers = HeaderMap::new();
        let token = std::env::var(TOKEN).unwrap_or_default();
        let with_token = !token.trim().is_empty();
        if with_token {
            let unusable = |_| Failure::usage(format!("{TOKEN} holds characters that cannot be sent; copy it again"));
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.trim())).map_err(unusable)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let client = client(&base, headers, CONNECT).map_err(wrong)?;
        Ok(Self { client, base, shown, origin, with_token, workspace })
    }

    pub(crate) fn url(&self) -> &str {
        &self.shown
    }

    /// What has to be written behind a command so that it goes to the same place again.
    pub(crate) fn flags(&self) -> String {
        match &self.origin {
            Origin::Flag => format!(" --url {}", self.shown),
            Origin::Environment | Origin::Lock(_) => String::new(),
        }
    }

    /// The workspace that was named, for requests that name it in their body.
    pub(super) fn named_workspace(&self) -> Option<&Workspace> {
        self.workspace.as_ref()
    }

    /// A request to a path below the API's root, in the workspace that was named.
    pub(super) fn request(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> RequestBuilder {
        self.at(method, &[&["api", "v1"], path].concat(), query)
    }

    /// The same to a path that is not the API's.
    pub(super) fn at_root(&self, method: Method, path: &[&str]) -> RequestBuilder {
        self.at(method, path, &[])
    }

    fn at(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let workspace = self.workspace.as_ref().map(|workspace| ("workspace", workspace.as_str()));
        let mut pairs = query.iter().copied().chain(workspace).peekable();
        if pairs.peek().is_some() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        self.client.request(method, url)
    }

    /// Sends a request and waits for the beginning of a reply that is none of a refusal.
    pub(super) async fn send(&self, request: RequestBuilder, time_limit: Duration) -> Result<Response, ServerTrouble> {
        let silent = |_| ServerTrouble::Lost(format!("no reply for {} s", time_limit.as_secs()));
        let response = timeout(time_limit, request.send()).await.map_err(silent)?.map_err(|error| lost(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if let (true, Some(place)) = (status.is_redirection(), response.headers().get(LOCATION)) {
            let place = String::from_utf8_lossy(place.as_bytes()).into_owned();
            return Err(ServerTrouble::Foreign(format!("it has moved to {place}; use that address")));
        }
        let path = response.url().path().to_owned();
        let body = timeout(time_limit, response.bytes()).await.map_err(silent)?.unwrap_or_default();
        Err(refusal(status, &path, &body))
    }

    /// The reply as JSON.
    pub(super) async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ServerTrouble> {
        self.json_within(request, REPLY_TIMEOUT).await
    }

    pub(super) async fn json_within<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        time_limit: Duration,
    ) -> Result<T, ServerTrouble> {
        let response = self.send(request, time_limit).await?;
        let path = response.url().path().to_owned();
        let silent = |_| ServerTrouble::Lost(format!("the reply stopped for {} s", time_limit.as_secs()));
        let bytes = timeout(time_limit, response.bytes()).await.map_err(silent)?.map_err(|error| lost(&error))?;
        serde_json::from_slice(&bytes).map_err(|error| {
            ServerTrouble::Foreign(format!("its reply to {path} cannot be read: {error}; is it a Trellis server?"))
        })
    }

    /// The same for a request with a large body: it may take as long as something of it is sent.
    pub(super) async fn json_while<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        sent: &AtomicU64,
        silent: Duration,
    ) -> Result<T, ServerTrouble> {
        let stalled = async {
            let mut before = None;
            loop {
                let now = sent.load(Ordering::Relaxed);
                if before.replace(now) == Some(now) {
                    return;
                }
                tokio::time::sleep(silent).await;
            }
        };
        tokio::select! {
            reply = self.json_within(request, Duration::from_hours(24 * 365)) => reply,
            () = stalled => Err(ServerTrouble::Lost(format!("it took nothing for {} s", silent.as_secs()))),
        }
    }

    /// The same, with trouble told to a person.
    pub(super) async fn ask<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Failure> {
        self.json(request).await.map_err(|trouble| self.failure(trouble))
    }

    /// The same for what may take longer.
    pub(super) async fn ask_within<T: DeserializeOwned>(
        &self,
        request: RequestBuilder,
        time_limit: Duration,
    ) -> Result<T, Failure> {
        self.json_within(request, time_limit).await.map_err(|trouble| self.failure(trouble))
    }

    pub(super) fn failure(&self, trouble: ServerTrouble) -> Failure {
        match trouble {
            ServerTrouble::Lost(why) => Failure::new(Exit::Unreachable, self.unreachable(&why)),
            ServerTrouble::Foreign(what) => Failure::new(Exit::Unreachable, format!("{}: {what}", self.shown)),
            ServerTrouble::Refused(refusal) => self.refused(refusal),
        }
    }

    fn unreachable(&self, why: &str) -> String {
        let url = &self.shown;
        match &self.origin {
            Origin::Flag => format!(
                "cannot reach {url}: {why}; start it with `trellis serve`, or leave --url out to work on the data folder"
            ),
            Origin::Environment => format!(
                "cannot reach {url}, which TRUSTGRAPH_URL names: {why}; start it with `trellis serve`, or unset the \
                 variable to work on the data folder"
            ),
            Origin::Lock(holder) => format!(
                "the data folder is in use by {holder}, which cannot be reached: {why}; if it is stopping, try again \
                 in a moment"
            ),
        }
    }

    fn refused(&self, refusal: ServerRefusal) -> Failure {
        let ServerRefusal { status, kind, message, .. } = refusal;
        let url = &self.shown;
        match status {
            StatusCode::UNAUTHORIZED if self.with_token => {
                Failure::new(Exit::NotAllowed, format!("{url} does not know the token in {TOKEN}"))
            }
            StatusCode::UNAUTHORIZED => {
                Failure::new(Exit::NotAllowed, format!("{url} wants a token; set {TOKEN} to one that it knows"))
            }
            StatusCode::FORBIDDEN => Failure::new(Exit::NotAllowed, format!("{url}: {message}")),
            StatusCode::NOT_FOUND if kind == "no-workspace" => {
                let name = self.workspace.as_ref().map(|name| format!(" `{name}`")).unwrap_or_default();
                Failure::new(Exit::NotFound, format!("{url} has no workspace{name}; name one that is there"))
            }
            StatusCode::NOT_FOUND => Failure::new(Exit::NotFound, format!("{url}: {message}")),
            StatusCode::UNPROCESSABLE_ENTITY if kind == "invalid-configuration" => {
                Failure::new(Exit::InvalidConfig, message)
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Failure::new(Exit::Limit, message),
            StatusCode::SERVICE_UNAVAILABLE if kind == "unavailable" => {
                Failure::new(Exit::DataFolder, format!("{url}: {message}"))
            }
            status if may_pass(status) => Failure::new(Exit::Unreachable, self.unreachable(&message)),
            status if status.is_client_error() => Failure::usage(message),
            _ => Failure::unexpected(format!("{url}: {message}")),
        }
    }
}

/// Refusals of a server that is just being started, stopped or replaced.
pub(super) fn may_pass(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT)
}

fn lost(error: &reqwest::Error) -> ServerTrouble {
    let why = cause(error);
    ServerTrouble::Lost(if error.is_connect() { why } else { format!("the connection broke: {why}") })
}

/// Reads a refusal, in our own shape or in that of the paths which stock clients use.
pub(super) fn refusal(status: StatusCode, path: &str, body: &[u8]) -> ServerTrouble {
    #[derive(Deserialize)]
    struct RefusalBody {
        error: Value,
    }
    let told: Option<RefusalBody> = serde_json::from_slice(body).ok();
    let known = told.as_ref().map(|told| &told.error).filter(|error| error.is_object() || error.is_string());
    match known {
        Some(error) => {
            let text = |name: &str| error[name].as_str().map(str::to_owned);
            ServerTrouble::Refused(ServerRefusal {
                status,
                kind: text("type").unwrap_or_default(),
                message: text("message").or_else(|| error.as_str().map(str::to_owned)).unwrap_or_default(),
                state: text("state").and_then(|word| word.parse().ok()),
            })
        }
        // A proxy may speak for a server that is away.
        None if may_pass(status) => ServerTrouble::Lost(format!("it answers {status}")),
        None if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN => {
            let message = format!("it answers {status}");
            ServerTrouble::Refused(ServerRefusal { status, kind: String::new(), message, state: None })
        }
        None => ServerTrouble::Foreign(format!("it answers {status} to {path}; is it a Trellis server?")),
    }
}
