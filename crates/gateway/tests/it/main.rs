//! The gateway as clients meet it: real sockets, a scripted model, everything else in memory.
#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod api;
mod bad_input;
mod collections;
mod decisions;
mod diagnosis;
mod dialogs;
mod documents;
mod doors;
mod figures;
mod floods;
mod graph;
mod graph_rag;
mod house;
mod knowledge;
mod mcp;
mod models;
mod services;
mod tables;
mod workspaces;
