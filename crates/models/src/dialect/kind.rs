//! The dialects by name, and what a connection needs to know of each.

use super::Quirks;
use super::{Anthropic, Bedrock, Gemini, Ollama, OpenAi, Responses};
use crate::described::{Described, OLLAMA};
use crate::provider::Provider;
use crate::remote::{Connection, Key, Remote};
use std::sync::Arc;
use trellis_domain::Secret;

/// How a provider is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialectKind {
    OpenAi,
    Responses,
    Anthropic,
    Ollama,
    Gemini,
    Bedrock,
}

impl DialectKind {
    pub const ALL: [Self; 6] =
        [Self::OpenAi, Self::Responses, Self::Anthropic, Self::Ollama, Self::Gemini, Self::Bedrock];

    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
            Self::Gemini => "gemini",
            Self::Bedrock => "bedrock",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Where a model is asked. `{model}` stands for its name.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::OpenAi => "/chat/completions",
            Self::Responses => "/responses",
            Self::Anthropic => "/v1/messages",
            Self::Ollama => "/api/chat",
            Self::Gemini => "/models/{model}:streamGenerateContent?alt=sse",
            Self::Bedrock => "/model/{model}/converse-stream",
        }
    }

    /// How a key is sent, unless the provider wants it in another header.
    pub(crate) fn key(self, secret: Secret) -> Key {
        let (header, scheme) = match self {
            Self::OpenAi | Self::Responses | Self::Ollama | Self::Bedrock => ("authorization", "Bearer "),
            Self::Anthropic => ("x-api-key", ""),
            Self::Gemini => ("x-goog-api-key", ""),
        };
        Key { header: header.to_owned(), scheme, secret }
    }

    /// What each request says besides.
    pub(crate) fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::OpenAi | Self::Responses | Self::Ollama | Self::Gemini | Self::Bedrock => &[],
            Self::Anthropic => &[("anthropic-version", "2023-06-01")],
        }
    }

    /// Where each server of this dialect tells about its models. Of other dialects it depends on the server.
    pub(crate) fn described(self) -> Option<Described> {
        match self {
            Self::Ollama => Some(OLLAMA),
            Self::OpenAi | Self::Responses | Self::Anthropic | Self::Gemini | Self::Bedrock => None,
        }
    }

    /// The address as this dialect continues it.
    pub(crate) fn base(self, address: &str) -> String {
        match self {
            Self::OpenAi | Self::Responses | Self::Ollama | Self::Gemini | Self::Bedrock => address.to_owned(),
            // Its own libraries are given the address without the version.
            Self::Anthropic => address.trim_end_matches('/').trim_end_matches("/v1").to_owned(),
        }
    }

    /// One model, ready to be asked. The longest reply is only given if it was set for this provider alone.
    pub(crate) fn connect(self, connection: Connection, quirks: Quirks, max_tokens: Option<u32>) -> Arc<dyn Provider> {
        match self {
            Self::OpenAi => Arc::new(Remote::new(OpenAi { quirks }, connection)),
            Self::Responses => Arc::new(Remote::new(Responses, connection)),
            Self::Anthropic => Arc::new(Remote::new(Anthropic { max_tokens }, connection)),
            Self::Ollama => Arc::new(Remote::new(Ollama::default(), connection)),
            Self::Gemini => Arc::new(Remote::new(Gemini, connection)),
            Self::Bedrock => Arc::new(Remote::new(Bedrock, connection)),
        }
    }
}
