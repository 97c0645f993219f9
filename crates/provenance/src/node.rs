//! Writing quads about one subject.

use crate::vocabulary::{GRAPH_RETRIEVAL, prov, rdf, rdfs, tg, trellis};
use std::sync::Arc;
use trellis_domain::decision::Decision;
use trellis_domain::document::{Document, Payload};
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::usage::Usage;

/// Statements about one subject, in the order in which they were made, and the documents that they refer
/// to: so the graph and the library cannot disagree. Literals are untyped, as the stock reader expects them.
#[derive(Debug)]
#[must_use]
pub struct Node {
    iri: String,
    quads: Vec<Quad>,
    documents: Vec<StoredText>,
}

/// A document as a node refers to it.
#[derive(Debug)]
pub struct StoredText {
    pub id: String,
    pub title: String,
    pub document: Document,
}

impl Node {
    pub fn new(iri: impl Into<String>) -> Self {
        // Room for what most nodes say: quads are large, and moving them to a larger place again and again shows.
        Self { iri: iri.into(), quads: Vec::with_capacity(8), documents: Vec::new() }
    }

    /// A document that carries its own hash, because what refers to it has several documents, or has to do without
    /// `tg:document`: the stock reader takes the last one of an event for the event's own.
    pub fn pinned(id: impl Into<String>, title: impl ToString, document: &Document) -> Self {
        let id = id.into();
        let stored = StoredText { id: id.clone(), title: title.to_string(), document: document.clone() };
        let mut node = Self::new(id).text(trellis::DOCUMENT_HASH, document.sha256);
        node.documents.push(stored);
        node
    }

    /// A choice with everything that could have been chosen.
    pub fn choice(iri: &str, decision: &Decision) -> Self {
        let excluded = decision.excluded.iter().map(|excluded| format!("{}: {}", excluded.name, excluded.reason));
        Self::new(iri)
            .types(&[trellis::class::DECISION])
            .label(format!("Decision: {}", decision.kind))
            .text(trellis::DECISION_KIND, decision.kind)
            .texts(trellis::OPTION, &decision.options)
            .texts(trellis::EXCLUDED_OPTION, excluded)
            .texts(trellis::CHOSEN, &decision.chosen)
            .links(trellis::OPTION_SOURCE, Some(decision.source.as_str()).filter(|source| !source.is_empty()))
            .text(trellis::CONFIG_VERSION, decision.config_version)
            .text(trellis::DECIDED_BY, decision.decided_by)
            .text(trellis::ENFORCEMENT, decision.enforcement)
            .texts(trellis::SIGNAL, &decision.signals)
    }

    pub fn iri(&self) -> &str {
        &self.iri
    }

    /// How much it says.
    pub fn statements(&self) -> usize {
        self.quads.len()
    }

    pub fn into_parts(self) -> (Vec<Quad>, Vec<StoredText>) {
        (self.quads, self.documents)
    }

    /// One statement, about whatever there can be statements of.
    pub fn say(mut self, property: &str, object: Term) -> Self {
        let (s, p) = (Term::iri(&self.iri), Term::iri(property));
        self.quads.push(Quad { s, p, o: object, g: Some(GRAPH_RETRIEVAL.to_owned()) });
        self
    }

    pub fn text(self, property: &str, value: impl ToString) -> Self {
        self.texts(property, [value])
    }

    /// One literal per value; for an option, one or none.
    pub fn texts<T: ToString>(self, property: &str, values: impl IntoIterator<Item = T>) -> Self {
        values.into_iter().fold(self, |node, value| node.say(property, Term::literal(value.to_string())))
    }

    /// The word `true`, or nothing.
    pub fn flag(self, property: &str, holds: bool) -> Self {
        self.texts(property, holds.then_some(true))
    }

    pub fn link(self, property: &str, target: impl Into<String>) -> Self {
        self.links(property, [target])
    }

    /// One link per target; for an option, one or none.
    pub fn links<T: Into<String>>(self, property: &str, targets: impl IntoIterator<Item = T>) -> Self {
        targets.into_iter().fold(self, |node, target| node.say(property, Term::iri(target)))
    }

    /// Links to nodes that travel with this one.
    pub fn links_to(self, property: &str, nodes: &[Self]) -> Self {
        self.links(property, nodes.iter().map(Self::iri))
    }

    pub fn types(self, classes: &[&str]) -> Self {
        self.links(rdf::TYPE, classes.iter().copied())
    }

    pub fn label(self, label: impl ToString) -> Self {
        self.text(rdfs::LABEL, label)
    }

    pub fn derived_from<T: Into<String>>(self, parents: impl IntoIterator<Item = T>) -> Self {
        self.links(prov::WAS_DERIVED_FROM, parents)
    }

    /// Refers to a document and pins its content, if it was stored.
    pub fn document(self, id: &str, title: impl ToString, document: Option<&Document>) -> Self {
        let Some(document) = document.filter(|document| document.stored) else { return self };
        let mut node = self.link(tg::DOCUMENT, id).text(trellis::DOCUMENT_HASH, document.sha256);
        node.documents.push(StoredText { id: id.to_owned(), title: title.to_string(), document: document.clone() });
        node
    }

    /// An error as the original writes it: a mixed-in class and the text.
    pub fn error(self, error: Option<&str>) -> Self {
        match error {
            Some(error) => self.types(&[tg::class::ERROR]).text(tg::TOOL_ERROR, error),
            None => self,
        }
    }

    /// What asking models took. Counts that the provider did not report stay absent: missing is not zero.
    pub fn cost(self, usage: &Usage) -> Self {
        self.texts(tg::LLM_DURATION_MS, (usage.model_calls > 0 || usage.model_ms > 0).then_some(usage.model_ms))
            .texts(tg::IN_TOKEN, usage.in_token)
            .texts(tg::OUT_TOKEN, usage.out_token)
            .texts(tg::LLM_MODEL, usage.model.as_ref())
    }

    /// What is said of every main node about the record behind it.
    pub fn marks(self, attempt: u32, late: bool) -> Self {
        self.texts(trellis::ATTEMPT, (attempt > 1).then_some(attempt)).flag(trellis::LATE, late)
    }
}

/// A text of a record as a document: it lies where the record lies.
pub fn as_document(text: &Payload) -> Option<Document> {
    match text {
        Payload::Inline(text) => Document::stored(Arc::clone(text)),
        Payload::Blob(stored) => Some(Document { text: text.clone(), sha256: stored.blob, stored: true }),
    }
}

/// Cuts by Unicode scalar, as the original does.
pub fn first_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}
