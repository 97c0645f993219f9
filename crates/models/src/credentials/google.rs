//! Tokens for Google Cloud: given for a service account's assertion, or by the machine that this runs on. One is kept
//! and renewed before it runs out.

use super::service_account::{KeyFileError, ServiceAccount};
use crate::provider::ProviderError;
use crate::remote::{Credentials, EndpointError, Unsigned, address, cause, client};
use parking_lot::Mutex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response, Url};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use trellis_domain::Secret;
use trellis_domain::Timestamp;
use trellis_orchestrator::ports::{BoxFuture, World};

/// A token is renewed when it is valid for less than this. A machine gives the same one again until shortly before.
const RENEWED_BEFORE_MS: u64 = 225_000;
/// How long the other side has for a token.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// How much of its answer is read.
const LONGEST_ANSWER: usize = 64 << 10;
/// Where a machine of Google Cloud gives tokens.
const MACHINE: &str = "http://metadata.google.internal";
const MACHINE_PATH: &str = "/computeMetadata/v1/instance/service-accounts/default/token";

/// Gives each request a token.
pub(crate) struct GoogleTokens {
    source: Source,
    url: Url,
    client: Client,
    world: Arc<dyn World>,
    kept: Mutex<Option<Token>>,
    /// One asks at a time, and the others find what it brought.
    asking: Semaphore,
}

enum Source {
    Account(Box<ServiceAccount>),
    Machine,
}

#[derive(Clone)]
struct Token {
    secret: Secret,
    until: Timestamp,
}

impl fmt::Debug for GoogleTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GoogleTokens").field("address", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// Why there can be no tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoTokens {
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
}

impl GoogleTokens {
    /// For a service account, by the JSON of its key file.
    pub(crate) fn of_account(key_file: &str, world: Arc<dyn World>) -> Result<Self, NoTokens> {
        let account = ServiceAccount::read(key_file)?;
        let (url, _) = address(&account.token_address, "")?;
        Ok(Self::new(Source::Account(Box::new(account)), url, world)?)
    }

    /// For the account of this machine. Somebody may say that its server is elsewhere.
    pub(crate) fn of_machine(host: Option<&str>, world: Arc<dyn World>) -> Result<Self, NoTokens> {
        let base = host.map_or_else(|| MACHINE.to_owned(), |host| format!("http://{host}"));
        let (url, _) = address(&base, MACHINE_PATH)?;
        Ok(Self::new(Source::Machine, url, world)?)
    }

    fn new(source: Source, url: Url, world: Arc<dyn World>) -> Result<Self, EndpointError> {
        let client = client(&url, HeaderMap::new(), TIME_LIMIT)?;
        Ok(Self { source, url, client, world, kept: Mutex::default(), asking: Semaphore::new(1) })
    }

    async fn token(&self) -> Result<Secret, ProviderError> {
        if let Some(token) = self.kept_for(RENEWED_BEFORE_MS) {
            return Ok(token);
        }
        // It is never closed: without a turn everything is as it was.
        let _turn = self.asking.acquire().await.ok();
        if let Some(token) = self.kept_for(RENEWED_BEFORE_MS) {
            return Ok(token);
        }
        match timeout(TIME_LIMIT, self.fetch()).await.unwrap_or_else(|_| Err(self.failed("it said nothing", true))) {
            Ok(token) => {
                *self.kept.lock() = Some(token.clone());
                Ok(token.secret)
            }
            // What is left of the old one is better than nothing.
            Err(error) => self.kept_for(0).ok_or(error),
        }
    }

    /// The token that is kept, if it is valid for longer than this.
    fn kept_for(&self, ms: u64) -> Option<Secret> {
        let now = self.world.now();
        let kept = self.kept.lock();
        kept.as_ref().filter(|token| token.until.ms_since(now) > ms).map(|token| token.secret.clone())
    }

    async fn fetch(&self) -> Result<Token, ProviderError> {
        let asked_at = self.world.now();
        let request = match &self.source {
            Source::Account(account) => {
                let assertion = account.assertion(asked_at);
                let assertion = assertion.ok_or_else(|| self.failed("the private key does not sign", false))?;
                let grant = utf8_percent_encode("urn:ietf:params:oauth:grant-type:jwt-bearer", NON_ALPHANUMERIC);
                self.client
                    .post(self.url.clone())
                    .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .body(format!("grant_type={grant}&assertion={assertion}"))
            }
            Source::Machine => self.client.get(self.url.clone()).header("metadata-flavor", "Google"),
        };
        let response = request.send().await.map_err(|error| self.failed(&cause(&error), true))?;
        let status = response.status();
        let answer: Value = serde_json::from_slice(&self.body(response).await?).unwrap_or_default();
        if !status.is_success() {
            let said = [&answer["error"], &answer["error_description"]].into_iter().filter_map(Value::as_str);
            let said: Vec<_> = std::iter::once(status.to_string()).chain(said.map(str::to_owned)).collect();
            let may_pass = status.is_server_error() || status.as_u16() == 429;
            return Err(self.failed(&said.join(": "), may_pass));
        }
        let secret = answer["access_token"].as_str().and_then(Secret::new);
        let secret = secret.ok_or_else(|| self.failed("its answer holds no token", false))?;
        let seconds = answer["expires_in"].as_u64().unwrap_or(0);
        Ok(Token { secret, until: asked_at.plus_ms(seconds.saturating_mul(1000)) })
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, ProviderError> {
        let mut body = Vec::new();
        while let Some(bytes) = response.chunk().await.map_err(|error| self.failed(&cause(&error), true))? {
            body.extend_from_slice(&bytes);
            if body.len() > LONGEST_ANSWER {
                return Err(self.failed("its answer does not end", false));
            }
        }
        Ok(body)
    }

    fn failed(&self, why: &str, may_pass: bool) -> ProviderError {
        let hint = match self.source {
            Source::Account(_) => "is the key of the service account still valid?",
            Source::Machine => "set GOOGLE_APPLICATION_CREDENTIALS if this is no machine of Google Cloud",
        };
        let reason = format!("no token for Google Cloud from {}: {why}; {hint}", self.url);
        if may_pass {
            ProviderError::Transient { reason, retry_after: None }
        } else {
            ProviderError::Permanent { reason }
        }
    }
}

impl Credentials for GoogleTokens {
    fn authorize<'a>(&'a self, _: Unsigned<'a>) -> BoxFuture<'a, Result<HeaderMap, ProviderError>> {
        Box::pin(async move {
            let token = self.token().await?;
            let value = HeaderValue::from_str(&format!("Bearer {}", token.expose()));
            let mut value = value.map_err(|_| self.failed("its token cannot be sent", false))?;
            value.set_sensitive(true);
            Ok([(AUTHORIZATION, value)].into_iter().collect())
        })
    }

    fn secrets(&self) -> Vec<Secret> {
        self.kept.lock().as_ref().map(|token| token.secret.clone()).into_iter().collect()
    }
}
