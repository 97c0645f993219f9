//! RDF terms, triples and quads, in the shape that the wire and the graph share.
//!
//! Two JSON dialects exist for them. What serde writes is the compact one of the gateway; the module `broker` writes
//! the wide one.

use crate::lenient::nullable;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An RDF term. Literals that Trellis writes are untyped, as the stock reader expects them.
///
/// ```
/// use trellis_domain::rdf::Term;
///
/// let term = Term::iri("urn:trustgraph:agent:S");
/// assert_eq!(serde_json::to_string(&term)?, r#"{"t":"i","i":"urn:trustgraph:agent:S"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "t", from = "ReadTerm")]
pub enum Term {
    #[serde(rename = "i")]
    Iri {
        #[serde(rename = "i")]
        iri: String,
    },
    #[serde(rename = "l")]
    Literal {
        #[serde(rename = "v", default)]
        value: String,
        #[serde(rename = "dt", default, skip_serializing_if = "String::is_empty")]
        datatype: String,
        #[serde(rename = "ln", default, skip_serializing_if = "String::is_empty")]
        language: String,
    },
    #[serde(rename = "b")]
    Blank {
        #[serde(rename = "d")]
        id: String,
    },
    #[serde(rename = "t")]
    Quoted {
        #[serde(rename = "tr")]
        triple: Box<Triple>,
    },
}

impl Term {
    pub fn iri(iri: impl Into<String>) -> Self {
        Self::Iri { iri: iri.into() }
    }

    /// An untyped literal.
    pub fn literal(value: impl Into<String>) -> Self {
        Self::Literal { value: value.into(), datatype: String::new(), language: String::new() }
    }

    pub fn as_iri(&self) -> Option<&str> {
        match self {
            Self::Iri { iri } => Some(iri),
            Self::Literal { .. } | Self::Blank { .. } | Self::Quoted { .. } => None,
        }
    }

    /// The text a reader sees: the IRI, the literal's value or the blank node's id.
    pub fn text(&self) -> &str {
        match self {
            Self::Iri { iri } => iri,
            Self::Literal { value, .. } => value,
            Self::Blank { id } => id,
            Self::Quoted { .. } => "",
        }
    }

    /// Bytes of all its texts, those of a quoted triple too.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Iri { iri } => iri.len(),
            Self::Literal { value, datatype, language } => value.len() + datatype.len() + language.len(),
            Self::Blank { id } => id.len(),
            Self::Quoted { triple } => triple.text_bytes(),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iri { iri } => write!(f, "<{iri}>"),
            Self::Literal { value, .. } => write!(f, "{value:?}"),
            Self::Blank { id } => write!(f, "_:{id}"),
            Self::Quoted { triple } => write!(f, "<<{} {} {}>>", triple.s, triple.p, triple.o),
        }
    }
}

/// A term as either dialect writes it: short member names (gateway) or long ones (broker).
#[derive(Deserialize)]
struct ReadTerm {
    #[serde(alias = "type")]
    t: String,
    #[serde(default, alias = "iri", deserialize_with = "nullable")]
    i: String,
    #[serde(default, alias = "value", deserialize_with = "nullable")]
    v: String,
    #[serde(default, alias = "datatype", deserialize_with = "nullable")]
    dt: String,
    #[serde(default, alias = "language", deserialize_with = "nullable")]
    ln: String,
    #[serde(default, alias = "id", deserialize_with = "nullable")]
    d: String,
    #[serde(default, alias = "triple")]
    tr: Option<Box<Triple>>,
}

impl From<ReadTerm> for Term {
    fn from(term: ReadTerm) -> Self {
        match (term.t.as_str(), term.tr) {
            ("i", _) => Self::Iri { iri: term.i },
            ("b", _) => Self::Blank { id: term.d },
            ("t", Some(triple)) => Self::Quoted { triple },
            _ => Self::Literal { value: term.v, datatype: term.dt, language: term.ln },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Triple {
    pub s: Term,
    pub p: Term,
    pub o: Term,
}

impl Triple {
    pub fn text_bytes(&self) -> usize {
        self.s.text_bytes() + self.p.text_bytes() + self.o.text_bytes()
    }
}

/// A triple in a named graph; `g` empty or absent means the default graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Quad {
    pub s: Term,
    pub p: Term,
    pub o: Term,
    #[serde(default, deserialize_with = "named_graph", skip_serializing_if = "Option::is_none")]
    pub g: Option<String>,
}

impl Quad {
    /// Bytes of all its texts.
    pub fn text_bytes(&self) -> usize {
        let graph = self.g.as_ref().map_or(0, String::len);
        self.s.text_bytes() + self.p.text_bytes() + self.o.text_bytes() + graph
    }
}

/// The empty name is the default graph.
fn named_graph<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.filter(|name| !name.is_empty()))
}
