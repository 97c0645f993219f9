//! RDF files as quads, read piece by piece: what is in memory at any moment is bounded, whatever the file says.
//!
//! The grammar is that of `oxrdfio`. What is added here: blank nodes get names that follow from where they were read,
//! errors say the place, and a file cannot make the parser take memory without end.

mod blank;
mod format;
mod guard;
mod nesting;
mod reader;

pub use format::Format;
pub use reader::{Origin, ReadError, Rule, Statements};
