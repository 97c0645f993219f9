//! The sort orders of the index, and which of them answers a pattern.
//!
//! Four orders are enough. Subject, object, predicate and predicate + object each start one, with
//! the graph last, so that equal triples of several graphs lie side by side and a union drops
//! them without remembering anything. A graph starts the fourth: a graph may hold any share of the
//! workspace. The graph of runs holds nearly all of it, so that this order would only repeat the
//! others; its quads are left out of it. Where a graph comes together with a subject or an object, these already
//! narrow the scan, and the few keys of other graphs are skipped; a fifth order would cost every write for that.

use crate::term_id::{TERM_ID_BYTES, TermId, WORKSPACE_ID_BYTES, WorkspaceId};
use std::sync::LazyLock;
use trellis_provenance::vocabulary::GRAPH_RETRIEVAL;

/// The graph that runs are projected into.
pub static MAIN_GRAPH: LazyLock<TermId> = LazyLock::new(|| TermId::of_graph(Some(GRAPH_RETRIEVAL)));

/// A quad as ids; the default graph is [`TermId::DEFAULT_GRAPH`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EncodedQuad {
    pub s: TermId,
    pub p: TermId,
    pub o: TermId,
    pub g: TermId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Spog,
    Posg,
    Ospg,
    Gpos,
}

impl Order {
    pub const ALL: [Self; 4] = [Self::Spog, Self::Posg, Self::Ospg, Self::Gpos];

    /// What the keys of this order begin with, in words.
    pub fn begins_with(self) -> &'static str {
        match self {
            Self::Spog => "subject",
            Self::Posg => "predicate",
            Self::Ospg => "object",
            Self::Gpos => "graph",
        }
    }

    /// Whether a quad is kept in this order.
    pub fn keeps(self, quad: &EncodedQuad) -> bool {
        match self {
            Self::Spog | Self::Posg | Self::Ospg => true,
            Self::Gpos => quad.g != *MAIN_GRAPH,
        }
    }

    /// The byte behind the workspace. Zero is free for what is not an index.
    fn tag(self) -> u8 {
        match self {
            Self::Spog => 1,
            Self::Posg => 2,
            Self::Ospg => 3,
            Self::Gpos => 4,
        }
    }

    /// The order that a key belongs to.
    pub fn of_key(key: &[u8]) -> Option<Self> {
        let tag = *key.get(WORKSPACE_ID_BYTES)?;
        Self::ALL.into_iter().find(|order| order.tag() == tag)
    }

    pub fn arrange(self, quad: &EncodedQuad) -> [TermId; 4] {
        let EncodedQuad { s, p, o, g } = *quad;
        match self {
            Self::Spog => [s, p, o, g],
            Self::Posg => [p, o, s, g],
            Self::Ospg => [o, s, p, g],
            Self::Gpos => [g, p, o, s],
        }
    }

    pub fn restore(self, ids: [TermId; 4]) -> EncodedQuad {
        let [a, b, c, d] = ids;
        match self {
            Self::Spog => EncodedQuad { s: a, p: b, o: c, g: d },
            Self::Posg => EncodedQuad { p: a, o: b, s: c, g: d },
            Self::Ospg => EncodedQuad { o: a, s: b, p: c, g: d },
            Self::Gpos => EncodedQuad { g: a, p: b, o: c, s: d },
        }
    }

    /// The same order with the graph last. Scans of single graphs can be merged by it.
    #[must_use]
    pub fn graph_last(self) -> Self {
        match self {
            Self::Spog => Self::Spog,
            Self::Posg | Self::Gpos => Self::Posg,
            Self::Ospg => Self::Ospg,
        }
    }
}

pub const KEY_BYTES: usize = WORKSPACE_ID_BYTES + 1 + 4 * TERM_ID_BYTES;
const IDS_START: usize = WORKSPACE_ID_BYTES + 1;

pub type QuadKey = [u8; KEY_BYTES];

