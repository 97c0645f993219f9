//! Quads as an index: subject, property, values.

use crate::iri;
use crate::vocabulary::rdf;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use trellis_domain::rdf::{Quad, Term};

type Properties<'a> = BTreeMap<&'a str, BTreeSet<&'a Term>>;

/// The statements of all quads, whatever their graph. Everything is ordered, so that reading is stable.
#[derive(Debug)]
pub(crate) struct QuadIndex<'a> {
    nodes: BTreeMap<&'a str, Properties<'a>>,
}

/// One subject and what is said about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'g> {
    pub(crate) iri: &'g str,
    properties: &'g Properties<'g>,
}

impl<'a> QuadIndex<'a> {
    pub(crate) fn new(quads: &'a [Quad]) -> Self {
        let mut nodes: BTreeMap<&str, Properties<'_>> = BTreeMap::new();
        for quad in quads {
            if let (Some(subject), Some(property)) = (quad.s.as_iri(), quad.p.as_iri()) {
                nodes.entry(subject).or_default().entry(property).or_default().insert(&quad.o);
            }
        }
        Self { nodes }
    }

    pub(crate) fn subjects(&self) -> impl Iterator<Item = Subject<'_>> {
        self.nodes.iter().map(|(iri, properties)| Subject { iri, properties })
    }

    pub(crate) fn subject(&self, iri: &str) -> Option<Subject<'_>> {
        self.nodes.get_key_value(iri).map(|(iri, properties)| Subject { iri, properties })
    }

    pub(crate) fn of_class(&self, class: &str) -> impl Iterator<Item = Subject<'_>> {
        self.subjects().filter(move |subject| subject.is(class))
    }

    /// The nodes whose IRIs lie below a session's.
    pub(crate) fn within(&self, session: &str) -> impl Iterator<Item = Subject<'_>> {
        let below = format!("{}{session}/", iri::AGENT);
        let from = self.nodes.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded));
        let inside = from.take_while(move |(iri, _)| iri.starts_with(&below));
        inside.map(|(iri, properties)| Subject { iri, properties })
    }
}

impl<'g> Subject<'g> {
    fn values(self, property: &str) -> impl Iterator<Item = &'g Term> {
        self.properties.get(property).into_iter().flatten().copied()
    }

    pub(crate) fn is(self, class: &str) -> bool {
        self.links(rdf::TYPE).any(|found| found == class)
    }

    pub(crate) fn has_type(self) -> bool {
        self.properties.contains_key(rdf::TYPE)
    }

    pub(crate) fn links(self, property: &str) -> impl Iterator<Item = &'g str> {
        self.values(property).filter_map(Term::as_iri)
    }

    pub(crate) fn link(self, property: &str) -> Option<String> {
        self.links(property).next().map(str::to_owned)
    }

    pub(crate) fn texts(self, property: &str) -> impl Iterator<Item = &'g str> {
        self.values(property).map(Term::text)
    }

    pub(crate) fn all_texts(self, property: &str) -> Vec<String> {
        self.texts(property).map(str::to_owned).collect()
    }

    pub(crate) fn text(self, property: &str) -> Option<String> {
        self.texts(property).next().map(str::to_owned)
    }

    /// Every property that has literals, with their texts.
    pub(crate) fn literals(self) -> impl Iterator<Item = (&'g str, Vec<String>)> {
        let texts = |values: &BTreeSet<&Term>| {
            let literals = values.iter().filter(|value| value.as_iri().is_none());
            literals.map(|value| value.text().to_owned()).collect::<Vec<_>>()
        };
        let all = self.properties.iter().map(move |(property, values)| (*property, texts(values)));
        all.filter(|(_, texts)| !texts.is_empty())
    }

    /// A whole number, however it is typed; none if it is not one.
    pub(crate) fn number(self, property: &str) -> Option<u64> {
        self.texts(property).next()?.parse().ok()
    }
}
