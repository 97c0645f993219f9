//! PostgreSQL as the store of several processes.
//!
//! Everything is in one schema of one database. Rules of commits are those of every journal (`orchestrator::ledger`); what
//! they look at is read under a lock on the run, so that commits to one run are one after the other, whichever process
//! they come from, and others do not wait.

mod batch;
mod committer;
mod config;
mod database;
mod encryption;
mod error;
mod graph;
mod heads;
mod journal;
mod knowledge;
mod library;
mod listing;
mod log;
mod migrations;
mod notes;
mod notices;
mod presence;
mod queue;
mod reading;
mod rows;
mod search;
mod sequencer;
mod served;
mod stream;
mod sweeping;
mod time;
mod turns;
mod vectors;

pub use config::PostgresConfig;
pub use database::{Database, DatabaseSettings, without_password};
pub use error::OpenError;
pub use graph::PostgresGraph;
pub use journal::PostgresJournal;
pub use knowledge::PostgresKnowledge;
pub use library::PostgresLibrary;
pub use log::PostgresLog;
pub use notes::PostgresNotes;
pub use presence::application;
pub use queue::PostgresQueue;
pub use rows::PostgresTables;
pub use search::PostgresSearch;
pub use stream::PostgresStream;
pub use time::DatabaseWorld;
