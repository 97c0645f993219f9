//! Acceptance: the real program, asked by clients that nobody here wrote.
//!
//! The tests of this crate start the `trellis` binary with an empty data folder and a scripted model server, and run
//! the stock TrustGraph commands, the Python SDK, the `openai` packages and a fuzzer of API descriptions against it. The
//! program itself is made to ask model servers that refuse what their vendors refuse (`vendor`).
//! `cargo xtask test` installs those clients and runs everything; plain `cargo test` leaves out what needs them.
#![allow(clippy::return_self_not_must_use, reason = "a check is made for its own sake")]

mod api;
mod asking;
mod clients;
mod mcp;
mod model;
mod program;
mod real;
mod recording;
pub mod referees;
mod server;
mod stage;
mod trustgraph;
pub mod vendor;

pub use api::ApiServer;
pub use asking::Asking;
pub use clients::Output;
pub use mcp::McpServer;
pub use model::{MODEL, ScriptedModel};
pub use program::Folder;
pub use real::RealModel;
pub use stage::{Stage, run_python};
pub use trustgraph::{Broker, Deployment};
