//! The loop: decide, perform, commit. Ports to the outside world, each with an in-memory twin.
//!
//! This crate owns when things happen and that nothing unrecorded is acted on. It does not know how
//! anything is stored, which model answers or what a tool does: adapters do, behind [`ports`].

pub mod accept;
pub mod audit;
mod cancel;
#[cfg(feature = "testing")]
pub mod contract;
mod decide;
pub mod dialog;
pub mod driver;
pub mod events;
mod fan_in;
mod handling;
pub mod hub;
pub mod ledger;
pub mod library;
pub mod memory;
mod perform;
pub mod ports;
pub mod queue;
pub mod summary;
pub mod workers;

pub use accept::{AcceptError, Acceptance, Question};
pub use cancel::Cancelling;
pub use driver::{Options, Orchestrator, Ports};
pub use hub::{Hub, Item, Subscription};
pub use workers::Workers;
