//! Answers from a knowledge graph: what a question is about, the entities that are called so, the edges around them, hop
//! by hop, and an answer from those that a model finds fit. As TrustGraph 2.11 does it; where its service has a model for
//! scores (a cross-encoder), words or vectors choose the candidates here, and the language model scores them.
//!
//! Owns the order of the steps and how much each may take. What models answer is material: a reply that cannot be read
//! costs the step its model, never the question its answer.

mod answer;
mod bounds;
mod edges;
mod fitness;
mod hops;
mod indexed;
mod labels;
mod models;
mod names;
mod open_sources;
mod scoring;
mod sources;

pub use answer::{CONCEPTS, GraphAnswer, GraphRag, GraphRagError, Listener, Written};
pub use bounds::{GraphBounds, GraphQuestion, TraversalStep};
pub use indexed::IndexedKnowledge;
pub use models::Asker;
pub use names::{EntityName, EntityNames};
pub use sources::{Source, SourcePassage};
