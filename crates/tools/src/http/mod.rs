//! Tools that are a request to somebody's address.
//!
//! Where requests may go is the operator's decision, what they look like is the tool's, and the model fills in arguments.

mod guard;
mod request;

pub use guard::{Reach, Refused};
pub(crate) use request::Filled;
pub use request::Template;

use guard::GuardedNames;
use request::HeaderPart;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use trellis_domain::Secret;
use trellis_orchestrator::ports::{ToolCall, ToolError, ToolOutput};

/// The most that is read of an answer.
const MOST_BYTES: usize = 1 << 20;
/// Answers above this size are large, and only so many of them are read at a time: a thousand calls may be in flight.
const LARGE_BYTES: usize = 64 << 10;
const LARGE_AT_ONCE: usize = 32;
/// So much of a refusal is told.
const TOLD: usize = 2_000;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MOST_REDIRECTS: usize = 5;

/// A key that tools may send.
#[derive(Debug, Clone)]
pub struct ToolSecret {
    /// Or why there is none: only tools that need it cannot be called then.
    pub value: Result<Secret, String>,
    /// Where it may be sent to; hosts as in [`Reach::hosts`].
    pub hosts: Vec<String>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) text: String,
    /// There was more than is read.
    pub(crate) is_cut: bool,
}

/// Whether nothing that matters comes after a line.
pub(crate) type IsLast<'a> = &'a mut (dyn FnMut(&str) -> bool + Send);

/// Calls addresses, as far as the operator allows.
#[derive(Debug)]
pub struct Http {
    reach: Arc<Reach>,
    secrets: BTreeMap<String, ToolSecret>,
    /// Made when it is needed: it reads the system's certificates, which takes time, and there may be none.
    client: OnceLock<Result<Client, String>>,
    large: Semaphore,
}

impl Default for Http {
    /// Calls nothing.
    fn default() -> Self {
        Self::new(Reach::default(), BTreeMap::new())
    }
}

impl Http {
    pub fn new(reach: Reach, secrets: BTreeMap<String, ToolSecret>) -> Self {
        Self { reach: Arc::new(reach), secrets, client: OnceLock::new(), large: Semaphore::new(LARGE_AT_ONCE) }
    }

    fn client(&self) -> Result<&Client, String> {
        let made = self.client.get_or_init(|| guarded_client(&self.reach));
        made.as_ref().map_err(|why| format!("no address can be called: {why}"))
    }

    /// Whether a tool with this template can be called here, as far as that shows before it is.
    pub fn check(&self, template: &Template) -> Result<(), String> {
        let place = template.place().ok_or("its `url` is no address")?;
        self.reach.check(&place).map_err(|refused| refused.to_string())?;
        for name in template.secrets() {
            self.secret(&name, &place)?;
        }
        Ok(())
    }

