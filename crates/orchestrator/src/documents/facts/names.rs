//! What documents, their passages and the entities that they speak of are called in a graph.

use crate::knowledge::DOCUMENT;

const TEXT: &str = "/text";
const PASSAGE: &str = "/passage/";
/// As TrustGraph calls what it extracts.
const ENTITY: &str = "http://trustgraph.ai/e/";
const HEX: &[u8; 16] = b"0123456789ABCDEF";
/// Bytes of a name: a longer one is no name, and could not be found by it.
const LONGEST_NAME: usize = 250;

/// What the passages are noted with.
pub(super) mod words {
    pub(in super::super) const TITLE: &str = "http://purl.org/dc/elements/1.1/title";
    pub(in super::super) const SOURCE: &str = "http://purl.org/dc/elements/1.1/source";
    pub(in super::super) const DEFINITION: &str = "http://www.w3.org/2004/02/skos/core#definition";
    pub(in super::super) const DOCUMENT_CLASS: &str = "https://trustgraph.ai/ns/Document";
    pub(in super::super) const PASSAGE_CLASS: &str = "https://trustgraph.ai/ns/Chunk";
    pub(in super::super) const NUMBER: &str = "https://trustgraph.ai/ns/chunkIndex";
    /// How many passages the document has.
    pub(in super::super) const PASSAGES: &str = "urn:trellis:facts:passages";
    /// Its facts are being removed.
    pub(in super::super) const LEAVING: &str = "urn:trellis:facts:leaving";
    /// Passages that nobody answered for, and how many of them because the budget was used up.
    pub(in super::super) const UNANSWERED: &str = "urn:trellis:facts:unanswered";
    pub(in super::super) const OVER_BUDGET: &str = "urn:trellis:facts:overBudget";
    /// The text in the library that lines are counted in.
    pub(in super::super) const TEXT: &str = "urn:trellis:facts:text";
    pub(in super::super) const FIRST_LINE: &str = "urn:trellis:facts:firstLine";
    pub(in super::super) const LAST_LINE: &str = "urn:trellis:facts:lastLine";
    /// Of the passage's words. It stands there when all its facts do.
    pub(in super::super) const TEXT_HASH: &str = "urn:trellis:facts:textHash";
    /// Of the prompt's template.
    pub(in super::super) const TEMPLATE: &str = "urn:trellis:facts:template";
    /// All passages of the document in this form have been asked about.
    pub(in super::super) const COMPLETE: &str = "urn:trellis:facts:complete";
}

/// The document that a text of the library belongs to.
pub(in crate::documents) fn document_of(text: &str) -> &str {
    text.strip_suffix(TEXT).unwrap_or(text)
}

/// The name of a passage, and of the graph with its facts.
pub(super) fn passage(document: &str, number: u64) -> String {
    format!("{document}{PASSAGE}{number}")
}

/// The graph that says of each passage where it stands and who was asked about it. The document's own says the rest.
pub(super) fn notes(document: &str) -> String {
    format!("{document}/passages")
}

/// The graph that says how many passages there are. It is small, so that it goes whole when all others have gone.
pub(super) fn count(document: &str) -> String {
    format!("{document}/count")
}

/// The graph that says what came of the last attempt.
pub(super) fn outcome(document: &str) -> String {
    format!("{document}/outcome")
}

/// The document of a passage, if that is what the graph is called after.
pub(crate) fn document_of_passage(graph: &str) -> Option<&str> {
    let (document, number) = graph.rsplit_once(PASSAGE)?;
    let is_passage = document.starts_with(DOCUMENT) && number.parse::<u64>().is_ok();
    is_passage.then_some(document)
}

/// Whether a graph says something of a document, and not what stands in it.
pub(crate) fn is_notes(graph: &str) -> bool {
    graph.starts_with(DOCUMENT) && document_of_passage(graph).is_none()
}

/// What a model calls something, if it is a name: in one line, and with something that can be read.
pub(super) fn named(text: &str) -> Option<String> {
    let name = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let fits = name.len() <= LONGEST_NAME && name.contains(char::is_alphanumeric);
    fits.then_some(name)
}

/// The IRI of an entity or of a relation: its name in lower case, with hyphens, and percent signs for what is not ASCII.
/// Nothing that a text says leads out of this namespace.
pub(super) fn entity(name: &str) -> String {
    let mut iri = ENTITY.to_owned();
    for byte in name.replace(' ', "-").to_lowercase().bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
            iri.push(char::from(byte));
        } else {
            iri.push('%');
            iri.extend([byte >> 4, byte & 15].map(|digit| char::from(HEX[usize::from(digit)])));
        }
    }
    iri
}
