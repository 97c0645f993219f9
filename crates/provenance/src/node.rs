//! Writing quads about one subject.

use crate::vocabulary::{GRAPH_RETRIEVAL, prov, rdf, rdfs, tg, trellis};
use trellis_domain::ConversationId;
use trellis_domain::document::Document;
use trellis_domain::rdf::{Quad, Term};
use trellis_domain::record::Header;

/// Statements about one subject, in the order in which they were made. Literals are untyped, as the
/// stock reader expects them.
#[derive(Debug)]
pub(crate) struct Node {
    iri: String,
    quads: Vec<Quad>,
}

impl Node {
    pub(crate) fn new(iri: impl Into<String>) -> Self {
        Self { iri: iri.into(), quads: Vec::new() }
    }

    pub(crate) fn into_quads(self) -> Vec<Quad> {
        self.quads
    }

    fn say(mut self, property: &str, object: Term) -> Self {
        let (s, p) = (Term::iri(&self.iri), Term::iri(property));
        self.quads.push(Quad { s, p, o: object, g: Some(GRAPH_RETRIEVAL.to_owned()) });
        self
    }

    pub(crate) fn text(self, property: &str, value: impl ToString) -> Self {
        self.texts(property, [value])
    }

    /// One literal per value; for an option, one or none.
    pub(crate) fn texts<T: ToString>(self, property: &str, values: impl IntoIterator<Item = T>) -> Self {
        values.into_iter().fold(self, |node, value| node.say(property, Term::literal(value.to_string())))
    }

    pub(crate) fn link(self, property: &str, target: impl Into<String>) -> Self {
        self.links(property, [target])
    }

    /// One link per target; for an option, one or none.
    pub(crate) fn links<T: Into<String>>(self, property: &str, targets: impl IntoIterator<Item = T>) -> Self {
        targets.into_iter().fold(self, |node, target| node.say(property, Term::iri(target)))
    }

    pub(crate) fn types(self, classes: &[&str]) -> Self {
        self.links(rdf::TYPE, classes.iter().copied())
    }

    pub(crate) fn label(self, label: impl ToString) -> Self {
        self.text(rdfs::LABEL, label)
    }

    pub(crate) fn derived_from<T: Into<String>>(self, parents: impl IntoIterator<Item = T>) -> Self {
        self.links(prov::WAS_DERIVED_FROM, parents)
    }

    /// Refers to a document and pins its content, if it was stored.
    pub(crate) fn document(self, id: &str, document: Option<&Document>) -> Self {
        match document.filter(|document| document.stored) {
            Some(document) => self.link(tg::DOCUMENT, id).text(trellis::DOCUMENT_HASH, document.sha256),
            None => self,
        }
    }

    /// An error as the original writes it: a mixed-in class and the text.
    pub(crate) fn error(self, error: Option<&str>) -> Self {
        match error {
            Some(error) => self.types(&[tg::class::ERROR]).text(tg::TOOL_ERROR, error),
            None => self,
        }
    }

    /// What is said of every main node about the record behind it.
    pub(crate) fn marks(self, header: &Header, conversation: Option<&ConversationId>) -> Self {
        self.texts(trellis::CONVERSATION_ID, conversation)
            .texts(trellis::ATTEMPT, (header.attempt > 1).then_some(header.attempt))
            .texts(trellis::LATE, header.late.then_some(true))
    }
}
