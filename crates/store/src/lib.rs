//! The embedded engine: journal, configuration, library and graph in one folder, owned by one process.
//!
//! The journal keeps the commit contract on fjall; see [`committer`](self) for how commits are grouped.
//! The graph is a view in a database of its own: deletable and rebuildable at any time.

mod audit;
mod cache;
mod chain;
mod committer;
mod config;
mod folder;
mod graph;
mod journal;
mod keys;
mod library;
mod queries;
mod request;
mod rescue;
mod state;
mod store;
mod tables;
mod upgrade;
pub mod view;

pub use config::EmbeddedConfig;
pub use folder::{FORMAT, Holder, OpenError};
pub use graph::EmbeddedGraph;
pub use journal::EmbeddedJournal;
pub use library::EmbeddedLibrary;
pub use queries::{Program, QuerySettings};
pub use store::Store;
