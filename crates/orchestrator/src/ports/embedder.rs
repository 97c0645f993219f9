//! Texts as vectors: close to each other if they mean similar things.

use super::BoxFuture;
use std::time::Duration;

/// What a text is to the model. Some models write one vector for a question and another one for what answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRole {
    Question,
    Passage,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// Asking again may help.
    #[error("{reason}")]
    Transient { reason: String, retry_after: Option<Duration> },
    /// Asking again would fail the same way.
    #[error("{reason}")]
    Permanent { reason: String },
}

/// A model that makes vectors of texts.
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// What makes the vectors, as `provider/model`: vectors under the same name can be compared.
    fn model(&self) -> &str;

    /// A vector for each text, in their order and all of one length. Any number of texts may be given.
    fn embed(&self, texts: Vec<String>, role: TextRole) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>>;
}
