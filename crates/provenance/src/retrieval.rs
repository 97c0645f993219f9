//! How a retrieval came to its answer, step by step, as TrustGraph's services tell it: question, grounding, exploration,
//! focus, synthesis. Each step derives from the one before it, the first from whatever called the retrieval.

use crate::iri;
use crate::node::Node;
use crate::vocabulary::{prov, tg, trellis};
use trellis_domain::Timestamp;
use trellis_domain::decision::{Decision, DecisionKind};
use trellis_domain::rdf::{Term, Triple};
use trellis_domain::record::Explained;
use trellis_domain::usage::Usage;

/// An edge that the answer rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptEdge {
    pub triple: Triple,
    /// Which of the concepts it fits best, if it has a word in common with one.
    pub concept: Option<String>,
    /// From 0 to 1.
    pub score: f64,
    /// What the model says about it.
    pub reasoning: Option<String>,
    /// Which of the choices it comes from, counted from 0.
    pub choice: usize,
    /// Passages of documents that say so, if it was extracted from some.
    pub passages: Vec<String>,
}

/// A passage that the answer rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptPassage {
    /// The library's document that it stands in.
    pub document: String,
    pub score: f64,
}

/// The trace of one question to a knowledge graph.
///
/// ```
/// use trellis_provenance::retrieval::GraphTrace;
///
/// let trace = GraphTrace::new("6a3f");
/// let told = trace.question("Who painted it?", Default::default(), Some("urn:trustgraph:agent:S/i1"));
/// assert_eq!(told.id, "urn:trustgraph:question:6a3f");
/// assert_eq!(told.quads.len(), 7);
/// ```
#[derive(Debug, Clone)]
pub struct GraphTrace {
    id: String,
}

impl GraphTrace {
    /// The id is that of this one question, and of no other.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into() }
    }

    fn node(&self, step: &str) -> String {
        format!("urn:trustgraph:prov:{step}:{}", self.id)
    }

    fn question_iri(&self) -> String {
        format!("urn:trustgraph:question:{}", self.id)
    }

    /// Where the options of choices come from.
    pub fn exploration_iri(&self) -> String {
        self.node("exploration")
    }

    pub fn question(&self, query: &str, time: Timestamp, parent: Option<&str>) -> Explained {
        question(&self.question_iri(), tg::class::GRAPH_RAG_QUESTION, "GraphRAG Question", query, time, parent)
    }

    pub fn grounding(&self, concepts: &[String], usage: &Usage) -> Explained {
        grounding(&self.node("grounding"), &self.question_iri(), concepts, usage)
    }

    /// How many edges were kept, as the original counts them, and which entities they were looked for from.
    pub fn exploration(&self, edges: usize, entities: &[String]) -> Explained {
        let node = step(&self.exploration_iri(), tg::class::EXPLORATION, "Exploration", &self.node("grounding"));
        told([node.text(tg::EDGE_COUNT, edges).links(tg::ENTITY, entities)])
    }

    /// The edges that were kept, and each of the choices that they were kept by.
    pub fn focus(&self, kept: &[KeptEdge], choices: &[Decision], usage: &Usage) -> Explained {
        let focus = self.node("focus");
        let of =
            |choice: usize| iri::decision(&focus, DecisionKind::Edges, u32::try_from(choice + 1).unwrap_or(u32::MAX));
        let selected: Vec<Node> = kept.iter().enumerate().map(|(k, edge)| self.selection(k, edge, of)).collect();
        let choices: Vec<Node> =
            choices.iter().enumerate().map(|(place, decision)| Node::choice(&of(place), decision)).collect();
        let main = step(&focus, tg::class::FOCUS, "Focus", &self.exploration_iri())
            .links_to(tg::SELECTED_EDGE, &selected)
            .links_to(trellis::DECISION, &choices)
            .cost(usage);
        told([main].into_iter().chain(selected).chain(choices))
    }

    fn selection(&self, k: usize, edge: &KeptEdge, choice: impl Fn(usize) -> String) -> Node {
        let KeptEdge { triple, concept, score, reasoning, choice: number, passages } = edge;
        Node::new(format!("urn:trustgraph:prov:edge:{}:{k}", self.id))
            .types(&[tg::class::EDGE_SELECTION])
            .say(tg::EDGE, Term::Quoted { triple: Box::new(triple.clone()) })
            .texts(tg::CONCEPT, concept)
            .text(tg::SCORE, score)
            .texts(tg::REASONING, reasoning)
            .link(trellis::DECISION, choice(*number))
            .links(trellis::PASSAGE, passages)
    }

    pub fn synthesis(&self, document: Option<&str>, usage: &Usage) -> Explained {
        synthesis(&self.node("synthesis"), &self.node("focus"), document, usage)
    }
}

