//! A graph held against the vocabulary.

use super::form::Form;
use super::{Membership, Ontology, Property};
use crate::graph::QuadIndex;
use crate::vocabulary::rdf;
use std::collections::{BTreeMap, BTreeSet};
use trellis_domain::rdf::{Quad, Term};

const LITERAL: &str = "http://www.w3.org/2000/01/rdf-schema#Literal";

/// Something in a graph that the vocabulary does not allow for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum OntologyProblem {
    #[error("{node} uses {term}, which is not declared")]
    Undeclared { node: String, term: String },
    #[error("{node} has {property}, but is none of {}", domain.join(", "))]
    Domain { node: String, property: String, domain: Vec<String> },
    #[error("{node} has {value} for {property}, which is none of {}", range.join(", "))]
    Range { node: String, property: String, value: String, range: Vec<String> },
    #[error("{node} has {value} for {property} with a datatype or language, but literals are untyped")]
    TypedLiteral { node: String, property: String, value: String },
    #[error("{node} has {value:?} for {property}, which is not {form}")]
    Form { node: String, property: String, value: String, form: Form },
    #[error("{node} has {value:?} for {property}, which is none of its words")]
    Word { node: String, property: String, value: String },
    #[error("{node} has {property} to {target}, from which {back} does not lead back")]
    OneWay { node: String, property: String, target: String, back: String },
    #[error("{node} is both {one} and {other}, which exclude each other")]
    Disjoint { node: String, one: String, other: String },
}

/// The classes of each node, with all classes above them.
type Classes<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

impl Ontology {
    /// Checks the graph of one run; finds nothing in a graph that is told in the words of the vocabulary.
    pub fn problems(&self, quads: &[Quad]) -> Vec<OntologyProblem> {
        let (graph, classes) = (QuadIndex::new(quads), self.classes_of_nodes(quads));
        let mut problems: Vec<OntologyProblem> =
            quads.iter().flat_map(|quad| self.of_quad(&graph, &classes, quad)).collect();
        problems.extend(classes.iter().flat_map(|(node, classes)| self.disjoint(node, classes)));
        problems.sort();
        problems.dedup();
        problems
    }

    fn classes_of_nodes<'a>(&'a self, quads: &'a [Quad]) -> Classes<'a> {
        let mut known: Classes<'a> = BTreeMap::new();
        for quad in quads {
            let (subject, property, object) = (quad.s.as_iri(), quad.p.text(), quad.o.as_iri());
            for node in subject.into_iter().chain(object) {
                known.entry(node).or_default().extend(self.by_prefix(node));
            }
            if let (rdf::TYPE, Some(node), Some(class)) = (property, subject, object) {
                known.entry(node).or_default().extend(self.kinds(class));
            } else if let (Some(node), Some(class)) = (object, self.by_pointing(property)) {
                known.entry(node).or_default().extend(self.kinds(class));
            }
        }
        known
    }

