//! Provenance: acts as PROV-O quads, quads as a typed trace, and checks on both.
//!
//! RDF is a pure projection: the same acts give the same quads, always. This crate owns the vocabulary, the IRIs and the
//! shape of the graph; what a record means is known to `patterns`, which describes records as acts. It stores and
//! fetches nothing: no async, no clock, no randomness, no IO.

#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them"))]

pub mod check;
pub mod documents;
pub mod event;
pub mod export;
mod graph;
pub mod iri;
pub mod node;
#[cfg(any(test, feature = "testing"))]
pub mod ontology;
pub mod retrieval;
pub mod trace;
pub mod vocabulary;

pub use check::{Fault, check};
pub use documents::DocumentRef;
pub use event::{Act, Draft, Event};
pub use export::{ExportError, Format, export, to_oxrdf};
pub use node::Node;
pub use trace::{SessionTrace, Step, Trace, trace};

/// The number of this projection. Raise it whenever the same records give other quads: whatever was derived by another
/// one is derived anew.
pub const PROJECTION: u32 = 4;

/// The vocabulary as OWL in Turtle, for people and tools: every class and property that the graph uses, what it says,
/// of what, and when it is written. Tests hold [`vocabulary`] and the projection against it.
pub const ONTOLOGY: &str = include_str!("../../../ontology/trellis.ttl");

#[cfg(test)]
mod ontology_tests;
