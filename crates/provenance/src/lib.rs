//! Provenance: records as PROV-O quads, quads as a typed trace, and checks on both.
//!
//! RDF is a pure projection: the same records give the same quads, always, in whatever order they
//! come. This crate owns the vocabulary, the IRIs and the shape of the graph. It stores and fetches
//! nothing: no async, no clock, no randomness, no IO.

#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes them"))]

mod asking;
pub mod check;
pub mod documents;
pub mod export;
mod graph;
pub mod iri;
mod node;
#[cfg(any(test, feature = "testing"))]
pub mod ontology;
pub mod project;
mod session;
pub mod trace;
pub mod vocabulary;

pub use check::{Fault, check};
pub use documents::{DocumentRef, documents};
pub use export::{ExportError, Format, export, to_oxrdf};
pub use project::{Event, Projector, events, project};
pub use trace::{SessionTrace, Step, Trace, trace};

/// The number of this projection. Raise it whenever the same records give other quads: whatever was derived by another
/// one is derived anew.
pub const PROJECTION: u32 = 1;

/// The vocabulary as OWL in Turtle, for people and tools: every class and property that the graph uses, what it says,
/// of what, and when it is written. Tests hold [`vocabulary`] and the projection against it.
pub const ONTOLOGY: &str = include_str!("../../../ontology/trellis.ttl");

#[cfg(test)]
mod check_promises_tests;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod ontology_tests;
#[cfg(test)]
mod ontology_traces_tests;
#[cfg(test)]
mod planned_tests;
#[cfg(test)]
mod project_patterns_tests;
#[cfg(test)]
mod project_promises_tests;
#[cfg(test)]
mod projection_number_tests;
#[cfg(test)]
mod random_run;
#[cfg(test)]
mod round_trip_tests;
#[cfg(test)]
mod stock_reader_tests;
#[cfg(test)]
mod trace_records_tests;