    fn kinds<'a>(&'a self, class: &str) -> impl Iterator<Item = &'a str> {
        self.classes.get(class).into_iter().flat_map(|class| &class.kinds).map(String::as_str)
    }

    fn by_prefix<'a>(&'a self, node: &str) -> impl Iterator<Item = &'a str> {
        let begins_so = |membership: &Membership| match membership {
            Membership::Prefix(prefixes) => prefixes.iter().any(|prefix| node.starts_with(prefix)),
            Membership::Stated | Membership::PointedAt => false,
        };
        self.classes
            .values()
            .filter(move |class| begins_so(&class.membership))
            .flat_map(|class| &class.kinds)
            .map(String::as_str)
    }

    /// The class that whatever this property points at has, if no graph would say so.
    fn by_pointing(&self, property: &str) -> Option<&str> {
        let range = &self.properties.get(property)?.range;
        let only = range.first().filter(|_| range.len() == 1)?;
        matches!(self.classes.get(only)?.membership, Membership::PointedAt).then_some(only)
    }

    fn of_quad(&self, graph: &QuadIndex<'_>, classes: &Classes<'_>, quad: &Quad) -> Vec<OntologyProblem> {
        let (node, term) = (quad.s.text().to_owned(), quad.p.text());
        if term == rdf::TYPE {
            let class = quad.o.text();
            let declared = self.classes.contains_key(class);
            return Vec::from_iter((!declared).then(|| OntologyProblem::Undeclared { node, term: class.to_owned() }));
        }
        let Some(property) = self.properties.get(term) else {
            return vec![OntologyProblem::Undeclared { node, term: term.to_owned() }];
        };
        let statement = Statement { quad, property, classes };
        let mut problems = Vec::from_iter(statement.outside_domain());
        problems.extend(statement.outside_range());
        problems.extend(statement.not_as_written());
        problems.extend(statement.one_way(graph));
        problems
    }

    fn disjoint(&self, node: &str, classes: &BTreeSet<&str>) -> Vec<OntologyProblem> {
        let others = classes.iter().filter_map(|one| Some((*one, self.classes.get(*one)?)));
        let pairs = others.flat_map(|(one, class)| class.disjoint.iter().map(move |other| (one, other)));
        let both = pairs.filter(|(_, other)| classes.contains(other.as_str()));
        both.map(|(one, other)| OntologyProblem::Disjoint {
            node: node.to_owned(),
            one: one.to_owned(),
            other: other.clone(),
        })
        .collect()
    }
}

/// A statement and what the vocabulary says about its property.
struct Statement<'a> {
    quad: &'a Quad,
    property: &'a Property,
    classes: &'a Classes<'a>,
}

impl Statement<'_> {
    fn node(&self) -> String {
        self.quad.s.text().to_owned()
    }

    fn term(&self) -> String {
        self.quad.p.text().to_owned()
    }

    fn value(&self) -> String {
        self.quad.o.to_string()
    }

    fn is_one_of(&self, node: &str, allowed: &BTreeSet<String>) -> bool {
        let classes = self.classes.get(node);
        allowed.is_empty()
            || classes.is_some_and(|classes| allowed.iter().any(|class| classes.contains(class.as_str())))
    }

    fn outside_domain(&self) -> Option<OntologyProblem> {
        let domain = &self.property.domain;
        let inside = self.is_one_of(self.quad.s.text(), domain);
        (!inside).then(|| OntologyProblem::Domain {
            node: self.node(),
            property: self.term(),
            domain: domain.iter().cloned().collect(),
        })
    }

    fn outside_range(&self) -> Option<OntologyProblem> {
        let range = &self.property.range;
        let inside = match &self.quad.o {
            Term::Literal { .. } => range.is_empty() || range.contains(LITERAL),
            Term::Iri { iri } => self.is_one_of(iri, range),
            Term::Blank { .. } | Term::Quoted { .. } => range.is_empty(),
        };
        (!inside).then(|| OntologyProblem::Range {
            node: self.node(),
            property: self.term(),
            value: self.value(),
            range: range.iter().cloned().collect(),
        })
    }

    /// What is wrong with a literal.
    fn not_as_written(&self) -> Option<OntologyProblem> {
        let Term::Literal { value: text, datatype, language } = &self.quad.o else { return None };
        let (node, property, value) = (self.node(), self.term(), text.clone());
        if !datatype.is_empty() || !language.is_empty() {
            return Some(OntologyProblem::TypedLiteral { node, property, value });
        }
        let Property { form, words, .. } = self.property;
        if let Some(form) = form.filter(|form| !form.fits(text)) {
            return Some(OntologyProblem::Form { node, property, value, form });
        }
        (!words.is_empty() && !words.contains(text)).then_some(OntologyProblem::Word { node, property, value })
    }

    fn one_way(&self, graph: &QuadIndex<'_>) -> Vec<OntologyProblem> {
        let Some(target) = self.quad.o.as_iri() else { return Vec::new() };
        let leads_back = |back: &str| {
            graph.subject(target).is_some_and(|target| target.links(back).any(|node| node == self.quad.s.text()))
        };
        let missing = self.property.back.iter().filter(|back| !leads_back(back));
        missing
            .map(|back| OntologyProblem::OneWay {
                node: self.node(),
                property: self.term(),
                target: target.to_owned(),
                back: back.clone(),
            })
            .collect()
    }
}
