//! Which runs a pattern of quads can match in.

use crate::ports::QuadPattern;
use trellis_domain::rdf::Term;
use trellis_provenance::iri;
use trellis_provenance::vocabulary::{tg, trellis};

/// Where the quads of a pattern can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// In the run of this node.
    Node(String),
    /// Where questions are accepted.
    Questions,
    Anywhere,
}

impl Reach {
    /// Statements about a node are made by its own run only. So are those that point at one, but for the links
    /// between the questions of a conversation.
    pub fn of(pattern: &QuadPattern) -> Self {
        let node = |term: &Option<Term>| {
            let iri = term.as_ref().and_then(Term::as_iri)?;
            iri::session_of(iri).map(|_| iri.to_owned())
        };
        let property = pattern.p.as_ref().and_then(Term::as_iri);
        match (node(&pattern.s), node(&pattern.o), property) {
            (Some(subject), _, _) => Self::Node(subject),
            (None, Some(object), Some(property)) if property != trellis::EARLIER_QUESTION => Self::Node(object),
            (None, None, Some(tg::QUERY)) if pattern.s.is_none() && pattern.o.is_none() => Self::Questions,
            (None, _, _) => Self::Anywhere,
        }
    }
}
