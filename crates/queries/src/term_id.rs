//! Fixed-size names for terms and workspaces, and the canonical bytes of a term.
//!
//! An id is a hash, so encoding a quad needs no lookup and a rebuilt view has the same bytes. The
//! dictionary keeps the canonical bytes under the id; they are all it takes to read the term back.

use std::fmt;
use trellis_domain::Hash;
use trellis_domain::rdf::{Term, Triple};

pub const TERM_ID_BYTES: usize = 16;
pub const WORKSPACE_ID_BYTES: usize = 8;

const XSD_STRING: &str = "http://www.w3.org/2001/XMLSchema#string";

/// The first 16 bytes of the SHA-256 of the canonical bytes, as a number in key order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TermId(u128);

impl TermId {
    /// Stands for the default graph. No term hashes to it.
    pub const DEFAULT_GRAPH: Self = Self(0);
    pub const MIN: Self = Self(0);
    pub const MAX: Self = Self(u128::MAX);

    pub fn of(canonical: &[u8]) -> Self {
        Self(u128::from_be_bytes(hash_prefix(canonical)))
    }

    pub fn of_term(term: &Term) -> Self {
        Self::of(&canonical_bytes(term))
    }

    /// A graph name as quads carry it: absent or empty is the default graph.
    pub fn of_graph(name: Option<&str>) -> Self {
        match name {
            None | Some("") => Self::DEFAULT_GRAPH,
            Some(iri) => Self::of(&canonical_iri(iri)),
        }
    }

    pub fn to_bytes(self) -> [u8; TERM_ID_BYTES] {
        self.0.to_be_bytes()
    }

    pub fn from_bytes(bytes: [u8; TERM_ID_BYTES]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// The smallest id after this one: where a skipping scan continues.
    pub fn successor(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

impl fmt::Display for TermId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TermId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TermId({self})")
    }
}

/// Starts every key, so that a scan cannot leave its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkspaceId(pub [u8; WORKSPACE_ID_BYTES]);

impl WorkspaceId {
    pub fn of(name: &str) -> Self {
        Self(hash_prefix(name.as_bytes()))
    }
}

fn hash_prefix<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut prefix = [0; N];
    prefix.copy_from_slice(&Hash::of(bytes).as_bytes()[..N]);
    prefix
}

const IRI: u8 = b'i';
const STRING: u8 = b'l';
const TYPED: u8 = b't';
const TAGGED: u8 = b'g';
const BLANK: u8 = b'b';
const QUOTED: u8 = b'q';

/// The canonical bytes of a term: equal exactly when RDF says the terms are equal. Therefore
/// `xsd:string` is written like no datatype, and language tags in lower case.
pub fn canonical_bytes(term: &Term) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(64);
    write_term(&mut bytes, term);
    bytes
}

pub fn canonical_iri(iri: &str) -> Vec<u8> {
    tagged(IRI, iri)
}

fn write_term(out: &mut Vec<u8>, term: &Term) {
    match term {
        Term::Iri { iri } => write_tagged(out, IRI, iri),
        Term::Blank { id } => write_tagged(out, BLANK, id),
        Term::Literal { value, datatype, language } => write_literal(out, value, datatype, language),
        Term::Quoted { triple } => {
            out.push(QUOTED);
            for part in [&triple.s, &triple.p, &triple.o] {
                write_sized(out, &canonical_bytes(part));
            }
        }
    }
}

fn write_literal(out: &mut Vec<u8>, value: &str, datatype: &str, language: &str) {
    if !language.is_empty() {
        out.push(TAGGED);
        write_sized(out, language.to_ascii_lowercase().as_bytes());
        out.extend_from_slice(value.as_bytes());
    } else if datatype.is_empty() || datatype == XSD_STRING {
        write_tagged(out, STRING, value);
    } else {
        out.push(TYPED);
        write_sized(out, datatype.as_bytes());
        out.extend_from_slice(value.as_bytes());
    }
}

fn tagged(tag: u8, text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + text.len());
    write_tagged(&mut bytes, tag, text);
    bytes
}

fn write_tagged(out: &mut Vec<u8>, tag: u8, text: &str) {
    out.push(tag);
    out.extend_from_slice(text.as_bytes());
}

fn write_sized(out: &mut Vec<u8>, part: &[u8]) {
    let size = u32::try_from(part.len()).expect("a part of a term is shorter than 4 GB");
    out.extend_from_slice(&size.to_be_bytes());
    out.extend_from_slice(part);
}

/// The inverse of [`canonical_bytes`]; `None` if the bytes are damaged.
pub fn read_term(bytes: &[u8]) -> Option<Term> {
    let (&tag, rest) = bytes.split_first()?;
    match tag {
        IRI => Some(Term::Iri { iri: text(rest)? }),
        BLANK => Some(Term::Blank { id: text(rest)? }),
        STRING => Some(Term::literal(text(rest)?)),
        TYPED => {
            let (datatype, value) = read_sized(rest)?;
            Some(Term::Literal { value: text(value)?, datatype: text(datatype)?, language: String::new() })
        }
        TAGGED => {
            let (language, value) = read_sized(rest)?;
            Some(Term::Literal { value: text(value)?, datatype: String::new(), language: text(language)? })
        }
        QUOTED => read_quoted(rest),
        _ => None,
    }
}

fn read_quoted(bytes: &[u8]) -> Option<Term> {
    let (s, rest) = read_sized(bytes)?;
    let (p, rest) = read_sized(rest)?;
    let (o, rest) = read_sized(rest)?;
    let triple = Triple { s: read_term(s)?, p: read_term(p)?, o: read_term(o)? };
    rest.is_empty().then(|| Term::Quoted { triple: Box::new(triple) })
}

fn read_sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (size, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*size) as usize)
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}
