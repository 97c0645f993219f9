//! Models that make vectors of texts, behind the addresses of model providers: OpenAI's interface and Ollama's.

use crate::dialect::DialectKind;
use crate::provider::ProviderError;
use crate::remote::{Endpoint, tokens_in};
use crate::retries::{chance, pause_before_retry};
use crate::room::Room;
use serde_json::{Value, json};
use std::ops::Range;
use std::sync::Arc;
use tokio::sync::Semaphore;
use trellis_orchestrator::ports::{BoxFuture, EmbedError, Embedder, TextRole, World};

/// Texts of one request, and bytes of all of them.
const TEXTS: usize = 64;
const BYTES: usize = 128 << 10;
/// More of a text is not sent: models read a few thousand tokens.
const LONGEST_TEXT: usize = 24 << 10;
/// Stands for a text without words: OpenAI refuses those, and all that was asked beside them. Ollama makes no vector.
const WORDLESS: &str = ".";
/// Requests at a time.
const AT_ONCE: usize = 4;
/// Most bytes of an answer: 64 vectors of 4,096 numbers, each written out.
const LONGEST_ANSWER: usize = 32 << 20;

/// How vectors are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmbeddingDialect {
    OpenAi,
    Ollama,
}

impl EmbeddingDialect {
    /// None if a dialect has no vectors.
    pub(crate) fn of(kind: DialectKind) -> Option<Self> {
        match kind {
            DialectKind::OpenAi | DialectKind::Responses => Some(Self::OpenAi),
            DialectKind::Ollama => Some(Self::Ollama),
            DialectKind::Anthropic | DialectKind::Gemini | DialectKind::Bedrock => None,
        }
    }

    /// Where vectors are asked for, by where replies are. Deployments have the model in the middle of it.
    pub(crate) fn path(self, of_replies: &str) -> String {
        match self {
            Self::OpenAi => of_replies.replace("/chat/completions", "/embeddings").replace("/responses", "/embeddings"),
            Self::Ollama => "/api/embed".to_owned(),
        }
    }

    fn body(self, model: &str, texts: &[String]) -> Value {
        match self {
            Self::OpenAi => json!({ "model": model, "input": texts, "encoding_format": "float" }),
            Self::Ollama => json!({ "model": model, "input": texts, "truncate": true }),
        }
    }

    /// The vectors of an answer, in the order of the texts. None if it is no such answer.
    fn read(self, answer: &Value) -> Option<Vec<Vec<f32>>> {
        let vector = |value: &Value| value.as_array()?.iter().map(number).collect();
        match self {
            Self::OpenAi => {
                let mut entries: Vec<(u64, Vec<f32>)> = Vec::new();
                for (position, entry) in (0_u64..).zip(answer["data"].as_array()?) {
                    entries.push((entry["index"].as_u64().unwrap_or(position), vector(&entry["embedding"])?));
                }
                entries.sort_by_key(|(index, _)| *index);
                Some(entries.into_iter().map(|(_, vector)| vector).collect())
            }
            Self::Ollama => answer["embeddings"].as_array()?.iter().map(vector).collect(),
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "models compute with no more digits")]
fn number(value: &Value) -> Option<f32> {
    value.as_f64().map(|number| number as f32).filter(|number| number.is_finite())
}

/// A model that makes vectors, at some address.
#[derive(Debug)]
pub(crate) struct RemoteEmbedder {
    pub(crate) endpoint: Endpoint,
    pub(crate) dialect: EmbeddingDialect,
    /// As the provider calls it.
    model: String,
    /// With the provider.
    name: String,
    room: Room,
    places: Semaphore,
    world: Arc<dyn World>,
}

impl RemoteEmbedder {
    pub(crate) fn new(
        endpoint: Endpoint,
        dialect: EmbeddingDialect,
        model: String,
        room: Room,
        world: Arc<dyn World>,
    ) -> Self {
        let name = format!("{}/{model}", endpoint.name());
        Self { endpoint, dialect, model, name, room, places: Semaphore::new(AT_ONCE), world }
    }

