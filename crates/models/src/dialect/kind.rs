//! The dialects by name, and what a connection needs to know of each.

use super::{Anthropic, Ollama, OpenAi};
use crate::provider::Provider;
use crate::remote::{Connection, Key, Remote};
use crate::secret::Secret;
use crate::services::Quirks;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::sync::Arc;

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialectKind {
    OpenAi,
    Anthropic,
    Ollama,
}

impl DialectKind {
    pub const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Ollama];

    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Where a model is asked. `{model}` stands for its name.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::OpenAi => "/chat/completions",
            Self::Anthropic => "/v1/messages",
            Self::Ollama => "/api/chat",
        }
    }

    /// How a key is sent, unless the provider wants it in another header.
    pub(crate) fn key(self, secret: Secret) -> Key {
        match self {
            Self::OpenAi | Self::Ollama => Key { header: "authorization".to_owned(), scheme: "Bearer ", secret },
            Self::Anthropic => Key { header: "x-api-key".to_owned(), scheme: "", secret },
        }
    }

    /// What each request says besides.
    pub(crate) fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::OpenAi | Self::Ollama => &[],
            Self::Anthropic => &[("anthropic-version", "2023-06-01")],
        }
    }

    /// The address as this dialect continues it.
    pub(crate) fn base(self, address: &str) -> String {
        match self {
            Self::OpenAi | Self::Ollama => address.to_owned(),
            // Its own libraries are given the address without the version.
            Self::Anthropic => address.trim_end_matches('/').trim_end_matches("/v1").to_owned(),
        }
    }

    /// One model, ready to be asked. The longest reply is only given if it was set for this provider alone.
    pub(crate) fn connect(self, connection: Connection, quirks: Quirks, max_tokens: Option<u32>) -> Arc<dyn Provider> {
        match self {
            Self::OpenAi => Arc::new(Remote::new(OpenAi { quirks }, connection)),
            Self::Anthropic => Arc::new(Remote::new(Anthropic { max_tokens }, connection)),
            Self::Ollama => Arc::new(Remote::new(Ollama::default(), connection)),
        }
    }
}

/// A path with the model's name in its place.
pub(crate) fn path_of(path: &str, model: &str) -> String {
    const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    path.replace("{model}", &utf8_percent_encode(model, ENCODED).to_string())
}
