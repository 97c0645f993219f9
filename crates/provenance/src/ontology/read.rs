//! Turtle to declarations.

use super::form::Form;
use super::{Class, Membership, Ontology, Property};
use crate::vocabulary::{rdf, rdfs, trellis};
use oxrdf::{Graph, NamedNodeRef, NamedOrBlankNode, Term, TermRef};
use oxrdfio::{RdfFormat, RdfParser, RdfSyntaxError};
use std::collections::BTreeSet;

const RDF: &str = rdf::NS;
const RDFS: &str = rdfs::NS;
const OWL: &str = "http://www.w3.org/2002/07/owl#";
const TRELLIS: &str = trellis::NS;

/// Why a text is no vocabulary that graphs can be checked against.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableOntology {
    #[error("the vocabulary is not Turtle: {0}")]
    Syntax(#[from] RdfSyntaxError),
    #[error("{term} has the lexical form {form}, which nothing here can check")]
    UnknownForm { term: String, form: String },
    #[error("{term} has the standing {standing:?}, which means nothing here")]
    UnknownStanding { term: String, standing: String },
}

impl Ontology {
    /// Reads a vocabulary such as [`crate::ONTOLOGY`].
    pub fn parse(turtle: &str) -> Result<Self, UnreadableOntology> {
        let declarations = Declarations::parse(turtle)?;
        let classes = declarations.classes().map(|term| Ok((term.clone(), declarations.class(&term)?)));
        let properties = declarations.properties().map(|term| Ok((term.clone(), declarations.property(&term)?)));
        Ok(Self {
            classes: classes.collect::<Result<_, UnreadableOntology>>()?,
            properties: properties.collect::<Result<_, UnreadableOntology>>()?,
        })
    }
}

/// The statements of a vocabulary.
#[derive(Debug)]
pub struct Declarations {
    graph: Graph,
}

impl Declarations {
    pub fn parse(turtle: &str) -> Result<Self, RdfSyntaxError> {
        let mut graph = Graph::new();
        for quad in RdfParser::from_format(RdfFormat::Turtle).for_slice(turtle) {
            graph.insert(&oxrdf::Triple::from(quad?));
        }
        Ok(Self { graph })
    }

    pub fn classes(&self) -> impl Iterator<Item = String> {
        self.of_type(OWL, "Class").into_iter()
    }

    pub fn properties(&self) -> impl Iterator<Item = String> {
        let kinds = [(OWL, "ObjectProperty"), (OWL, "DatatypeProperty"), (RDF, "Property")];
        kinds.into_iter().flat_map(|(namespace, kind)| self.of_type(namespace, kind))
    }

    /// The named terms of a kind.
    pub fn of_type(&self, namespace: &str, kind: &str) -> BTreeSet<String> {
        let kind = format!("{namespace}{kind}");
        let found = self.graph.subjects_for_predicate_object(name(rdf::TYPE), name(&kind));
        found.filter_map(|subject| named(subject.into_owned().into())).collect()
    }

    /// What a term has for a property: texts and IRIs, and for a union the classes in it.
    pub fn values(&self, term: &str, namespace: &str, property: &str) -> BTreeSet<String> {
        let values = self.objects(&name(term).into_owned().into(), namespace, property);
        values.into_iter().flat_map(|value| self.members(value)).collect()
    }

    fn objects(&self, subject: &NamedOrBlankNode, namespace: &str, property: &str) -> Vec<Term> {
        let property = format!("{namespace}{property}");
        self.graph.objects_for_subject_predicate(subject, name(&property)).map(TermRef::into_owned).collect()
    }

    fn members(&self, value: Term) -> Vec<String> {
        match value {
            Term::NamedNode(node) => vec![node.into_string()],
            Term::Literal(literal) => vec![literal.value().to_owned()],
            Term::BlankNode(node) => {
                self.objects(&node.into(), OWL, "unionOf").into_iter().flat_map(|list| self.list(list)).collect()
            }
            Term::Triple(_) => Vec::new(),
        }
    }

    fn list(&self, head: Term) -> Vec<String> {
        let (mut items, mut rest) = (Vec::new(), node(head));
        while let Some(place) = rest {
            items.extend(self.objects(&place, RDF, "first").into_iter().filter_map(named));
            rest = self.objects(&place, RDF, "rest").pop().and_then(node);
        }
        items
    }

    fn class(&self, term: &str) -> Result<Class, UnreadableOntology> {
        Ok(Class {
            kinds: self.kinds(term),
            disjoint: self.values(term, OWL, "disjointWith"),
            membership: self.membership(term)?,
        })
    }

    /// A class and all classes above it.
    fn kinds(&self, term: &str) -> BTreeSet<String> {
        let mut kinds = BTreeSet::new();
        let mut open = vec![term.to_owned()];
        while let Some(kind) = open.pop() {
            if kinds.insert(kind.clone()) {
                open.extend(self.values(&kind, RDFS, "subClassOf"));
            }
        }
        kinds
    }

    fn membership(&self, term: &str) -> Result<Membership, UnreadableOntology> {
        let standing = self.values(term, TRELLIS, "standing").pop_first();
        match standing.as_deref() {
            None | Some("foreign") => Ok(Membership::Stated),
            Some("implied") => {
                let prefixes = Vec::from_iter(self.values(term, TRELLIS, "iriPrefix"));
                Ok(if prefixes.is_empty() { Membership::PointedAt } else { Membership::Prefix(prefixes) })
            }
            Some(other) => {
                Err(UnreadableOntology::UnknownStanding { term: term.to_owned(), standing: other.to_owned() })
            }
        }
    }

    fn property(&self, term: &str) -> Result<Property, UnreadableOntology> {
        let form = self.values(term, TRELLIS, "lexicalForm").pop_first();
        let form = form.map(|form| Form::of(&form).ok_or(form)).transpose();
        let unknown = |form| UnreadableOntology::UnknownForm { term: term.to_owned(), form };
        Ok(Property {
            domain: self.values(term, RDFS, "domain"),
            range: self.values(term, RDFS, "range"),
            back: self.back(term),
            form: form.map_err(unknown)?,
            words: self.values(term, TRELLIS, "word"),
        })
    }

    /// The properties whose inverses are above this one.
    fn back(&self, term: &str) -> BTreeSet<String> {
        let above = self.objects(&name(term).into_owned().into(), RDFS, "subPropertyOf");
        let inverses = above.into_iter().filter_map(node);
        inverses.flat_map(|above| self.objects(&above, OWL, "inverseOf")).filter_map(named).collect()
    }
}

fn name(iri: &str) -> NamedNodeRef<'_> {
    NamedNodeRef::new_unchecked(iri)
}

fn node(term: Term) -> Option<NamedOrBlankNode> {
    NamedOrBlankNode::try_from(term).ok()
}

fn named(term: Term) -> Option<String> {
    if let Term::NamedNode(node) = term { Some(node.into_string()) } else { None }
}
