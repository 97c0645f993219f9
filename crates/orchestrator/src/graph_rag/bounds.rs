//! What is asked, and how far an answer may go for it.

use crate::ports::KnowledgePlace;
use serde::Deserialize;

/// How much one question looks at. The names and the usual values are those of TrustGraph's service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphBounds {
    /// Entities that the search begins with.
    pub entities: usize,
    /// Edges of an entity that are read, in each direction. Those of an entity that has more are the first in the order
    /// of the store's index, which is the same each time.
    pub triples: usize,
    /// Edges that are kept in all.
    pub subgraph: usize,
    /// Hops.
    pub path: usize,
    /// Edges of a hop that a model is shown.
    pub scored: usize,
    /// Edges of a hop that are kept.
    pub edges: usize,
    /// Edges of a hop that are compared with the question.
    pub candidates: usize,
}

impl Default for GraphBounds {
    fn default() -> Self {
        Self { entities: 50, triples: 30, subgraph: 150, path: 2, scored: 30, edges: 25, candidates: 350 }
    }
}

impl GraphBounds {
    const MOST: Self =
        Self { entities: 100, triples: 200, subgraph: 500, path: 4, scored: 100, edges: 100, candidates: 1000 };

    /// Those that somebody wishes, by the names of requests and tools; nothing and 0 mean the usual. What is more than
    /// the most is the most.
    pub fn wished(number: impl Fn(&str) -> Option<u64>) -> Self {
        let (usual, most) = (Self::default(), Self::MOST);
        let read = |name: &str, usual: usize, most: usize| match number(name) {
            None | Some(0) => usual,
            Some(wished) => usize::try_from(wished).unwrap_or(usize::MAX).min(most),
        };
        Self {
            entities: read("entity-limit", usual.entities, most.entities),
            triples: read("triple-limit", usual.triples, most.triples),
            subgraph: read("max-subgraph-size", usual.subgraph, most.subgraph),
            path: read("max-path-length", usual.path, most.path),
            scored: read("edge-score-limit", usual.scored, most.scored),
            edges: read("edge-limit", usual.edges, most.edges),
            candidates: read("max-reranker-input", usual.candidates, most.candidates),
        }
    }
}

/// One question to a knowledge graph.
#[derive(Debug, Clone)]
pub struct GraphQuestion {
    pub place: KnowledgePlace,
    pub query: String,
    pub bounds: GraphBounds,
    /// What the question is about, if nobody has to be asked for it.
    pub concepts: Vec<String>,
    /// IRIs to begin with, instead of entities that are called like the concepts.
    pub entities: Vec<String>,
    /// Literals in other languages are left out; an empty text stands for those without one. None means all.
    pub languages: Vec<String>,
    /// What each hop may follow: the first is about the entities that it begins with.
    pub steps: Vec<TraversalStep>,
    /// Only edges of this named graph.
    pub graph: Option<String>,
    /// Names the steps of the trace: the same for every repetition of this question, and of no other.
    pub id: String,
    /// IRI of the step that asks.
    pub parent: Option<String>,
    /// IRI of the document that the answer will be.
    pub document: Option<String>,
}

impl GraphQuestion {
    pub fn new(place: KnowledgePlace, query: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            place,
            query: query.into(),
            bounds: GraphBounds::default(),
            concepts: Vec::new(),
            entities: Vec::new(),
            languages: Vec::new(),
            steps: Vec::new(),
            graph: None,
            id: id.into(),
            parent: None,
            document: None,
        }
    }
}

/// What one hop may follow. Empty lists allow everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct TraversalStep {
    /// Classes, of which an entity has to have one to be followed further.
    #[serde(default)]
    pub types: Vec<String>,
    #[serde(default)]
    pub relationships: Vec<String>,
    #[serde(default)]
    pub graphs: Vec<String>,
}