    async fn all(&self, texts: Vec<String>, role: TextRole) -> Result<Vec<Vec<f32>>, EmbedError> {
        let prefix = prefix(&self.model, role);
        let texts: Vec<String> = texts.iter().map(|text| format!("{prefix}{}", sent(text))).collect();
        let mut vectors: Vec<Vec<f32>> = Vec::with_capacity(texts.len());
        for batch in batches(&texts) {
            vectors.extend(self.batch(&texts[batch]).await.map_err(outcome)?);
        }
        let length = vectors.first().map_or(0, Vec::len);
        if vectors.iter().any(|vector| vector.len() != length || vector.is_empty()) {
            let wrong = self.endpoint.permanent("made vectors of different lengths; is it a model for embeddings?");
            return Err(outcome(wrong));
        }
        Ok(vectors)
    }

    /// Asks until there is an answer, or no hope for one.
    async fn batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ProviderError> {
        let mut failed = 0;
        loop {
            let error = match self.ask(texts).await {
                Ok(vectors) => return Ok(vectors),
                Err(error) => error,
            };
            failed += 1;
            let Some(pause) = pause_before_retry(&error, failed, false) else { return Err(error) };
            self.world.sleep(pause.drawn(chance(&self.world.fresh_id()))).await;
        }
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, ProviderError> {
        let body = self.dialect.body(&self.model, texts).to_string();
        let _place = self.places.acquire().await.map_err(|_| self.endpoint.transient("is not asked any more"))?;
        self.room.pace.enter(tokens_in(body.len())).await;
        let answer = self.endpoint.answer(body, LONGEST_ANSWER).await?;
        let vectors =
            self.dialect.read(&answer).ok_or_else(|| self.endpoint.not_a_reply("something without vectors"))?;
        if vectors.len() != texts.len() {
            let words = format!("made {} vectors of {} texts", vectors.len(), texts.len());
            return Err(self.endpoint.permanent(&words));
        }
        Ok(vectors)
    }
}

impl Embedder for RemoteEmbedder {
    #[expect(clippy::misnamed_getters, reason = "vectors belong to the model by the name that it was configured with")]
    fn model(&self) -> &str {
        &self.name
    }

    fn embed(&self, texts: Vec<String>, role: TextRole) -> BoxFuture<'_, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(self.all(texts, role))
    }
}

fn outcome(error: ProviderError) -> EmbedError {
    match error {
        ProviderError::Transient { reason, retry_after } | ProviderError::Busy { reason, retry_after } => {
            EmbedError::Transient { reason, retry_after }
        }
        ProviderError::Permanent { reason }
        | ProviderError::TooLong { reason }
        | ProviderError::ToolsRefused { reason } => EmbedError::Permanent { reason },
    }
}

/// What of a text goes out.
fn sent(text: &str) -> &str {
    let text = if text.trim().is_empty() { WORDLESS } else { text };
    &text[..text.floor_char_boundary(LONGEST_TEXT)]
}

/// Texts that go out together.
fn batches(texts: &[String]) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for (index, text) in texts.iter().enumerate() {
        bytes += text.len();
        match batches.last_mut() {
            Some(batch) if batch.len() < TEXTS && bytes <= BYTES => batch.end = index + 1,
            _ => {
                batches.push(index..index + 1);
                bytes = text.len();
            }
        }
    }
    batches
}

/// What a model wants to read before a text, as its makers say.
fn prefix(model: &str, role: TextRole) -> &'static str {
    let model = model.to_lowercase();
    match role {
        TextRole::Question if model.contains("nomic-embed-text") => "search_query: ",
        TextRole::Passage if model.contains("nomic-embed-text") => "search_document: ",
        TextRole::Question if model.contains("e5-") => "query: ",
        TextRole::Passage if model.contains("e5-") => "passage: ",
        TextRole::Question | TextRole::Passage => "",
    }
}

#[cfg(test)]
#[path = "embedding_tests.rs"]
mod tests;
