//! Reads one workspace as it was at one moment.

use super::ViewError;
use super::order::{EncodedQuad, Graphs, IdPattern, MAIN_GRAPH, Order, key_prefix, read_quad_key};
use super::query::{Cancellation, QueryError};
use super::source::{QuadSource, Source};
use super::term_id::{TERM_ID_BYTES, TermId, WORKSPACE_ID_BYTES, WorkspaceId, read_term};
use super::trees::{Keys, Snapshot};
use lsm_tree::{Guard, UserValue};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trellis_domain::rdf::Term;

pub(super) struct ViewReader {
    snapshot: Snapshot,
    workspace: WorkspaceId,
    cancellation: Cancellation,
    visited: Arc<AtomicU64>,
    read_terms: RefCell<TermCache>,
}

impl ViewReader {
    pub(super) fn new(
        snapshot: Snapshot,
        workspace: WorkspaceId,
        cancellation: Cancellation,
        visited: Arc<AtomicU64>,
    ) -> Self {
        Self { snapshot, workspace, cancellation, visited, read_terms: RefCell::default() }
    }

    /// The quads that match, sorted by the order of the pattern's access path.
    pub(super) fn quads(&self, pattern: IdPattern) -> Scan {
        let path = pattern.access_path();
        let prefix = key_prefix(self.workspace, path.order, &path.prefix);
        Scan {
            // Not a range with an end: that would be looked for as well, and most scans are short.
            keys: self.snapshot.quads_from(&prefix),
            prefix,
            order: path.order,
            pattern,
            cancellation: self.cancellation.clone(),
            visited: Arc::clone(&self.visited),
        }
    }

    /// The canonical bytes of a term.
    pub(super) fn canonical(&self, id: TermId) -> Result<UserValue, ViewError> {
        let key = term_key(self.workspace, id);
        self.snapshot.term(&key)?.ok_or(ViewError::TermMissing { id })
    }

    /// What the dictionary has under a key that is no term's.
    pub(super) fn dictionary(&self, key: &TermKey) -> Result<Option<UserValue>, ViewError> {
        self.snapshot.term(key)
    }

    /// All quads about a node.
    pub(super) fn about(&self, node: TermId) -> Scan {
        self.quads(IdPattern { s: Some(node), p: None, o: None, g: Graphs::All })
    }

    /// All quads that name a term as their object.
    pub(super) fn naming(&self, object: TermId) -> Scan {
        self.quads(IdPattern { s: None, p: None, o: Some(object), g: Graphs::All })
    }

    /// The named graphs, by jumping from one to the next: one key read for each.
    pub(super) fn graphs(&self) -> Result<Vec<TermId>, ViewError> {
        let main = IdPattern { s: None, p: None, o: None, g: Graphs::One(*MAIN_GRAPH) };
        let main = self.quads(main).next().transpose()?;
        let mut graphs: Vec<TermId> = main.into_iter().map(|quad| quad.g).collect();
        let mut from = TermId::DEFAULT_GRAPH.successor();
        while let Some(start) = from {
            let Some(graph) = self.first_graph_from(start)? else { break };
            graphs.push(graph);
            from = graph.successor();
        }
        Ok(graphs)
    }

    fn first_graph_from(&self, start: TermId) -> Result<Option<TermId>, ViewError> {
        let from = key_prefix(self.workspace, Order::Gpos, &[start]);
        let Some(guard) = self.snapshot.quads_from(&from).next() else { return Ok(None) };
        self.visited.fetch_add(1, Ordering::Relaxed);
        let key = guard.key()?;
        let in_index = key.starts_with(&key_prefix(self.workspace, Order::Gpos, &[]));
        Ok(in_index.then(|| read_quad_key(Order::Gpos, &key)).flatten().map(|quad| quad.g))
    }
}

impl Source for ViewReader {
    fn scan(&self, pattern: IdPattern) -> Result<QuadSource, QueryError> {
        Ok(Box::new(self.quads(pattern).map(|quad| Ok(quad?))))
    }

    fn term(&self, id: TermId) -> Result<Term, QueryError> {
        let read = || read_term(&self.canonical(id)?).ok_or(ViewError::TermDamaged { id });
        Ok(self.read_terms.borrow_mut().get_or_read(id, read)?)
    }

    fn named_graphs(&self) -> Result<Vec<TermId>, QueryError> {
        Ok(self.graphs()?)
    }
}

pub(super) type TermKey = [u8; WORKSPACE_ID_BYTES + TERM_ID_BYTES];

pub(super) fn term_key(workspace: WorkspaceId, id: TermId) -> TermKey {
    let mut key = [0; WORKSPACE_ID_BYTES + TERM_ID_BYTES];
    key[..WORKSPACE_ID_BYTES].copy_from_slice(&workspace.0);
    key[WORKSPACE_ID_BYTES..].copy_from_slice(&id.to_bytes());
    key
}

/// A range of index keys, of which those that match come out. Ends early when cancelled.
pub(super) struct Scan {
    keys: Keys,
    prefix: Vec<u8>,
    order: Order,
    pattern: IdPattern,
    cancellation: Cancellation,
    visited: Arc<AtomicU64>,
}

impl Scan {
    /// The next key of the range, whether it matches or not.
    fn read_next(&mut self) -> Result<Option<EncodedQuad>, ViewError> {
        let Some(guard) = self.keys.next() else { return Ok(None) };
        let key = guard.key()?;
        if !key.starts_with(&self.prefix) {
            return Ok(None);
        }
        self.visited.fetch_add(1, Ordering::Relaxed);
        read_quad_key(self.order, &key).map(Some).ok_or_else(|| ViewError::KeyDamaged { key: key.to_vec() })
    }
}

impl Iterator for Scan {
    type Item = Result<EncodedQuad, ViewError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.cancellation.is_cancelled() {
            match self.read_next() {
                Ok(Some(quad)) if !self.pattern.matches(&quad) => {}
                found => return found.transpose(),
            }
        }
        None
    }
}

/// Terms read from the dictionary, at most [`CACHED_TERMS`] of them.
#[derive(Default)]
pub(super) struct TermCache(HashMap<TermId, Term>);

const CACHED_TERMS: usize = 16_384;

impl TermCache {
    pub(super) fn get_or_read(
        &mut self,
        id: TermId,
        read: impl FnOnce() -> Result<Term, ViewError>,
    ) -> Result<Term, ViewError> {
        if let Some(term) = self.0.get(&id) {
            return Ok(term.clone());
        }
        let term = read()?;
        if self.0.len() >= CACHED_TERMS {
            self.0.clear();
        }
        self.0.insert(id, term.clone());
        Ok(term)
    }
}
