//! What the steps of a trace are made of.

use crate::graph::{QuadIndex, Subject};
use crate::iri;
use crate::vocabulary::{prov, tg, trellis};
use serde::Serialize;
use serde_json::Value;

/// What asking a model took, as far as it was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    pub model: Option<String>,
    pub model_ms: Option<u64>,
    pub in_token: Option<u64>,
    pub out_token: Option<u64>,
    /// Calls that brought no reply, with their reasons.
    #[serde(rename = "failed_attempts", skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// Circumstances of the record behind a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// Counts from 1.
    pub attempt: u64,
    /// Came after the end: kept, never acted on.
    pub late: bool,
    /// Others have done it before the session began, and the history that was brought along tells of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub brought: bool,
    /// Number of the record in its run; none for a node that goes with another.
    pub seq: Option<u64>,
    /// When the record was made.
    pub at: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thought {
    pub id: String,
    pub document: Option<DocumentLink>,
    /// The id under which it was streamed, if that is not the node's.
    pub message_id: Option<String>,
}

/// A document's id, and what its content must hash to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DocumentLink {
    pub id: String,
    pub sha256: Option<String>,
}

/// All thoughts of a node: that of a reply which could not be used comes before that of the one that counts.
pub(super) fn thoughts(graph: &QuadIndex<'_>, node: Subject<'_>) -> Vec<Thought> {
    let mut found: Vec<_> = node.links(tg::THOUGHT).filter_map(|iri| graph.subject(iri)).collect();
    found.sort_by_key(|thought| thought.iri.ends_with("/retry/thought"));
    let thought = |thought: Subject<'_>| Thought {
        id: thought.iri.to_owned(),
        document: document(thought).or_else(|| pinned(thought)),
        message_id: thought.text(trellis::MESSAGE_ID),
    };
    found.into_iter().map(thought).collect()
}

/// The thought of the reply that counts.
pub(super) fn thought(graph: &QuadIndex<'_>, node: Subject<'_>) -> Option<Thought> {
    thoughts(graph, node).pop()
}

pub(super) fn document(node: Subject<'_>) -> Option<DocumentLink> {
    Some(DocumentLink { id: node.link(tg::DOCUMENT)?, sha256: node.text(trellis::DOCUMENT_HASH) })
}

/// The document that has the node's own name: messages do without the link to it.
pub(super) fn pinned(node: Subject<'_>) -> Option<DocumentLink> {
    let sha256 = node.text(trellis::DOCUMENT_HASH)?;
    Some(DocumentLink { id: node.iri.to_owned(), sha256: Some(sha256) })
}

pub(super) fn cost(node: Subject<'_>) -> Cost {
    Cost {
        model: node.text(tg::LLM_MODEL),
        model_ms: node.number(tg::LLM_DURATION_MS),
        in_token: node.number(tg::IN_TOKEN),
        out_token: node.number(tg::OUT_TOKEN),
        failures: node.all_texts(trellis::FAILED_ATTEMPT),
    }
}

pub(super) fn mark(node: Subject<'_>) -> Mark {
    Mark {
        attempt: node.number(trellis::ATTEMPT).unwrap_or(1),
        late: flag(node, trellis::LATE),
        brought: node.links(prov::WAS_INFLUENCED_BY).any(iri::is_brought_history),
        seq: node.number(trellis::SEQ),
        at: node.text(prov::GENERATED_AT_TIME),
    }
}

pub(super) fn flag(node: Subject<'_>, property: &str) -> bool {
    node.texts(property).any(|word| word == "true")
}

/// Arguments as JSON; as plain text if they are none.
pub(super) fn arguments(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

pub(super) fn number(node: Subject<'_>) -> Option<u32> {
    node.number(tg::STEP_NUMBER).and_then(|n| u32::try_from(n).ok())
}

pub(super) fn all_links(node: Subject<'_>, property: &str) -> Vec<String> {
    node.links(property).map(str::to_owned).collect()
}
