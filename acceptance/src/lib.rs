//! Acceptance: the real program, asked by clients that nobody here wrote.
//!
//! The tests of this crate start the `trellis` binary with an empty data folder and a scripted model server, and run
//! the stock TrustGraph commands, the Python SDK, the `openai` package and a fuzzer of API descriptions against it.
//! `cargo xtask test` installs those clients and runs everything; plain `cargo test` leaves out what needs them.
#![allow(clippy::return_self_not_must_use, reason = "a check is made for its own sake")]

mod clients;
mod model;
mod server;
mod stage;

pub use clients::Output;
pub use model::{MODEL, ScriptedModel};
pub use stage::{Stage, run_python};
