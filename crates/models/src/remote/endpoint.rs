//! One address of a provider: requests go out, each with a timeout, and errors say what went wrong.

use super::access::{Access, Credentials, Unsigned};
use super::answer::Answer;
use super::connection::{address, cause, client, is_about_tls, labels};
use super::failure::{self, ErrorBody, Failure};
use crate::described::Described;
use crate::provider::{ModelRequest, ProviderError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use percent_encoding::percent_decode_str;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url};
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use trellis_domain::Secret;
use trellis_domain::parts::ReplyPart;
use trellis_orchestrator::ports::World;

/// Nothing that a person would write by chance.
const LONG_SECRET: usize = 12;
/// How much of an error's body is read.
const LONGEST_ERROR: usize = 64 << 10;
/// How long the description of a model may be: it holds its licence and its template.
const LONGEST_DESCRIPTION: usize = 4 << 20;
/// How long it is waited for at most: the first answer of the model waits for it too.
const DESCRIBED_WITHIN: Duration = Duration::from_secs(2);

/// How providers are called: how long they are waited for, how many calls they get at a time, what they are told
/// besides the texts, and what is kept of it. Dropping a call's future ends it at once.
#[derive(Debug, Clone, PartialEq)]
pub struct CallSettings {
    pub connect_timeout: Duration,
    /// From the request to the first sign of a reply.
    pub first_token_timeout: Duration,
    /// Silence in the middle of a reply. A keep-alive counts as a sign of life.
    pub between_tokens_timeout: Duration,
    /// From the request to the end of the reply.
    pub total_timeout: Duration,
    /// Calls at a time, of all models of a provider together.
    pub concurrency: usize,
    pub sampling: Sampling,
    /// Keeps what was sent, without keys, with the record of each call.
    pub keep_requests: bool,
    /// Offers tools as functions. A model that refuses them is asked in text.
    pub native_tools: bool,
    /// Finds out whether a model obeys a schema, before a record says that it had to.
    pub probe: bool,
    /// Asks for task type and pattern in one call. If it is not set, models on this machine or in a private network are asked
    /// for one after the other: they are mostly small, and small models choose better that way.
    pub one_call_routing: Option<bool>,
    /// Whether a model may call several functions in one reply. If it is not set, that is as the dialect usually has it.
    pub parallel_calls: Option<bool>,
    /// How much a model can read and write together, if that is known.
    pub context_tokens: Option<u64>,
    pub prices: Option<Prices>,
}

/// What a million tokens cost, in whatever currency.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Prices {
    pub input: f64,
    /// Of input that the provider had read before; like any other input if it is not set.
    pub cached_input: Option<f64>,
    pub output: f64,
}

/// How a model draws its words. What is not set is left to the provider.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    /// The longest reply.
    pub max_tokens: Option<u32>,
    /// How much a model thinks before it answers, in the words of its provider.
    pub reasoning_effort: Option<String>,
    /// How long Ollama keeps a model in memory: `5m`, or seconds.
    pub keep_alive: Option<Value>,
    /// Whether Ollama lets a model think, or how much.
    pub think: Option<Value>,
}

impl Prices {
    /// What a call cost, in millionths. None if it is not known what was read and written.
    pub(super) fn cost(&self, read: Option<u64>, cached: Option<u64>, written: Option<u64>) -> Option<u64> {
        let (read, written) = (read?, written?);
        let cached = cached.unwrap_or(0).min(read);
        #[expect(clippy::cast_precision_loss, reason = "so many tokens were never counted")]
        let cost = |tokens: u64, price: f64| tokens as f64 * price;
        let all = cost(read - cached, self.input)
            + cost(cached, self.cached_input.unwrap_or(self.input))
            + cost(written, self.output);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "prices are above 0 and bounded")]
        let micros = all.round() as u64;
        Some(micros)
    }
}

