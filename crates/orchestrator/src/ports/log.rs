//! The append-only log that proves the records.

use super::{BoxFuture, JournalError};
use crate::checkpoint::NotACheckpoint;
use crate::evidence::Evidence;
use serde::{Deserialize, Serialize};
use trellis_domain::{Hash, RunId, Workspace};

/// An entry of the log, for whoever wants to check it without us.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    pub number: u64,
    /// What is hashed, in base64. Its first line says what it is.
    pub input: String,
    /// The texts of a record, each with its salt, as one line of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<String>,
    /// The leaf's hash, if an erasure has replaced what it covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<Hash>,
}

/// Whether a log still has all that a checkpoint covers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// How many entries the checkpoint covers, and how many there are now.
    pub covered: u64,
    pub size: u64,
    pub root: Option<Hash>,
    /// What is wrong; nothing if the log has it all, unchanged.
    pub faults: Vec<String>,
}

/// Why a log could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("this is no checkpoint: {0}")]
    Checkpoint(#[from] NotACheckpoint),
    #[error("the records of this run have more than {0} bytes")]
    TooLarge(usize),
    #[error(transparent)]
    Store(#[from] JournalError),
}

/// All records of a store are leaves of one append-only Merkle tree. A checkpoint that is kept elsewhere proves later that
/// nothing it covers was changed or removed.
pub trait Log: Send + Sync + std::fmt::Debug {
    /// The key that checkpoints are signed with, in the form of notes.
    fn public_key(&self) -> String;

    /// Size and root now, signed with the store's key.
    fn checkpoint(&self) -> BoxFuture<'_, Result<String, JournalError>>;

    /// Everything that others need to check a run, if its records and configurations have no more bytes than `most`. None
    /// if there is no such run.
    fn evidence<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
        most: usize,
    ) -> BoxFuture<'a, Result<Option<Evidence>, LogError>>;

    /// How many erasures there have been. What is known of a run may be another after each.
    fn erasures(&self) -> BoxFuture<'_, Result<u64, JournalError>> {
        Box::pin(std::future::ready(Ok(0)))
    }

    /// Entries from this number on.
    fn entries(&self, from: u64, limit: usize) -> BoxFuture<'_, Result<Vec<LogEntry>, JournalError>>;

    /// Reads all that a checkpoint covers and holds it against it.
    fn against<'a>(&'a self, checkpoint: &'a str) -> BoxFuture<'a, Result<Verdict, LogError>>;
}
