//! Runs that are not in the index yet, projected while a query needs them.

use crate::order::{AccessPath, EncodedQuad, IdPattern, Order};
use crate::term_id::{TermId, canonical_bytes};
use std::collections::{BTreeSet, HashMap, HashSet};
use trellis_domain::rdf::{Quad, Term};

/// Every node of a run of ours is named under this prefix.
pub const AGENT_PREFIX: &str = "urn:trustgraph:agent:";

/// The runs of one workspace that the view lacks. Take it before the query starts: a run that is
/// absorbed meanwhile is then seen twice and counted once, never missed.
pub trait Overlay {
    /// The ids of all overlay runs.
    fn runs(&self) -> Vec<String>;

    /// The overlay run that the IRI `urn:trustgraph:agent:<session>[/...]` belongs to.
    fn run_of(&self, iri: &str) -> Option<String>;

    /// The overlay runs that may say something with this IRI as object: its own, and those that follow on it.
    fn runs_naming(&self, iri: &str) -> Vec<String>;

    /// The quads of a run as of now.
    fn project(&self, run: &str) -> Vec<Quad>;
}

/// Nothing besides the view.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOverlay;

impl Overlay for NoOverlay {
    fn runs(&self) -> Vec<String> {
        Vec::new()
    }

    fn run_of(&self, _iri: &str) -> Option<String> {
        None
    }

    fn runs_naming(&self, _iri: &str) -> Vec<String> {
        Vec::new()
    }

    fn project(&self, _run: &str) -> Vec<Quad> {
        Vec::new()
    }
}

/// The projected runs of one query: ids in three orders, and the terms behind them. A graph is a
/// filter here; what is in memory is small.
#[derive(Default)]
pub(crate) struct ProjectedRuns {
    runs: HashSet<String>,
    by_subject: BTreeSet<[TermId; 4]>,
    by_predicate: BTreeSet<[TermId; 4]>,
    by_object: BTreeSet<[TermId; 4]>,
    terms: HashMap<TermId, Term>,
    graphs: BTreeSet<TermId>,
}

impl ProjectedRuns {
    /// Notes the run; false if it is there already.
    pub(crate) fn admit(&mut self, run: &str) -> bool {
        !self.runs.contains(run) && self.runs.insert(run.to_owned())
    }

    pub(crate) fn add(&mut self, quads: Vec<Quad>) {
        for quad in quads {
            let encoded = EncodedQuad {
                g: self.graph_id(quad.g),
                s: self.term_id(quad.s),
                p: self.term_id(quad.p),
                o: self.term_id(quad.o),
            };
            self.by_subject.insert(Order::Spog.arrange(&encoded));
            self.by_predicate.insert(Order::Posg.arrange(&encoded));
            self.by_object.insert(Order::Ospg.arrange(&encoded));
        }
    }

    fn term_id(&mut self, term: Term) -> TermId {
        let id = TermId::of(&canonical_bytes(&term));
        self.terms.entry(id).or_insert(term);
        id
    }

    fn graph_id(&mut self, name: Option<String>) -> TermId {
        let Some(iri) = name.filter(|name| !name.is_empty()) else { return TermId::DEFAULT_GRAPH };
        let id = self.term_id(Term::Iri { iri });
        self.graphs.insert(id);
        id
    }

    pub(crate) fn quad_count(&self) -> usize {
        self.by_subject.len()
    }

    pub(crate) fn term(&self, id: TermId) -> Option<&Term> {
        self.terms.get(&id)
    }

    pub(crate) fn named_graphs(&self) -> impl Iterator<Item = TermId> {
        self.graphs.iter().copied()
    }

    /// The quads that match, sorted like the view's for the same pattern, graph last.
    pub(crate) fn matching(&self, pattern: &IdPattern) -> Vec<EncodedQuad> {
        let AccessPath { order, mut prefix } = pattern.access_path();
        let (index, order) = match order {
            Order::Spog => (&self.by_subject, order),
            Order::Posg => (&self.by_predicate, order),
            Order::Ospg => (&self.by_object, order),
            Order::Gpos => {
                prefix.remove(0);
                (&self.by_predicate, Order::Posg)
            }
        };
        let quads = index.range(padded(&prefix, TermId::MIN)..=padded(&prefix, TermId::MAX));
        quads.map(|ids| order.restore(*ids)).filter(|quad| pattern.matches(quad)).collect()
    }
}

fn padded(prefix: &[TermId], filler: TermId) -> [TermId; 4] {
    let mut ids = [filler; 4];
    ids[..prefix.len()].copy_from_slice(prefix);
    ids
}
