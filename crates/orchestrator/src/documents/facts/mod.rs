//! What documents say, as quads: a model is asked for the facts of each passage, and these lie in a graph that has the
//! name of the passage. So whatever is known from a document leads back to where it stands, and leaves with it.

mod budget;
mod extract;
mod names;
mod notes;
mod reply;
mod turns;

pub use budget::{FactsBudget, FactsBudgets, FactsSpending};
pub(super) use extract::Material;
pub use extract::{ExtractedFacts, Extraction, FactsProgress};
pub(super) use names::document_of;
pub(crate) use names::{document_of_passage, is_notes};
pub(crate) use notes::{NotedPassage, noted};
pub(super) use notes::{is_complete, remove};
pub(super) use turns::Room;

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "interrupted_tests.rs"]
mod interrupted_tests;

#[cfg(test)]
#[path = "turns_tests.rs"]
mod turns_tests;
