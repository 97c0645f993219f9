//! The embedded engine: journal, configuration, library and graph in one folder, owned by one process.
//!
//! The journal keeps the commit contract on fjall; see [`committer`](self) for how commits are grouped.
//! The graph is a view in a database of its own: deletable and rebuildable at any time. Loaded knowledge is in a third
//! one and rows of tables in a fourth, which nothing else can bring back.

mod cache;
mod check;
mod committer;
mod config;
mod engine_fault;
mod engine_files;
mod engine_log;
mod erase;
mod erasures;
mod evidence;
mod folder;
mod graph;
mod head;
mod journal;
mod key;
mod keys;
mod knowledge;
mod library;
mod listing;
mod log;
mod reading;
mod recovery;
mod request;
mod rows;
mod served;
mod service;
mod shadow;
mod state;
mod store;
mod tables;
mod tally;
mod tree_files;
mod upgrade;
pub mod view;

pub use check::Checked;
pub use config::EmbeddedConfig;
pub use erase::{Erased, ErasureRequest};
pub use evidence::EmbeddedLog;
pub use folder::{FORMAT, Holder, OpenError};
pub use graph::{CheckedView, EmbeddedGraph};
pub use journal::EmbeddedJournal;
pub use knowledge::{CheckedKnowledge, EmbeddedKnowledge};
pub use library::EmbeddedLibrary;
pub use recovery::AsideTurn;
pub use rows::{CheckedTables, EmbeddedTables};
pub use store::Store;
pub use trellis_queries::{Program, QuerySettings};