impl Default for CallSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            // A local model reads a long prompt for minutes.
            first_token_timeout: Duration::from_mins(10),
            between_tokens_timeout: Duration::from_mins(2),
            // Silence ends a call before; while words come, it goes on.
            total_timeout: Duration::from_hours(2),
            concurrency: 64,
            sampling: Sampling::default(),
            keep_requests: false,
            native_tools: true,
            probe: true,
            one_call_routing: None,
            parallel_calls: None,
            context_tokens: None,
            prices: None,
        }
    }
}

/// Why no request can be sent at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("`{0}` is not a web address; write one such as http://localhost:8000/v1")]
    NotAnAddress(String),
    #[error("the key for {0} holds characters that cannot be sent; copy it again")]
    UnusableKey(String),
    #[error("the header {0} of this provider cannot be sent; write its name and value in plain characters")]
    UnusableHeader(String),
    #[error("no secure connection is possible: {0}; are the certificates of this system installed?")]
    NoSecurity(String),
}

/// Where requests go, and what opens the door there.
#[derive(Debug, Default)]
pub(crate) struct EndpointConfig {
    /// What the provider is called here: any number of them may speak one dialect.
    pub(crate) name: String,
    pub(crate) base: String,
    /// Below the base, for the model that is asked. It may end with a query.
    pub(crate) path: String,
    pub(crate) access: Access,
    pub(crate) headers: Vec<(String, String)>,
    /// Members of each request that are the operator's.
    pub(crate) body: Map<String, Value>,
}

pub(crate) struct Endpoint {
    name: String,
    client: Client,
    url: Url,
    /// The address without anything that is nobody's business.
    shown: String,
    secrets: Vec<Secret>,
    credentials: Option<Arc<dyn Credentials>>,
    base: String,
    pub(super) body: Map<String, Value>,
    pub(super) settings: CallSettings,
    world: Arc<dyn World>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("name", &self.name).field("address", &self.shown).finish_non_exhaustive()
    }
}

impl Endpoint {
    pub(crate) fn new(
        config: EndpointConfig,
        settings: CallSettings,
        world: Arc<dyn World>,
    ) -> Result<Self, EndpointError> {
        let EndpointConfig { name, base, path, access, headers, body } = config;
        let (url, shown) = address(&base, &path)?;
        let mut secrets = secrets_in(&url);
        let mut always = HeaderMap::new();
        for (header, value) in headers {
            let unusable = || EndpointError::UnusableHeader(header.clone());
            let name = HeaderName::from_bytes(header.as_bytes()).map_err(|_| unusable())?;
            always.insert(name, HeaderValue::from_str(&value).map_err(|_| unusable())?);
        }
        let mut credentials = None;
        match access {
            Access::Free => {}
            Access::Key(key) => {
                let (header, value) = key.header().ok_or_else(|| EndpointError::UnusableKey(name.clone()))?;
                always.insert(header, value);
                secrets.push(key.secret);
            }
            Access::Credentials(given) => credentials = Some(given),
        }
        let client = client(&url, always, settings.connect_timeout)?;
        Ok(Self { name, client, url, shown, secrets, credentials, base, body, settings, world })
    }

