//! A simulated world for the real orchestrator: many processes over one journal, a broker in disorder, models and tools that
//! fail, crashes at any await, clocks that jump. It runs on one thread in virtual time, and everything that is left to
//! chance comes from a seed: the same seed gives the same bytes.
//!
//! Each promise is one function over the finished world ([`promises`]). Deliberate mistakes ([`Breakage`]) show that the
//! checks can fail.
//!
//! ```
//! use trellis_simulation::{Scenario, broken, play};
//!
//! let world = play(&Scenario::from_seed(7), None);
//! assert_eq!(broken(&world), []);
//! ```

mod breakage;
mod callers;
mod chance;
mod effects;
mod fault_source;
mod followers;
mod process_journal;
mod process_life;
mod processes;
pub mod promises;
mod queue;
mod recorder;
pub mod report;
pub mod scenario;
mod shrink;
mod simulation;
mod stream;

pub use breakage::Breakage;
pub use promises::{Breach, broken};
pub use scenario::Scenario;
pub use shrink::shrink;
pub use simulation::{FinishedRun, FinishedWorld, play};
