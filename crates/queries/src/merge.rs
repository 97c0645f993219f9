//! Several sorted scans as one, without duplicates.

use crate::order::{EncodedQuad, Order};
use crate::query::QueryError;
use crate::source::QuadSource;
use crate::term_id::TermId;

/// What counts as a duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distinct {
    /// The same quad, from an index and from an overlay.
    Quads,
    /// The same triple, in whichever graph: a union of graphs is a set of triples.
    Triples,
}

/// Sources sorted by the same order of subject, predicate and object, then graph.
pub struct Merge {
    sources: Vec<QuadSource>,
    heads: Vec<Option<EncodedQuad>>,
    order: Order,
    distinct: Distinct,
    last: Option<[TermId; 4]>,
}

impl std::fmt::Debug for Merge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merge").field("order", &self.order).field("distinct", &self.distinct).finish_non_exhaustive()
    }
}

impl Merge {
    pub fn new(order: Order, distinct: Distinct, sources: Vec<QuadSource>) -> Result<Self, QueryError> {
        let heads = vec![None; sources.len()];
        let mut merge = Self { sources, heads, order: order.graph_last(), distinct, last: None };
        for source in 0..merge.sources.len() {
            merge.advance(source)?;
        }
        Ok(merge)
    }

    fn advance(&mut self, source: usize) -> Result<Option<EncodedQuad>, QueryError> {
        let next = self.sources[source].next().transpose()?;
        Ok(std::mem::replace(&mut self.heads[source], next))
    }

    fn smallest(&self) -> Option<usize> {
        let heads = self.heads.iter().enumerate();
        let ranked = heads.filter_map(|(source, head)| Some((self.order.arrange(head.as_ref()?), source)));
        ranked.min().map(|(_, source)| source)
    }

    fn is_repeated(&mut self, quad: &EncodedQuad) -> bool {
        let ids = self.order.arrange(quad);
        let last = self.last.replace(ids);
        match self.distinct {
            Distinct::Quads => last == Some(ids),
            Distinct::Triples => last.is_some_and(|last| last[..3] == ids[..3]),
        }
    }
}

impl Iterator for Merge {
    type Item = Result<EncodedQuad, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let source = self.smallest()?;
            match self.advance(source) {
                Ok(Some(quad)) if self.is_repeated(&quad) => {}
                found => return found.transpose(),
            }
        }
    }
}