pub fn quad_key(workspace: WorkspaceId, order: Order, quad: &EncodedQuad) -> QuadKey {
    let mut key = [0; KEY_BYTES];
    key[..WORKSPACE_ID_BYTES].copy_from_slice(&workspace.0);
    key[WORKSPACE_ID_BYTES] = order.tag();
    for (slot, id) in key[IDS_START..].chunks_exact_mut(TERM_ID_BYTES).zip(order.arrange(quad)) {
        slot.copy_from_slice(&id.to_bytes());
    }
    key
}

/// Everything that starts with `ids` in this order.
pub fn key_prefix(workspace: WorkspaceId, order: Order, ids: &[TermId]) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(KEY_BYTES);
    prefix.extend_from_slice(&workspace.0);
    prefix.push(order.tag());
    for id in ids {
        prefix.extend_from_slice(&id.to_bytes());
    }
    prefix
}

/// `None` if this is not the key of a quad in this order.
pub fn read_quad_key(order: Order, key: &[u8]) -> Option<EncodedQuad> {
    let key: &QuadKey = key.try_into().ok()?;
    if key[WORKSPACE_ID_BYTES] != order.tag() {
        return None;
    }
    let mut ids = [TermId::DEFAULT_GRAPH; 4];
    for (id, slot) in ids.iter_mut().zip(key[IDS_START..].chunks_exact(TERM_ID_BYTES)) {
        *id = TermId::from_bytes(slot.try_into().ok()?);
    }
    Some(order.restore(ids))
}

/// Which graphs a pattern covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Graphs {
    All,
    Named,
    One(TermId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IdPattern {
    pub s: Option<TermId>,
    pub p: Option<TermId>,
    pub o: Option<TermId>,
    pub g: Graphs,
}

/// The part of the index to read for a pattern: an order and the ids its keys start with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessPath {
    pub order: Order,
    pub prefix: Vec<TermId>,
}

impl IdPattern {
    pub fn matches(&self, quad: &EncodedQuad) -> bool {
        let fits = |wanted: Option<TermId>, id| wanted.is_none_or(|wanted| wanted == id);
        let in_graph = match self.g {
            Graphs::All => true,
            Graphs::Named => quad.g != TermId::DEFAULT_GRAPH,
            Graphs::One(graph) => quad.g == graph,
        };
        in_graph && fits(self.s, quad.s) && fits(self.p, quad.p) && fits(self.o, quad.o)
    }

    pub fn access_path(&self) -> AccessPath {
        let graph = match self.g {
            Graphs::One(graph) if graph != *MAIN_GRAPH => Some(graph),
            Graphs::One(_) | Graphs::All | Graphs::Named => None,
        };
        let (order, prefix) = match (self.s, self.p, self.o, graph) {
            (Some(s), None, Some(o), _) => (Order::Ospg, vec![o, s]),
            (Some(s), Some(p), Some(o), Some(g)) => (Order::Spog, vec![s, p, o, g]),
            (Some(s), Some(p), Some(o), None) => (Order::Spog, vec![s, p, o]),
            (Some(s), Some(p), None, _) => (Order::Spog, vec![s, p]),
            (Some(s), None, None, _) => (Order::Spog, vec![s]),
            (None, Some(p), Some(o), Some(g)) => (Order::Gpos, vec![g, p, o]),
            (None, Some(p), Some(o), None) => (Order::Posg, vec![p, o]),
            (None, None, Some(o), _) => (Order::Ospg, vec![o]),
            (None, Some(p), None, Some(g)) => (Order::Gpos, vec![g, p]),
            (None, Some(p), None, None) => (Order::Posg, vec![p]),
            (None, None, None, Some(g)) => (Order::Gpos, vec![g]),
            // Sorted like any other graph, so that graphs can be merged.
            (None, None, None, None) if matches!(self.g, Graphs::One(_)) => (Order::Posg, vec![]),
            (None, None, None, None) => (Order::Spog, vec![]),
        };
        AccessPath { order, prefix }
    }
}
