//! Reads one workspace, or one collection of it, as it was at one moment.

use super::ViewError;
use super::order::{EncodedQuad, Graphs, IdPattern, MAIN_GRAPH, Order, key_prefix, read_quad_key};
use super::query::Cancellation;
use super::term_id::{TERM_ID_BYTES, TermId, WORKSPACE_ID_BYTES, WorkspaceId};
use super::trees::{Keys, Snapshot};
use lsm_tree::{Guard, UserValue};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct ViewReader {
    snapshot: Arc<Snapshot>,
    workspace: WorkspaceId,
    cancellation: Cancellation,
    visited: Arc<AtomicU64>,
}

impl ViewReader {
    pub(super) fn new(
        snapshot: Arc<Snapshot>,
        workspace: WorkspaceId,
        cancellation: Cancellation,
        visited: Arc<AtomicU64>,
    ) -> Self {
        Self { snapshot, workspace, cancellation, visited }
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

    /// The same, if there is such a term here.
    pub(super) fn known(&self, id: TermId) -> Result<Option<UserValue>, ViewError> {
        self.snapshot.term(&term_key(self.workspace, id))
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
