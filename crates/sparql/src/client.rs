//! Requests to an endpoint: bounded in time and bytes, tried again where that may help.

use crate::address::{Address, WayIn};
use crate::error::RemoteError;
use crate::results;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use std::error::Error as _;
use std::time::Duration;
use trellis_domain::rdf::Term;
use url::Url;

const CONNECT: Duration = Duration::from_secs(5);
/// Before the second attempt; four times as long before the next one. All requests can be repeated.
const PAUSE: Duration = Duration::from_millis(100);
const ATTEMPTS: u32 = 3;
/// Of one answer.
const MOST_BYTES: usize = 32 << 20;
/// Of what an endpoint says is wrong.
const SHOWN: usize = 200;

#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    address: Address,
    time: Duration,
}

/// What is sent, and what it is.
struct Sending {
    method: Method,
    url: Url,
    kind: &'static str,
    body: String,
}

impl Client {
    pub(crate) fn new(address: Address, time: Duration) -> Result<Self, RemoteError> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Somebody else may have been faster, which is as good.
            drop(rustls::crypto::ring::default_provider().install_default());
        }
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("trellis/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT.min(time))
            .timeout(time)
            // Credentials are not carried to where they were not meant for.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false);
        if address.query.scheme() == "http" {
            // Certificates are not needed, and a small container may have none.
            builder = builder.tls_certs_only([]);
        }
        if is_this_machine(&address.query) {
            builder = builder.no_proxy();
        }
        let endpoint = address.to_string();
        let http = builder.build().map_err(|error| RemoteError::Unreachable { endpoint, why: innermost(&error) })?;
        Ok(Self { http, address, time })
    }

    pub(crate) fn shown(&self) -> String {
        self.address.to_string()
    }

    pub(crate) async fn select<const N: usize>(
        &self,
        sparql: &str,
        variables: [&str; N],
    ) -> Result<Vec<[Option<Term>; N]>, RemoteError> {
        let answer = self.query(sparql).await?;
        let rows = results::rows(&answer, variables).and_then(Iterator::collect);
        rows.map_err(|why| self.nonsense(why))
    }

    pub(crate) async fn ask(&self, sparql: &str) -> Result<bool, RemoteError> {
        results::truth(&self.query(sparql).await?).map_err(|why| self.nonsense(why))
    }

    pub(crate) async fn update(&self, sparql: String) -> Result<(), RemoteError> {
        let (method, url) = (Method::POST, self.address.update.clone());
        self.send(&Sending { method, url, kind: "application/sparql-update; charset=utf-8", body: sparql })
            .await
            .map(drop)
    }

    /// Makes these the triples of a graph, whatever it had.
    pub(crate) async fn put(&self, graph: &str, triples: String) -> Result<(), RemoteError> {
        self.store(Method::PUT, graph, triples).await
    }

    /// Adds triples to a graph.
    pub(crate) async fn add(&self, graph: &str, triples: String) -> Result<(), RemoteError> {
        self.store(Method::POST, graph, triples).await
    }

    async fn store(&self, method: Method, graph: &str, body: String) -> Result<(), RemoteError> {
        let mut url = self.address.data.clone();
        url.query_pairs_mut().append_pair("graph", graph);
        self.send(&Sending { method, url, kind: "application/n-triples; charset=utf-8", body }).await.map(drop)
    }

    pub(crate) async fn query(&self, sparql: &str) -> Result<Vec<u8>, RemoteError> {
        let body = url::form_urlencoded::Serializer::new(String::new()).append_pair("query", sparql).finish();
        let (method, url) = (Method::POST, self.address.query.clone());
        self.send(&Sending { method, url, kind: "application/x-www-form-urlencoded", body }).await
    }

    async fn send(&self, sending: &Sending) -> Result<Vec<u8>, RemoteError> {
        let mut pause = PAUSE;
        for _ in 1..ATTEMPTS {
            match self.attempt(sending).await {
                // Whoever took all the time once would take it again.
                Err(error) if error.is_passing() && !matches!(error, RemoteError::TooSlow { .. }) => {
                    tokio::time::sleep(pause).await;
                    pause *= 4;
                }
                done => return done,
            }
        }
        self.attempt(sending).await
    }

    async fn attempt(&self, sending: &Sending) -> Result<Vec<u8>, RemoteError> {
        let request = self.http.request(sending.method.clone(), sending.url.clone());
        let request = self.show_who_asks(request).header(CONTENT_TYPE, sending.kind);
        let request = request.header(ACCEPT, "application/sparql-results+json").body(sending.body.clone());
        let response = request.send().await.map_err(|error| self.failed(&error))?;
        let status = response.status();
        if status.is_success() {
            return self.read(response).await;
        }
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(RemoteError::Denied { endpoint: self.shown(), status: status.as_u16() });
        }
        let said = self.read(response).await.unwrap_or_default();
        let why: String =
            String::from_utf8_lossy(&said).lines().next().unwrap_or_default().chars().take(SHOWN).collect();
        let why = if why.trim().is_empty() { "it does not say why".to_owned() } else { self.without_secret(&why) };
        Err(RemoteError::Refused { endpoint: self.shown(), status: status.as_u16(), why })
    }

    fn show_who_asks(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.address.way_in {
            WayIn::Open => request,
            WayIn::User { name, password } => request.basic_auth(name, Some(password)),
            WayIn::Token(token) => request.bearer_auth(token.expose()),
        }
    }

    /// Endpoints echo what they were sent.
    fn without_secret(&self, text: &str) -> String {
        match &self.address.way_in {
            WayIn::Open => text.to_owned(),
            WayIn::User { password, .. } => {
                trellis_domain::Secret::new(password).map_or_else(|| text.to_owned(), |secret| secret.redact(text))
            }
            WayIn::Token(token) => token.redact(text),
        }
    }

    async fn read(&self, mut response: Response) -> Result<Vec<u8>, RemoteError> {
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| self.failed(&error))? {
            if body.len() + part.len() > MOST_BYTES {
                return Err(RemoteError::TooLarge { endpoint: self.shown(), max: MOST_BYTES });
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    fn failed(&self, error: &reqwest::Error) -> RemoteError {
        if error.is_timeout() && !error.is_connect() {
            return RemoteError::TooSlow { endpoint: self.shown(), seconds: self.time.as_secs() };
        }
        RemoteError::Unreachable { endpoint: self.shown(), why: innermost(error) }
    }

    pub(crate) fn nonsense(&self, why: impl Into<String>) -> RemoteError {
        RemoteError::Nonsense { endpoint: self.shown(), why: why.into() }
    }
}

fn is_this_machine(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The outer reasons only say that something failed.
fn innermost(error: &reqwest::Error) -> String {
    let reasons = std::iter::successors(error.source(), |&error| error.source());
    reasons.last().map_or_else(|| error.to_string(), ToString::to_string)
}
