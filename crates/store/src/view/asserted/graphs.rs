//! Single graphs leave a collection, as those of a document do that is removed.
//!
//! Quads go in batches, with what the catalogue says of them. Terms that nobody uses any more go after the quads are gone
//! on disk, too: the dictionary is written first otherwise, and a crash in between would leave quads without terms.
//!
//! The last graph goes in one batch, and the source with it: whoever asks again after a crash finds all of it, or nothing.

use super::catalogue::{self, collection_key, place_of, source_key};
use super::{Asserted, REMOVED_TOGETHER, unwritten};
use crate::view::ViewError;
use crate::view::order::{EncodedQuad, MAIN_GRAPH, Order, key_prefix, quad_key, read_quad_key};
use crate::view::reader::{TermKey, term_key};
use crate::view::recent_terms::RecentTerms;
use crate::view::sources::loaded_failed;
use crate::view::term_id::{TermId, WorkspaceId};
use crate::view::trees::Snapshot;
use lsm_tree::Guard;
use std::collections::BTreeSet;
use trellis_orchestrator::ports::{KnowledgeError, KnowledgePlace};

impl Asserted {
    /// Takes graphs away, in their order, and then the source that they came from. A collection that has nothing more is
    /// gone, too. How many quads there were.
    pub(crate) fn remove_graphs(
        &self,
        place: &KnowledgePlace,
        source: &str,
        graphs: &[String],
    ) -> Result<u64, KnowledgeError> {
        let workspace = WorkspaceId::of(place.workspace.as_str());
        let mut left = graphs.iter().map(|graph| TermId::of_graph(Some(graph))).collect::<Vec<_>>().into_iter();
        let mut removed = 0;
        loop {
            let mut recent_terms = self.writer();
            self.trees.make_room().map_err(unwritten)?;
            let snapshot = self.trees.snapshot();
            let found = catalogue::entry(&snapshot, workspace, &place.collection).map_err(loaded_failed)?;
            let Some(mut entry) = found else { return Ok(removed) };
            let here = place_of(workspace, &place.collection, entry.generation);
            let batch = next_batch(&snapshot, here, &mut left, REMOVED_TOGETHER).map_err(loaded_failed)?;
            let is_end = left.as_slice().is_empty();
            let is_known = catalogue::source(&snapshot, here, source).map_err(loaded_failed)?.is_some();
            if is_end && batch.is_empty() && removed == 0 && !is_known {
                return Ok(0);
            }
            let writing = self.trees.write();
            for quad in &batch {
                entry.sum.remove(&quad_key(here, Order::Spog, quad));
                for order in Order::ALL.into_iter().filter(|order| order.keeps(quad)) {
                    writing.remove_quad(&quad_key(here, order, quad));
                }
            }
            removed += batch.len() as u64;
            if is_end && is_known {
                entry.sources = entry.sources.saturating_sub(1);
                writing.remove_quad(&source_key(here, source));
            }
            let key = collection_key(workspace, &place.collection);
            if is_end && entry.sum.rows == 0 && entry.sources == 0 {
                writing.remove_quad(&key);
            } else {
                writing.put_quad(&key, &entry.to_bytes());
            }
            writing.show();
            self.trees.flush().map_err(unwritten)?;
            self.remove_unused(here, &batch, &mut recent_terms).map_err(unwritten)?;
            if is_end {
                self.trees.persist().map_err(unwritten)?;
                return Ok(removed);
            }
        }
    }

    /// Removes the terms of quads that are gone, unless others use them.
    fn remove_unused(
        &self,
        here: WorkspaceId,
        gone: &[EncodedQuad],
        recent_terms: &mut RecentTerms<TermKey>,
    ) -> Result<(), ViewError> {
        let snapshot = self.trees.snapshot();
        let ids: BTreeSet<TermId> = gone.iter().flat_map(|quad| [quad.s, quad.p, quad.o, quad.g]).collect();
        let mut unused = Vec::new();
        // The graph of runs is in no order by which it could be found.
        for id in ids.into_iter().filter(|id| *id != TermId::DEFAULT_GRAPH && *id != *MAIN_GRAPH) {
            let mut is_used = false;
            for order in Order::ALL {
                let first = snapshot.quads_within(&key_prefix(here, order, &[id])).next();
                is_used |= first.map(Guard::key).transpose()?.is_some();
            }
            if !is_used {
                unused.push(term_key(here, id));
            }
        }
        let writing = self.trees.write();
        for key in &unused {
            writing.remove_term(key);
            recent_terms.forget(key);
        }
        writing.show();
        Ok(())
    }
}

