//! What the index of a collection's words consists of.
//!
//! There is an entry for each passage and one for each document, all with the document's id, so that one term removes
//! them. What is found is stored as JSON.

use serde::{Deserialize, Serialize};
use std::vec::IntoIter;
use tantivy::schema::{FAST, Field, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use tantivy::{TantivyDocument, Term};
use trellis_orchestrator::documents::words;
use trellis_orchestrator::ports::{DocumentInfo, IndexedDocument, Passage, SearchDocument, SearchError};

/// The name of our way to split text.
pub(crate) const WORDS: &str = "words";
/// Where in the vectors of its model a passage has its own.
pub(crate) const ROW: &str = "row";
/// Which model and length of vectors; see [`crate::vectors::Space`].
pub(crate) const SPACE: &str = "space";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    /// The id of the document, for every entry.
    document: Field,
    /// The same, only for the entry of the document itself.
    pub(crate) head: Field,
    pub(crate) text: Field,
    pub(crate) above: Field,
    stored: Field,
    row: Field,
    space: Field,
}

/// A passage as it is stored.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredPassage {
    pub(crate) document: DocumentInfo,
    pub(crate) number: u64,
    pub(crate) passage: Passage,
}

impl Fields {
    pub(crate) fn schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default().set_tokenizer(WORDS).set_index_option(IndexRecordOption::WithFreqs);
        let searched = TextOptions::default().set_indexing_options(indexing);
        let fields = Self {
            document: schema.add_text_field("document", STRING),
            head: schema.add_text_field("head", STRING),
            text: schema.add_text_field("text", searched.clone()),
            above: schema.add_text_field("above", searched),
            stored: schema.add_text_field("stored", STORED),
            row: schema.add_u64_field(ROW, FAST),
            space: schema.add_u64_field(SPACE, FAST),
        };
        (schema.build(), fields)
    }

    /// All entries of a document.
    pub(crate) fn of_document(self, id: &str) -> Term {
        Term::from_field_text(self.document, id)
    }

    /// The entry of a document itself.
    pub(crate) fn head_of(self, id: &str) -> Term {
        Term::from_field_text(self.head, id)
    }

    /// The entry of a document itself.
    pub(crate) fn head(self, document: &SearchDocument) -> Result<TantivyDocument, SearchError> {
        let listed = IndexedDocument {
            info: document.info.clone(),
            passages: document.passages.len() as u64,
            model: document.vectors.as_ref().map(|vectors| vectors.model.clone()),
        };
        let mut entry = TantivyDocument::default();
        entry.add_text(self.document, &document.info.id);
        entry.add_text(self.head, &document.info.id);
        entry.add_text(self.stored, json(&listed)?);
        Ok(entry)
    }

    /// The entry of a passage; with the place of its vector, if it has one.
    pub(crate) fn passage(
        self,
        info: &DocumentInfo,
        number: usize,
        passage: &Passage,
        vector: Option<(u64, u64)>,
    ) -> Result<TantivyDocument, SearchError> {
        let stored = StoredPassage { document: info.clone(), number: number as u64, passage: passage.clone() };
        let mut entry = TantivyDocument::default();
        entry.add_text(self.document, &info.id);
        entry.add_text(self.text, &passage.text);
        entry.add_text(self.above, format!("{} {}", info.title, passage.place.headings.join(" ")));
        entry.add_text(self.stored, json(&stored)?);
        if let Some((space, row)) = vector {
            entry.add_u64(self.space, space);
            entry.add_u64(self.row, row);
        }
        Ok(entry)
    }

    /// What was stored with an entry.
    pub(crate) fn stored<T: for<'a> Deserialize<'a>>(self, entry: &TantivyDocument) -> Result<T, SearchError> {
        let text = entry.get_first(self.stored).and_then(|value| value.as_str()).unwrap_or_default();
        serde_json::from_str(text)
            .map_err(|error| SearchError::Index { doing: "read", why: format!("an entry is damaged: {error}") })
    }
}

fn json(value: &impl Serialize) -> Result<String, SearchError> {
    serde_json::to_string(value).map_err(|error| SearchError::Invalid(error.to_string()))
}

/// Splits text by our own rules.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words;

pub(crate) struct WordStream {
    words: IntoIter<trellis_orchestrator::documents::Word>,
    token: Token,
}

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream {
        // A passage is short, so its words may be in memory.
        WordStream { words: words(text).collect::<Vec<_>>().into_iter(), token: Token::default() }
    }
}

impl TokenStream for WordStream {
    fn advance(&mut self) -> bool {
        let Some(word) = self.words.next() else { return false };
        self.token.position = self.token.position.wrapping_add(1);
        (self.token.offset_from, self.token.offset_to) = (word.bytes.start, word.bytes.end);
        self.token.text = word.text;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