    /// What the provider is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sends a request and waits for the beginning of its answer.
    pub(crate) async fn post(&self, request: &ModelRequest, body: String) -> Result<Answer<'_>, Failure> {
        let mut headers = labels(request);
        let opened = async {
            if let Some(credentials) = &self.credentials {
                let unsigned = Unsigned { url: &self.url, headers: &headers, body: body.as_bytes() };
                let signed = credentials.authorize(unsigned).await?;
                headers.extend(signed);
            }
            let send = self.client.post(self.url.clone()).headers(headers).body(body).send();
            let mut response = send.await.map_err(|error| self.lost(error))?;
            if !response.status().is_success() {
                return Err(self.refused(response).await);
            }
            let begun = response.chunk().await.map_err(|error| self.lost(error))?;
            Ok((response, begun))
        };
        let time_limit = self.settings.first_token_timeout;
        let opened = timeout(time_limit, opened).await;
        let (response, begun) = opened.map_err(|_| self.silent(time_limit))??;
        Ok(Answer::new(self, response, begun.as_deref()))
    }

    /// Sends a request and reads its whole answer, which is JSON.
    pub(crate) async fn answer(&self, body: String, longest: usize) -> Result<Value, ProviderError> {
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let asked = async {
            if let Some(credentials) = &self.credentials {
                let unsigned = Unsigned { url: &self.url, headers: &headers, body: body.as_bytes() };
                let signed = credentials.authorize(unsigned).await?;
                headers.extend(signed);
            }
            let send = self.client.post(self.url.clone()).headers(headers).body(body).send();
            let mut response = send.await.map_err(|error| self.lost(error))?;
            if !response.status().is_success() {
                return Err(self.refused(response).await.error);
            }
            let mut answer = Vec::new();
            while let Some(bytes) = response.chunk().await.map_err(|error| self.lost(error))? {
                answer.extend_from_slice(&bytes);
                if answer.len() > longest {
                    return Err(self.permanent("sent an answer that does not end"));
                }
            }
            serde_json::from_slice(&answer).map_err(|_| self.not_a_reply("something that is no JSON"))
        };
        let time_limit = self.settings.first_token_timeout;
        timeout(time_limit, asked).await.unwrap_or_else(|_| Err(self.silent(time_limit)))
    }

    /// What the provider says about a model, if it can.
    pub(super) async fn describe(&self, described: &Described, model: &str) -> Option<Value> {
        let (base, path) = described.place(&self.base, model);
        let (url, _) = address(base, &path).ok()?;
        let request = if described.sends_name {
            let question = json!({ "model": model }).to_string();
            self.client.post(url).header(CONTENT_TYPE, "application/json").body(question)
        } else {
            self.client.get(url)
        };
        let read = async {
            let sent = request.send().await.and_then(Response::error_for_status);
            let (mut response, mut body) = (sent.ok()?, Vec::new());
            while let Some(bytes) = response.chunk().await.ok()? {
                body.extend_from_slice(&bytes);
                if body.len() > LONGEST_DESCRIPTION {
                    return None;
                }
            }
            Some(body)
        };
        let body = timeout(self.settings.connect_timeout.min(DESCRIBED_WITHIN), read).await.ok()??;
        serde_json::from_slice(&body).ok()
    }

    /// Whether it is on this machine or in a private network.
    pub(super) fn is_near(&self) -> bool {
        let host = self.url.host_str().unwrap_or_default();
        match host.trim_matches(['[', ']']).parse() {
            Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private(),
            Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
            Err(_) => !host.contains('.') || host.ends_with(".localhost"),
        }
    }

    /// Where requests go, without anything that is nobody's business.
    pub(crate) fn address(&self) -> &str {
        &self.shown
    }

    /// The text without keys.
    pub(crate) fn redacted(&self, text: &str) -> String {
        self.known_secrets().fold(text.to_owned(), |text, secret| secret.redact(&text))
    }

    /// Those that are fixed, and those that were obtained meanwhile.
    fn known_secrets(&self) -> impl Iterator<Item = Secret> {
        let obtained = self.credentials.as_ref().map(|credentials| credentials.secrets()).unwrap_or_default();
        self.secrets.iter().cloned().chain(obtained)
    }

    /// Takes keys out of a reply. Whether there were any.
    pub(crate) fn redact_parts(&self, parts: &mut [ReplyPart]) -> bool {
        let mut held_a_key = false;
        for part in parts {
            // What was signed is taken back as it was, or not at all.
            if let ReplyPart::Thought { text, signature } = part
                && [Some(&*text), signature.as_ref()].into_iter().flatten().any(|text| self.holds_a_key(text.text()))
            {
                *signature = None;
            }
            let text = match part {
                ReplyPart::Thought { text, .. } | ReplyPart::Text { text } | ReplyPart::Refusal { text } => text,
                ReplyPart::Call { arguments, .. } => arguments,
            };
            let (redacted, held) = self.redacted_reply(text.text().to_owned());
            if held {
                (*text, held_a_key) = (redacted.into(), true);
            }
        }
        held_a_key
    }

    fn holds_a_key(&self, text: &str) -> bool {
        self.redacted_reply(text.to_owned()).1
    }

    /// A reply without keys. A short one may be a word, which replies may well hold.
    fn redacted_reply(&self, text: String) -> (String, bool) {
        let keys = self.known_secrets().filter(|secret| secret.expose().len() >= LONG_SECRET);
        let redacted = keys.fold(None, |redacted: Option<String>, secret| {
            let text = redacted.as_deref().unwrap_or(&text);
            if text.contains(secret.expose()) { Some(secret.redact(text)) } else { redacted }
        });
        redacted.map_or((text, false), |redacted| (redacted, true))
    }

    /// Words about this provider, on one line and without its key.
    pub(crate) fn words(&self, text: &str) -> String {
        failure::tidy(&self.redacted(text))
    }

    pub(crate) fn transient(&self, what: &str) -> ProviderError {
        let reason = self.words(&format!("{} {what}", self.name));
        ProviderError::Transient { reason, retry_after: None }
    }

    pub(crate) fn permanent(&self, what: &str) -> ProviderError {
        ProviderError::Permanent { reason: self.words(&format!("{} {what}", self.name)) }
    }

    pub(crate) fn too_long(&self, what: &str) -> ProviderError {
        ProviderError::TooLong { reason: self.words(&format!("{} {what}", self.name)) }
    }

    /// An answer from which nothing could be read.
    pub(crate) fn not_a_reply(&self, what: &str) -> ProviderError {
        self.permanent(&format!("answered with {what} instead of a reply; is {} the right address?", self.shown))
    }

    pub(super) fn silent(&self, time_limit: Duration) -> ProviderError {
        self.transient(&format!("said nothing for {} s", time_limit.as_secs_f32()))
    }

    pub(super) fn lost(&self, error: reqwest::Error) -> ProviderError {
        let why = cause(&error);
        let what = if error.is_connect() { "cannot be reached at" } else { "broke off the connection at" };
        let words = format!("{what} {}: {why}", self.shown);
        if error.is_connect() && is_about_tls(&error) { self.permanent(&words) } else { self.transient(&words) }
    }

    async fn refused(&self, mut response: Response) -> Failure {
        let status = response.status();
        let retry_after = failure::retry_after(response.headers(), self.world.now());
        let elsewhere = response.headers().get("location").and_then(|place| place.to_str().ok().map(str::to_owned));
        let mut body = Vec::new();
        while body.len() < LONGEST_ERROR
            && let Ok(Some(bytes)) = response.chunk().await
        {
            body.extend_from_slice(&bytes[..bytes.len().min(LONGEST_ERROR - body.len())]);
        }
        if let (true, Some(place)) = (status.is_redirection(), elsewhere) {
            let words = format!("answered {status}: it has moved to {place}; set this address");
            return self.permanent(&words).into();
        }
        let mut body = ErrorBody::read(&String::from_utf8_lossy(&body));
        body.words = self.words(&body.words);
        failure::of_status(&self.name, status, body, retry_after)
    }
}

/// What an address holds that is nobody's business, in each form that a server may repeat.
fn secrets_in(url: &Url) -> Vec<Secret> {
    let password = url.password().map(|password| {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let (user, plain) = (decoded(url.username()), decoded(password));
        let header = BASE64.encode(format!("{user}:{plain}"));
        [password.to_owned(), plain, header]
    });
    // Versions and switches are no secrets.
    let is_secret =
        |name: &str| ["key", "token", "sig", "secret", "auth", "code", "pass"].iter().any(|w| name.contains(w));
    let values = url.query_pairs().filter(|(name, _)| is_secret(&name.to_lowercase()));
    let values = values.map(|(_, value)| value.into_owned());
    password.into_iter().flatten().chain(values).filter_map(|secret| Secret::new(&secret)).collect()
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