/// The next quads that go: about so many, but all of the last graph, and nothing else with it. A graph that has more than
/// fit is looked at again.
fn next_batch(
    snapshot: &Snapshot,
    here: WorkspaceId,
    left: &mut std::vec::IntoIter<TermId>,
    most: usize,
) -> Result<Vec<EncodedQuad>, ViewError> {
    let mut batch = Vec::new();
    while let Some((graph, others)) = left.as_slice().split_first() {
        let is_last = others.is_empty();
        if is_last && !batch.is_empty() {
            break;
        }
        let room = if is_last { usize::MAX } else { most - batch.len() };
        let before = batch.len();
        for row in snapshot.quads_within(&key_prefix(here, Order::Gpos, &[*graph])).take(room) {
            let key = row.key()?;
            let quad = read_quad_key(Order::Gpos, &key).ok_or_else(|| ViewError::KeyDamaged { key: key.to_vec() })?;
            batch.push(quad);
        }
        if batch.len() - before == room {
            break;
        }
        left.next();
    }
    Ok(batch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::order::EncodedQuad;
    use std::collections::BTreeMap;
    use trellis_domain::rdf::{Quad, Term};
    use trellis_domain::{Collection, Workspace};

    fn quads(graph: &str, count: usize) -> Vec<Quad> {
        let quad = |n: usize| Quad {
            s: Term::iri("urn:s"),
            p: Term::iri("urn:p"),
            o: Term::literal(format!("{graph} {n}")),
            g: Some(graph.to_owned()),
        };
        (0..count).map(quad).collect()
    }

    /// A crash comes between two batches, so what lies in one goes together.
    #[test]
    fn the_last_graph_goes_whole_and_alone() {
        let folder = tempfile::tempdir().unwrap();
        let asserted = Asserted::open(folder.path()).unwrap();
        let place = KnowledgePlace { workspace: Workspace::default(), collection: Collection::default() };
        for (graph, count) in [("urn:a", 7), ("urn:b", 25), ("urn:last", 30)] {
            asserted.add(&place, "d", &quads(graph, count)).unwrap();
        }
        let graphs = ["urn:a", "urn:b", "urn:last"].map(|graph| TermId::of_graph(Some(graph)));
        let mut left = Vec::from(graphs).into_iter();
        let mut batches = Vec::new();
        let mut gone: BTreeMap<TermId, usize> = BTreeMap::new();
        let workspace = WorkspaceId::of(place.workspace.as_str());
        while !left.as_slice().is_empty() {
            let snapshot = asserted.trees.snapshot();
            let entry = catalogue::entry(&snapshot, workspace, &place.collection).unwrap().unwrap();
            let here = place_of(workspace, &place.collection, entry.generation);
            let batch: Vec<EncodedQuad> = next_batch(&snapshot, here, &mut left, 10).unwrap();
            let writing = asserted.trees.write();
            for quad in &batch {
                *gone.entry(quad.g).or_default() += 1;
                for order in Order::ALL.into_iter().filter(|order| order.keeps(quad)) {
                    writing.remove_quad(&quad_key(here, order, quad));
                }
            }
            writing.show();
            batches.push((batch.len(), batch.iter().filter(|quad| quad.g == graphs[2]).count()));
        }
        assert_eq!(batches, [(10, 0), (10, 0), (10, 0), (2, 0), (30, 30)]);
        assert_eq!(gone.into_values().sum::<usize>(), 62);
    }

    /// As a version before left it that was stopped behind the last graph.
    #[test]
    fn a_source_without_graphs_goes_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let asserted = Asserted::open(folder.path()).unwrap();
        let place = KnowledgePlace { workspace: Workspace::default(), collection: Collection::default() };
        asserted.add(&place, "d", &[]).unwrap();
        assert_eq!(asserted.collections(&place.workspace).unwrap()[0].unfinished, ["d"]);
        assert_eq!(asserted.remove_graphs(&place, "d", &["urn:none".to_owned()]).unwrap(), 0);
        assert_eq!(asserted.collections(&place.workspace).unwrap(), []);
    }
}
