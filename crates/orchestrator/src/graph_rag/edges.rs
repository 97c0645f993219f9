//! The edges around entities, read in bounds.

use super::bounds::{GraphQuestion, TraversalStep};
use crate::documents::is_notes;
use crate::ports::{Knowledge, KnowledgeError, QuadPattern};
use std::collections::HashSet;
use trellis_domain::rdf::{Quad, Term, Triple};
use trellis_provenance::vocabulary::{GRAPH_RETRIEVAL, rdf};

/// Where extraction services say what they took from which document.
pub(super) const GRAPH_SOURCE: &str = "urn:graph:source";
/// Namespaces of properties that say how a graph is built, not what it is about.
const SCHEMA: [&str; 3] = [rdf::NS, "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#"];
/// Classes of an entity that are looked at.
const MOST_TYPES: usize = 20;

/// Which end of an edge is the entity that it was found at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Subject,
    Property,
    Object,
}

/// The edges of one hop.
#[derive(Debug, Default)]
pub(super) struct Around {
    pub(super) edges: Vec<(Triple, Side)>,
    /// Entities of which not all edges were looked at.
    pub(super) cut: usize,
}

/// So much is read around the entities of one hop; those that are left then are not looked at.
const MOST_BYTES: usize = 8 << 20;

/// Edges to longer literals are not looked at.
const LONGEST_LITERAL: usize = 4 << 10;

/// Looks at a collection for one question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'k> {
    pub(super) knowledge: &'k dyn Knowledge,
    pub(super) question: &'k GraphQuestion,
}

impl Reader<'_> {
    async fn matching(&self, pattern: &QuadPattern, limit: usize) -> Result<Vec<Quad>, KnowledgeError> {
        self.knowledge.matching(&self.question.place, pattern, limit).await
    }

    /// New edges around entities, and at most as many as are compared. Each entity gets its turn, edge by edge: one with
    /// a hundred thousand edges leaves room for the others.
    pub(super) async fn around(
        &self,
        frontier: &[Term],
        step: Option<&TraversalStep>,
        seen: &mut HashSet<Triple>,
    ) -> Result<Around, KnowledgeError> {
        let mut around = Around::default();
        let mut of_each = Vec::with_capacity(frontier.len());
        let mut bytes = 0;
        for entity in frontier {
            if bytes > MOST_BYTES {
                around.cut += 1;
                continue;
            }
            let (edges, is_cut) = self.of_entity(entity, step).await?;
            around.cut += usize::from(is_cut);
            bytes += edges.iter().map(|(triple, _)| triple.text_bytes()).sum::<usize>();
            of_each.push(edges.into_iter());
        }
        let most = self.question.bounds.candidates;
        while around.edges.len() < most && !of_each.is_empty() {
            of_each.retain_mut(|edges| {
                let next = edges.find(|(triple, _)| !seen.contains(triple));
                let Some((triple, side)) = next.filter(|_| around.edges.len() < most) else { return false };
                seen.insert(triple.clone());
                around.edges.push((triple, side));
                true
            });
        }
        Ok(around)
    }

    async fn of_entity(
        &self,
        entity: &Term,
        step: Option<&TraversalStep>,
    ) -> Result<(Vec<(Triple, Side)>, bool), KnowledgeError> {
        let of_step = step.map(|step| step.graphs.as_slice()).unwrap_or_default();
        let graphs: Vec<Option<&String>> =
            if of_step.is_empty() { vec![self.question.graph.as_ref()] } else { of_step.iter().map(Some).collect() };
        let (mut edges, mut is_cut) = (Vec::new(), false);
        for graph in graphs {
            for side in [Side::Subject, Side::Property, Side::Object] {
                let at = |wanted: Side| (side == wanted).then(|| entity.clone());
                let (s, p, o) = (at(Side::Subject), at(Side::Property), at(Side::Object));
                let pattern = QuadPattern { s, p, o, g: graph.cloned(), collection: None };
                let most = self.question.bounds.triples;
                let mut quads = self.matching(&pattern, most + 1).await?;
                is_cut |= quads.len() > most;
                quads.truncate(most);
                edges.extend(quads.into_iter().filter(|quad| self.counts(quad, step)).map(|quad| (triple(quad), side)));
            }
        }
        Ok((edges, is_cut))
    }

    /// Whether an edge says something about the world that was asked for.
    fn counts(&self, quad: &Quad, step: Option<&TraversalStep>) -> bool {
        let property = quad.p.text();
        let is_quoted = [&quad.s, &quad.o].iter().any(|end| matches!(end, Term::Quoted { .. }));
        // What was said about extractions and earlier questions is not what they were about.
        let is_told =
            quad.g.as_deref().is_some_and(|graph| matches!(graph, GRAPH_RETRIEVAL | GRAPH_SOURCE) || is_notes(graph))
                && quad.g != self.question.graph;
        let relationships = step.map(|step| step.relationships.as_slice()).unwrap_or_default();
        let is_followed = relationships.is_empty() || relationships.iter().any(|wanted| wanted == property);
        // A whole text is nothing to be chosen among others, and what is kept is recorded and told.
        let is_short = quad.o.text().len() <= LONGEST_LITERAL;
        !is_quoted && !is_told && is_short && !is_schema(property) && is_followed && self.is_in_language(&quad.o)
    }

    fn is_in_language(&self, term: &Term) -> bool {
        match term {
            Term::Literal { language, .. } if !self.question.languages.is_empty() => {
                self.question.languages.iter().any(|wanted| wanted.eq_ignore_ascii_case(language))
            }
            Term::Iri { .. } | Term::Blank { .. } | Term::Literal { .. } | Term::Quoted { .. } => true,
        }
    }

    /// Those entities that have one of the classes; all if none is named.
    pub(super) async fn of_types(&self, entities: Vec<Term>, types: &[String]) -> Result<Vec<Term>, KnowledgeError> {
        if types.is_empty() {
            return Ok(entities);
        }
        let mut kept = Vec::new();
        for entity in entities {
            let (s, p) = (Some(entity.clone()), Some(Term::iri(rdf::TYPE)));
            let pattern = QuadPattern { s, p, g: self.question.graph.clone(), ..QuadPattern::default() };
            let classes = self.matching(&pattern, MOST_TYPES).await?;
            if classes.iter().filter_map(|quad| quad.o.as_iri()).any(|class| types.iter().any(|wanted| wanted == class))
            {
                kept.push(entity);
            }
        }
        Ok(kept)
    }
}

fn triple(quad: Quad) -> Triple {
    Triple { s: quad.s, p: quad.p, o: quad.o }
}

/// What class something is of says something about it; the rest of the schema does not.
fn is_schema(property: &str) -> bool {
    property != rdf::TYPE && SCHEMA.iter().any(|namespace| property.starts_with(namespace))
}
