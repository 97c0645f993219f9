//! Documents that are searched, without an agent around them: what `document-rag` shows a model, vectors of texts, and
//! how documents are loaded. Nothing of this belongs to a run, so nothing is recorded.

use super::model::begin;
use crate::call::Call;
use crate::error::{Code, ServiceError};
use crate::inside::{Gateway, Inside};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use trellis_domain::{Collection, Hash};
use trellis_orchestrator::documents::{LoadError, Loader, NewDocument, kind_of_name};
use trellis_orchestrator::ports::{EmbedError, SearchError, TextRole};

/// The prompt that an answer from documents is asked with.
pub(super) const PROMPT: &str = "document-prompt";
/// Passages that are shown to the model, if nobody says how many, and at most.
const PASSAGES: u64 = 20;
const MOST_PASSAGES: u64 = 100;
/// Texts of which vectors are made at once.
const MOST_TEXTS: usize = 256;

impl From<SearchError> for ServiceError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Invalid(what) => Self::request(what),
            error @ (SearchError::Busy | SearchError::Index { .. }) => Self::gateway(error.to_string()),
        }
    }
}

impl From<EmbedError> for ServiceError {
    fn from(error: EmbedError) -> Self {
        Self::new(Code::Model, error.to_string())
    }
}

impl From<LoadError> for ServiceError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Search(error) => error.into(),
            LoadError::Embed(error) => error.into(),
            LoadError::Library(error) => error.into(),
            LoadError::Read(error) => Self::request(error.to_string()),
            LoadError::Knowledge(error) => Self::gateway(error.to_string()),
            error @ LoadError::Facts { .. } => Self::new(Code::Model, error.to_string()),
            error @ LoadError::FactsBusy => Self::gateway(error.to_string()),
        }
    }
}

fn loader(inside: &Inside) -> Result<&Loader, ServiceError> {
    inside.documents().ok_or_else(|| ServiceError::gateway("no documents are searched on this server"))
}

pub(super) fn collection(call: &Call) -> Result<Collection, ServiceError> {
    let named = call.members().text("collection")?.filter(|name| !name.is_empty());
    let named = named.map(Collection::new).transpose().map_err(|error| ServiceError::request(error.to_string()))?;
    Ok(named.unwrap_or_default())
}

/// What the model is shown for a question, and the documents that it comes from.
pub(super) async fn variables(call: &Call) -> Result<(Map<String, Value>, Value), ServiceError> {
    let (members, inside) = (call.members(), &call.inside);
    let query = members.required("query")?;
    let limit = members.count("doc-limit")?.filter(|limit| *limit > 0).unwrap_or(PASSAGES).min(MOST_PASSAGES);
    let retriever = loader(inside)?.retriever();
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = retriever.find(inside.workspace(), &collection(call)?, query, limit).await?.passages;
    let documents: Vec<String> =
        (1..).zip(&found).map(|(number, passage)| passage.marked(&format!("[{number}]"))).collect();
    let mut seen = BTreeSet::new();
    let cited = found.iter().filter(|passage| seen.insert(&passage.document.text));
    let sources = cited.map(|passage| json!({"uri": passage.document.text, "title": passage.document.title})).collect();
    let variables = [("query", json!(query)), ("documents", json!(documents)), ("mark", json!(mark(inside)))];
    Ok((variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(), sources))
}

/// Nothing that a document can know.
fn mark(inside: &Inside) -> String {
    inside.world().fresh_id().chars().filter(char::is_ascii_alphanumeric).take(8).collect()
}

/// Vectors of texts.
pub(super) async fn embed(gateway: &Gateway, call: Call) -> Result<Value, ServiceError> {
    let _in_flight = begin(gateway)?;
    let texts = call.members().texts("texts")?.unwrap_or_default();
    if texts.len() > MOST_TEXTS {
        return Err(ServiceError::request(format!("{} texts; send at most {MOST_TEXTS} at once", texts.len())));
    }
    let missing = "no embedding model is configured; the operator can set TRELLIS_EMBEDDING_MODEL";
    let embedder = call.inside.documents().and_then(Loader::embedder);
    let embedder = embedder.ok_or_else(|| ServiceError::gateway(missing))?;
    if texts.is_empty() {
        return Ok(json!({"vectors": []}));
    }
    Ok(json!({"vectors": embedder.embed(texts, TextRole::Passage).await?}))
}

/// How a document is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loading {
    /// In `text`, in base64 or as it is.
    Text,
    /// In `data`, in base64.
    Document,
}

impl Loading {
    /// Loads a document. Clients take any answer for success, so the reply comes when it can be found and its facts are
    /// there. Until then the request is not kept.
    pub(super) async fn answer(self, gateway: &Gateway, mut call: Call) -> Result<Value, ServiceError> {
        let _in_flight = begin(gateway)?;
        let (loader, collection) = (loader(&call.inside)?.clone(), collection(&call)?);
        let content = self.content(&call)?;
        let id = match call.members().value("id") {
            Some(Value::String(id)) if !id.is_empty() => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            _ => format!("urn:sha256:{}", Hash::of(&content)),
        };
        let kind = kind_of_name(&id).unwrap_or_else(|| kind_of(&content)).to_owned();
        let document = NewDocument { id, title: None, kind, content };
        let mut loader = loader.by(call.inside.caller(call.surface));
        if call.members().value("facts") == Some(&json!(false)) {
            loader = loader.extracting(None);
        }
        let found = loader.make_searchable(call.workspace(), &collection, document).await?;
        call.forget_request();
        let done = loader.take_facts(found).await?;
        let mut reply = json!({"document": done.text, "passages": done.passages});
        if let Some(facts) = done.facts {
            reply["facts"] = json!(facts);
        }
        Ok(reply)
    }

    fn content(self, call: &Call) -> Result<Vec<u8>, ServiceError> {
        match self {
            Self::Document => {
                let data = call.members().required("data")?;
                BASE64.decode(data).map_err(|error| ServiceError::request(format!("`data` is no base64: {error}")))
            }
            Self::Text => {
                let text = call.members().required("text")?;
                // Many a word could be base64, and then means nothing.
                let decoded = BASE64.decode(text).ok().filter(|decoded| str::from_utf8(decoded).is_ok());
                Ok(decoded.unwrap_or_else(|| text.as_bytes().to_vec()))
            }
        }
    }
}

/// By how it begins.
fn kind_of(content: &[u8]) -> &'static str {
    let start = content.trim_ascii_start();
    let begins = |word: &[u8]| start.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    if begins(b"%PDF-") {
        "application/pdf"
    } else if begins(b"<!doctype html") || begins(b"<html") {
        "text/html"
    } else {
        "text/plain"
    }
}