/// The trace of one question to documents.
#[derive(Debug, Clone)]
pub struct DocumentTrace {
    id: String,
}

impl DocumentTrace {
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into() }
    }

    fn root(&self) -> String {
        format!("urn:trustgraph:docrag:{}", self.id)
    }

    fn node(&self, step: &str) -> String {
        format!("{}/{step}", self.root())
    }

    /// The whole of it: no model takes part, so nothing has to be told before the end. The documents that were found
    /// are those of the library, each once, the best first.
    pub fn whole(&self, question: &Asked<'_>, found: &[KeptPassage], document: Option<&str>) -> Vec<Explained> {
        let Asked { query, time, parent } = *question;
        let nothing = Usage::default();
        let asked =
            self::question(&self.root(), tg::class::DOC_RAG_QUESTION, "DocumentRAG Question", query, time, parent);
        let grounded = grounding(&self.node("grounding"), &self.root(), &[query.to_owned()], &nothing);
        let mut documents: Vec<&str> = Vec::new();
        for passage in found {
            if !documents.contains(&passage.document.as_str()) {
                documents.push(&passage.document);
            }
        }
        let exploration =
            step(&self.node("exploration"), tg::class::EXPLORATION, "Exploration", &self.node("grounding"))
                .text(tg::CHUNK_COUNT, found.len())
                .links(tg::SELECTED_CHUNK, documents);
        let selected: Vec<Node> = found.iter().enumerate().map(|(k, passage)| self.selection(k, passage)).collect();
        let focus = step(&self.node("focus"), tg::class::FOCUS, "Chunk Selection", &self.node("exploration"))
            .links_to(tg::SELECTED_CHUNK, &selected);
        let focus = told([focus].into_iter().chain(selected));
        let end = synthesis(&self.node("synthesis"), &self.node("focus"), document, &nothing);
        vec![asked, grounded, told([exploration]), focus, end]
    }

    fn selection(&self, k: usize, passage: &KeptPassage) -> Node {
        Node::new(format!("urn:trustgraph:prov:chunk:{}:{k}", self.id))
            .types(&[tg::class::CHUNK_SELECTION])
            .link(tg::DOCUMENT, &passage.document)
            .text(tg::SCORE, passage.score)
    }
}

/// What was asked, when, and by which step.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub query: &'a str,
    pub time: Timestamp,
    pub parent: Option<&'a str>,
}

fn question(id: &str, class: &str, label: &str, query: &str, time: Timestamp, parent: Option<&str>) -> Explained {
    let node = Node::new(id)
        .types(&[prov::class::ENTITY, tg::class::QUESTION, class])
        .label(label)
        .text(prov::STARTED_AT_TIME, time)
        .text(tg::QUERY, query)
        .derived_from(parent);
    told([node])
}

fn grounding(id: &str, from: &str, concepts: &[String], usage: &Usage) -> Explained {
    told([step(id, tg::class::GROUNDING, "Grounding", from).texts(tg::CONCEPT, concepts).cost(usage)])
}

fn synthesis(id: &str, from: &str, document: Option<&str>, usage: &Usage) -> Explained {
    let node = Node::new(id)
        .types(&[prov::class::ENTITY, tg::class::SYNTHESIS, tg::class::ANSWER])
        .label("Synthesis")
        .derived_from([from])
        .links(tg::DOCUMENT, document)
        .cost(usage);
    told([node])
}

fn step(id: &str, class: &str, label: &str, from: &str) -> Node {
    Node::new(id).types(&[prov::class::ENTITY, class]).label(label).derived_from([from])
}

/// The event of the first node, with those that travel with it.
fn told(nodes: impl IntoIterator<Item = Node>) -> Explained {
    let mut nodes = nodes.into_iter().peekable();
    let id = nodes.peek().map(|node| node.iri().to_owned()).unwrap_or_default();
    Explained { id, quads: nodes.flat_map(|node| node.into_parts().0).collect() }
}

#[cfg(test)]
#[path = "retrieval_tests.rs"]
mod tests;
