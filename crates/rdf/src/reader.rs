//! The statements of a file, one after the other.

use crate::Format;
use crate::blank::{BlankNames, MOST_UNLABELLED, TooMany};
use crate::guard::{Guard, Place};
use oxrdf::{BaseDirection, GraphName, NamedNode, NamedOrBlankNode, Term as OxTerm};
use oxrdfio::{RdfParseError, RdfParser, ReaderQuadParser};
use std::fmt;
use std::io::Read;
use std::sync::Arc;
use trellis_domain::rdf::{Quad, Term, Triple};

/// Where statements come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// For messages: a file's name, an address.
    pub name: String,
    /// What tells its blank nodes from those of all others, and is the same when it is read again.
    pub scope: String,
    /// What relative IRIs are relative to.
    pub base: Option<String>,
}

/// Why a file cannot be read further, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ReadError {
    pub name: String,
    /// Beginning with one.
    pub line: Option<u64>,
    pub column: Option<u64>,
    pub message: String,
    /// The file itself could not be read: it may be right.
    pub interrupted: bool,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, ":{line}:{column}")?,
            (Some(line), None) => write!(f, ": about line {line}")?,
            (None, _) => {}
        }
        write!(f, ": {}", self.message)
    }
}

/// What a quad has to be, besides being one.
pub type Rule = fn(&Quad) -> Result<(), String>;

/// The statements of a file. After an error there are no more.
pub struct Statements<R: Read> {
    parser: ReaderQuadParser<Guard<R>>,
    format: Format,
    name: String,
    place: Arc<Place>,
    blanks: BlankNames,
    rule: Rule,
    over: bool,
}

impl<R: Read> Statements<R> {
    /// An error is the base's: it is no IRI.
    pub fn new(from: R, format: Format, origin: Origin, rule: Rule) -> Result<Self, ReadError> {
        let Origin { name, scope, base } = origin;
        let mut parser = RdfParser::from_format(format.grammar());
        if let Some(base) = base {
            parser = parser.with_base_iri(&base).map_err(|error| ReadError {
                name: name.clone(),
                line: None,
                column: None,
                message: format!("the base `{base}` is not an absolute IRI: {error}"),
                interrupted: false,
            })?;
        }
        let place = Arc::new(Place::default());
        let guard = Guard::new(from, format, Arc::clone(&place));
        let parser = parser.for_reader(guard);
        Ok(Self { parser, format, name, place, blanks: BlankNames::new(&scope), rule, over: false })
    }

    fn converted(&mut self, quad: oxrdf::Quad) -> Result<Quad, ReadError> {
        let convert = || {
            let s = match quad.subject {
                NamedOrBlankNode::NamedNode(node) => Term::iri(node.into_string()),
                NamedOrBlankNode::BlankNode(node) => self.blank(&node)?,
            };
            let p = Term::iri(quad.predicate.into_string());
            let o = self.term(quad.object)?;
            let g = match quad.graph_name {
                GraphName::DefaultGraph => None,
                GraphName::NamedNode(node) => Some(node.into_string()),
                GraphName::BlankNode(node) => Some(format!("_:{}", self.blank(&node)?.text())),
            };
            let quad = Quad { s, p, o, g };
            (self.rule)(&quad).map(|()| quad)
        };
        let converted = convert();
        converted.map_err(|message| self.error(Some(self.place.line()), None, message))
    }

    fn blank(&mut self, node: &oxrdf::BlankNode) -> Result<Term, String> {
        let id = self.blanks.name(node.as_ref()).map_err(|TooMany| {
            format!("it has more than {MOST_UNLABELLED} nodes without a label; split it, or convert it to N-Triples")
        })?;
        Ok(Term::Blank { id })
    }

    fn term(&mut self, term: OxTerm) -> Result<Term, String> {
        match term {
            OxTerm::NamedNode(node) => Ok(Term::iri(node.into_string())),
            OxTerm::BlankNode(node) => self.blank(&node),
            OxTerm::Literal(literal) => {
                let (value, datatype, language, direction) = literal.destruct();
                // A direction is part of the tag, as in `ar--rtl`.
                let direction = match direction {
                    None => "",
                    Some(BaseDirection::Ltr) => "--ltr",
                    Some(BaseDirection::Rtl) => "--rtl",
                };
                Ok(Term::Literal {
                    value,
                    datatype: datatype.map(NamedNode::into_string).unwrap_or_default(),
                    language: language.map(|language| language + direction).unwrap_or_default(),
                })
            }
            OxTerm::Triple(triple) => {
                let s = match triple.subject {
                    NamedOrBlankNode::NamedNode(node) => Term::iri(node.into_string()),
                    NamedOrBlankNode::BlankNode(node) => self.blank(&node)?,
                };
                let triple = Triple { s, p: Term::iri(triple.predicate.into_string()), o: self.term(triple.object)? };
                Ok(Term::Quoted { triple: Box::new(triple) })
            }
        }
    }

    fn error(&self, line: Option<u64>, column: Option<u64>, message: String) -> ReadError {
        ReadError { name: self.name.clone(), line, column, message, interrupted: false }
    }

    fn wrong(&self, error: RdfParseError) -> ReadError {
        match error {
            RdfParseError::Io(error) => {
                let interrupted = error.kind() != std::io::ErrorKind::InvalidData;
                ReadError { interrupted, ..self.error(Some(self.place.line()), None, error.to_string()) }
            }
            RdfParseError::Syntax(error) => {
                let at = error.location().map(|range| (range.start.line + 1, range.start.column + 1));
                let (line, column) = at.map_or((Some(self.place.line()), None), |(l, c)| (Some(l), Some(c)));
                self.error(line, column, self.explained(&error.to_string()))
            }
        }
    }

    /// The parser's words without the place, which is said in front, and with what to do.
    fn explained(&self, message: &str) -> String {
        let at_place = message.strip_prefix("Parser error ").and_then(|rest| rest.split_once(": "));
        let what = at_place.map_or(message, |(_, what)| what);
        let advice = if what.contains("No scheme found") {
            "; say what it is relative to with a base (--base)"
        } else if self.format == Format::JsonLd && (what.contains("LoadDocumentCallback") || what.contains("remote")) {
            "; contexts are not fetched: write the context into the file"
        } else {
            ""
        };
        format!("{what}{advice}")
    }
}

impl<R: Read> Iterator for Statements<R> {
    type Item = Result<Quad, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = match self.parser.next()? {
            Ok(quad) => self.converted(quad),
            Err(error) => Err(self.wrong(error)),
        };
        self.place.heard();
        self.over = next.is_err();
        Some(next)
    }
}

impl<R: Read> fmt::Debug for Statements<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statements").field("name", &self.name).field("format", &self.format).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
