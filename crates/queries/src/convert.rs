//! Between the terms of the project and the terms of the evaluator.

use crate::term_id::TermId;
use oxrdf::{BaseDirection, BlankNode, Literal, NamedNode, NamedOrBlankNode, Term as OxTerm, Triple as OxTriple};
use trellis_domain::rdf::{Term, Triple};

/// Ends a language tag that carries a base direction, as in `ar--rtl` (RDF 1.2).
const LEFT_TO_RIGHT: &str = "--ltr";
const RIGHT_TO_LEFT: &str = "--rtl";

/// The term as the evaluator knows it. A quoted triple that RDF 1.2 does not allow (its subject is
/// a literal, say) is shown as a blank node named by its id: queries go on, nothing is lost in the store.
pub fn to_ox(term: &Term) -> OxTerm {
    match term {
        Term::Iri { iri } => NamedNode::new_unchecked(iri).into(),
        Term::Blank { id } => BlankNode::new_unchecked(id).into(),
        Term::Literal { value, datatype, language } => to_ox_literal(value, datatype, language).into(),
        Term::Quoted { triple } => {
            to_ox_triple(triple).map_or_else(|| opaque_node(term).into(), |triple| OxTerm::Triple(Box::new(triple)))
        }
    }
}

/// The triple as the evaluator knows it; `None` if RDF 1.2 does not allow it.
pub fn to_ox_triple(triple: &Triple) -> Option<OxTriple> {
    OxTriple::from_terms(to_ox(&triple.s), to_ox(&triple.p), to_ox(&triple.o)).ok()
}

/// A node for what has no other name.
pub fn opaque_node(term: &Term) -> BlankNode {
    BlankNode::new_unchecked(format!("t{}", TermId::of_term(term)))
}

fn to_ox_literal(value: &str, datatype: &str, language: &str) -> Literal {
    if !language.is_empty() {
        to_ox_tagged(value, &language.to_ascii_lowercase())
    } else if datatype.is_empty() {
        Literal::new_simple_literal(value)
    } else {
        Literal::new_typed_literal(value, NamedNode::new_unchecked(datatype))
    }
}

fn to_ox_tagged(value: &str, tag: &str) -> Literal {
    let directed =
        |language, direction| Literal::new_directional_language_tagged_literal_unchecked(value, language, direction);
    if let Some(language) = tag.strip_suffix(LEFT_TO_RIGHT) {
        directed(language, BaseDirection::Ltr)
    } else if let Some(language) = tag.strip_suffix(RIGHT_TO_LEFT) {
        directed(language, BaseDirection::Rtl)
    } else {
        Literal::new_language_tagged_literal_unchecked(value, tag)
    }
}

pub fn from_ox(term: OxTerm) -> Term {
    match term {
        OxTerm::NamedNode(node) => Term::Iri { iri: node.into_string() },
        OxTerm::BlankNode(node) => Term::Blank { id: node.into_string() },
        OxTerm::Literal(literal) => from_ox_literal(literal),
        OxTerm::Triple(triple) => Term::Quoted { triple: Box::new(from_ox_triple(*triple)) },
    }
}

pub fn from_ox_triple(triple: OxTriple) -> Triple {
    let s = match triple.subject {
        NamedOrBlankNode::NamedNode(node) => Term::Iri { iri: node.into_string() },
        NamedOrBlankNode::BlankNode(node) => Term::Blank { id: node.into_string() },
    };
    Triple { s, p: Term::Iri { iri: triple.predicate.into_string() }, o: from_ox(triple.object) }
}

fn from_ox_literal(literal: Literal) -> Term {
    let (value, datatype, language, direction) = literal.destruct();
    let direction = match direction {
        None => "",
        Some(BaseDirection::Ltr) => LEFT_TO_RIGHT,
        Some(BaseDirection::Rtl) => RIGHT_TO_LEFT,
    };
    Term::Literal {
        value,
        datatype: datatype.map(NamedNode::into_string).unwrap_or_default(),
        language: language.map(|language| language + direction).unwrap_or_default(),
    }
}
