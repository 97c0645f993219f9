//! What a batch of runs writes into the tables.

use super::RunQuads;
use super::order::{EncodedQuad, Order, QuadKey, quad_key};
use super::reader::{TermKey, term_key};
use super::recent_terms::RecentTerms;
use super::tables::Tables;
use super::term_id::{TermId, WorkspaceId, canonical_bytes, canonical_iri};
use fjall::OwnedWriteBatch;
use std::collections::BTreeMap;
use trellis_domain::rdf::Quad;

/// Sorted, each key once: a memtable takes neighbours faster.
pub(super) struct Additions {
    quads: Vec<QuadKey>,
    terms: BTreeMap<TermKey, Vec<u8>>,
}

impl Additions {
    pub(super) fn of(runs: &[RunQuads], recent_terms: &mut RecentTerms<TermKey>) -> Self {
        let mut additions = Self { quads: Vec::new(), terms: BTreeMap::new() };
        for run in runs {
            let workspace = WorkspaceId::of(&run.workspace);
            for quad in &run.quads {
                additions.add(workspace, quad, recent_terms);
            }
        }
        additions.quads.sort_unstable();
        additions.quads.dedup();
        additions
    }

    fn add(&mut self, workspace: WorkspaceId, quad: &Quad, recent_terms: &mut RecentTerms<TermKey>) {
        let mut id_of = |canonical: Vec<u8>| {
            let id = TermId::of(&canonical);
            let key = term_key(workspace, id);
            if !recent_terms.recall(key) {
                self.terms.insert(key, canonical);
            }
            id
        };
        let encoded = EncodedQuad {
            s: id_of(canonical_bytes(&quad.s)),
            p: id_of(canonical_bytes(&quad.p)),
            o: id_of(canonical_bytes(&quad.o)),
            g: match quad.g.as_deref() {
                None | Some("") => TermId::DEFAULT_GRAPH,
                Some(graph) => id_of(canonical_iri(graph)),
            },
        };
        self.quads.extend(Order::ALL.map(|order| quad_key(workspace, order, &encoded)));
    }

    /// Returns the keys of the terms that were written.
    pub(super) fn write(self, batch: &mut OwnedWriteBatch, tables: &Tables) -> Vec<TermKey> {
        for key in &self.quads {
            batch.insert(&tables.quads, key.as_slice(), b"".as_slice());
        }
        let mut written = Vec::with_capacity(self.terms.len());
        for (key, canonical) in self.terms {
            batch.insert(&tables.terms, key.as_slice(), canonical);
            written.push(key);
        }
        written
    }
}
