//! In-memory twins of the ports: the same contracts, nothing on disk.

mod config;
mod graph;
mod journal;
mod knowledge;
mod library;
mod log;
pub mod scripted;
mod search;
mod stream;
mod tables;
mod world;

pub use config::{MemoryConfig, check_items};
pub use graph::MemoryGraph;
pub use journal::MemoryJournal;
pub use knowledge::MemoryKnowledge;
pub use library::MemoryLibrary;
pub use log::EmptyLog;
pub use search::MemorySearch;
pub use stream::MemoryStream;
pub use tables::MemoryTables;
pub use world::VirtualWorld;
