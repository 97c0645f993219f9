//! What opens the door at a provider: a key that stays the same, or something made for each request.

use crate::provider::ProviderError;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::sync::Arc;
use trellis_domain::Secret;
use trellis_orchestrator::ports::BoxFuture;

/// What opens the door.
#[derive(Debug, Default)]
pub(crate) enum Access {
    /// It is open.
    #[default]
    Free,
    Key(Key),
    Credentials(Arc<dyn Credentials>),
}

/// A key in a header.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) header: String,
    /// What stands in front of the key.
    pub(crate) scheme: &'static str,
    pub(crate) secret: Secret,
}

impl Key {
    /// None if it cannot be sent. Characters outside of ASCII come back in too many forms to be recognised.
    pub(super) fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let key = Some(self.secret.expose()).filter(|key| key.is_ascii())?;
        let mut value = HeaderValue::from_str(&format!("{}{key}", self.scheme)).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::from_bytes(self.header.as_bytes()).ok()?, value))
    }
}

/// A request before it is authorised.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unsigned<'r> {
    pub(crate) url: &'r Url,
    pub(crate) headers: &'r HeaderMap,
    pub(crate) body: &'r [u8],
}

/// Authorises each request by itself: signatures, and tokens that run out. It counts against the time that a provider
/// has for the beginning of its answer.
pub(crate) trait Credentials: std::fmt::Debug + Send + Sync {
    /// The headers to add.
    fn authorize<'a>(&'a self, request: Unsigned<'a>) -> BoxFuture<'a, Result<HeaderMap, ProviderError>>;

    /// Everything that must be shown nowhere, as far as it is known by now.
    fn secrets(&self) -> Vec<Secret>;
}