    pub async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let template = Template::read(&call.tool.settings).map_err(|(_, why)| ToolError::new(why))?;
        let filled = template.fill(&call.arguments).map_err(ToolError::new)?;
        let received = self.exchange(filled, call, &mut |_| false).await.map_err(ToolError::new)?;
        let mut text = received.text;
        if received.is_cut {
            text.push_str("\n[cut off: the answer was longer than 1 MB]");
        }
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }

    /// Sends a request and reads the answer, up to the line that says that it is the last one.
    pub(crate) async fn exchange(
        &self,
        filled: Filled,
        call: &ToolCall,
        is_last: IsLast<'_>,
    ) -> Result<Received, String> {
        let response = self.send(filled, call).await?;
        self.read(response, is_last).await
    }

    async fn send(&self, filled: Filled, call: &ToolCall) -> Result<Response, String> {
        let Filled { method, mut url, headers, body } = filled;
        for _ in 0..=MOST_REDIRECTS {
            self.reach.check(&url).map_err(|refused| refused.to_string())?;
            let mut request =
                self.client()?.request(method.clone(), url.clone()).headers(self.headers(&headers, &url)?);
            if !matches!(method, Method::GET | Method::HEAD) {
                request = request.header("idempotency-key", call.idempotency_key.as_str());
            }
            if let Some(body) = &body {
                request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
            }
            let response = request.send().await.map_err(|error| format!("{}: {}", shown(&url), cause(&error)))?;
            match redirected(&response, &method) {
                Some(next) if is_same_place(&url, &next) => url = next,
                Some(next) => {
                    return Err(format!("{} sends on to {}, which is not followed", shown(&url), shown(&next)));
                }
                None => return Ok(response),
            }
        }
        Err(format!("{} sends on and on", shown(&url)))
    }

    fn headers(&self, headers: &BTreeMap<String, Vec<HeaderPart>>, url: &Url) -> Result<HeaderMap, String> {
        let mut made = HeaderMap::new();
        for (name, parts) in headers {
            let (mut value, mut is_secret) = (String::new(), false);
            for part in parts {
                match part {
                    HeaderPart::Text(text) => value.push_str(text),
                    HeaderPart::Secret(name) => {
                        value.push_str(self.secret(name, url)?.expose());
                        is_secret = true;
                    }
                }
            }
            let wrong = || format!("the header `{name}` cannot be sent: it has characters that no header may have");
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?;
            let mut value = HeaderValue::from_str(&value).map_err(|_| wrong())?;
            value.set_sensitive(is_secret);
            made.insert(header, value);
        }
        Ok(made)
    }

    /// A secret, if it may be sent to this address.
    fn secret(&self, name: &str, url: &Url) -> Result<&Secret, String> {
        let unknown = || {
            format!(
                "there is no secret `{name}`; the operator names secrets under [tools.secrets] in the settings file"
            )
        };
        let secret = self.secrets.get(name).ok_or_else(unknown)?;
        let host = url.host_str().unwrap_or_default();
        let reach = Reach { hosts: secret.hosts.clone(), private: true };
        if reach.check(url).is_err() {
            return Err(format!("the secret `{name}` may not be sent to {host}"));
        }
        secret.value.as_ref().map_err(|why| format!("there is no secret `{name}`: {why}"))
    }

    /// What came back, without secrets that the other side repeats.
    async fn read(&self, mut response: Response, is_last: IsLast<'_>) -> Result<Received, String> {
        let (status, place) = (response.status(), shown(response.url()));
        let kind =
            response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
        let (mut bytes, mut is_cut, mut permit, mut begin, mut looked) = (Vec::new(), false, None, 0, 0);
        'reading: while let Some(chunk) =
            response.chunk().await.map_err(|error| format!("{place}: {}", cause(&error)))?
        {
            if permit.is_none() && bytes.len() + chunk.len() > LARGE_BYTES {
                permit = self.large.acquire().await.ok();
            }
            let room = MOST_BYTES - bytes.len();
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                is_cut = true;
                break;
            }
            while let Some(length) = bytes[looked..].iter().position(|byte| *byte == b'\n') {
                let end = looked + length;
                let is_end = is_last(&String::from_utf8_lossy(&bytes[begin..end]));
                (begin, looked) = (end + 1, end + 1);
                if is_end {
                    bytes.truncate(begin);
                    break 'reading;
                }
            }
            looked = bytes.len();
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) if is_cut && error.utf8_error().error_len().is_none() => {
                String::from_utf8_lossy(error.as_bytes()).trim_end_matches(char::REPLACEMENT_CHARACTER).to_owned()
            }
            Err(error) => format!("({} bytes of {}, which is no text)", error.as_bytes().len(), or(&kind, "something")),
        };
        let text =
            self.secrets.values().flat_map(|secret| &secret.value).fold(text, |text, secret| secret.redact(&text));
        if status.is_success() {
            return Ok(Received { text, is_cut });
        }
        let told = &text[..text.floor_char_boundary(TOLD)];
        Err(format!("{place} answered {status}: {}", told.trim()))
    }
}

/// A client that reaches what the operator allows, and nothing else. It follows nobody to another place.
pub(crate) fn guarded_client(reach: &Arc<Reach>) -> Result<Client, String> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Somebody else may have been faster, which is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    let client = Client::builder()
        .user_agent(concat!("trellis/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .dns_resolver(GuardedNames(Arc::clone(reach)))
        // Each place is checked by hand, and no secret goes to another one.
        .redirect(reqwest::redirect::Policy::none())
        // What is behind a proxy cannot be checked.
        .no_proxy()
        .referer(false)
        .build();
    client.map_err(|error| cause(&error))
}

/// Where an answer sends on to, if it does and that can be followed.
fn redirected(response: &Response, method: &Method) -> Option<Url> {
    let can_be_followed =
        matches!(*method, Method::GET | Method::HEAD) || matches!(response.status().as_u16(), 307 | 308);
    if !response.status().is_redirection() || !can_be_followed {
        return None;
    }
    let place = response.headers().get(reqwest::header::LOCATION)?.to_str().ok()?;
    response.url().join(place).ok()
}

/// Whether keys for the one may go to the other: the same server, and never without the protection they had.
fn is_same_place(url: &Url, next: &Url) -> bool {
    url.host_str() == next.host_str()
        && (url.origin() == next.origin() || (url.scheme(), next.scheme()) == ("http", "https"))
}

/// An address without what may be private in it.
fn shown(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

/// The innermost reason: the outer ones say only that there is one.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

fn or<'t>(text: &'t str, otherwise: &'t str) -> &'t str {
    if text.is_empty() { otherwise } else { text }
}

#[cfg(test)]
pub(crate) mod tests;
