//! SPARQL over any index of quads, evaluated in processes of their own.
//!
//! A store brings a [`source::Source`]: quads by pattern in sorted order, and terms by their ids. What it has not
//! indexed yet it lays over that as an [`overlay::Overlay`]. The rest is the same for every store: what ids and orders
//! are, how a query is parsed, bounded and evaluated, what a query's process and the process that has the quads say to
//! each other, and who may ask when.

pub mod answer;
mod attendant;
mod constants;
pub mod convert;
mod dataset;
mod ended_runs;
pub mod evaluate;
pub mod find;
pub mod following;
pub mod merge;
mod newer;
pub mod order;
pub mod overlay;
mod places;
mod process;
pub mod query;
mod remote;
mod session;
pub mod size;
pub mod source;
mod survey;
pub mod term_id;
pub mod timeout;
mod wire;
mod worker;
mod workers;

pub use attendant::{Unanswered, attend};
pub use constants::constants;
pub use ended_runs::{EndedPage, EndedRuns};
pub use newer::{Newer, StoredRuns};
pub use overlay::{NoOverlay, Overlay};
pub use places::Asker;
pub use process::Pipes;
pub use query::{Bounds, CancelOnDrop, Cancellation, IndexFault, QueryError};
pub use size::Size;
pub use term_id::TermId;
pub use worker::{Job, work};
pub use workers::{Attended, Program, Queries, QuerySettings};
