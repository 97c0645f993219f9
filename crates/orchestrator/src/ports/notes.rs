//! Notes of what was promised to somebody outside and is not done yet: held by one process at a time, and taken over by
//! another one when that is gone.

use super::{BoxFuture, JournalError};
use trellis_domain::Scope;

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Nothing else is called so.
    pub name: String,
    /// What kind of promise it is.
    pub kind: &'static str,
    pub scope: Scope,
    pub text: String,
}

/// Where notes are kept.
pub trait Notes: Send + Sync + std::fmt::Debug {
    /// Keeps a new note, which this process holds. It is durable when this returns. False if there is one of this name: then
    /// that one stays as it is.
    fn begin<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<bool, JournalError>>;

    /// Writes a note over. If that is lost with the machine, the one before is there. False if this process does not hold it
    /// any more: then nothing is written.
    fn update<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<bool, JournalError>>;

    /// Adds a line without line breaks to a note, in the same way.
    fn add<'a>(&'a self, note: &'a Note, line: &'a str) -> BoxFuture<'a, Result<bool, JournalError>>;

    /// The lines of a note, in order.
    fn lines<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<Vec<String>, JournalError>>;

    /// Removes a note with its lines. It does not matter whether it is there.
    fn remove<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Lets somebody take a note over.
    fn let_go<'a>(&'a self, note: &'a Note) -> BoxFuture<'a, Result<(), JournalError>>;

    /// The texts of notes that no process holds, or none that is there. From now on this one does.
    fn take_over<'a>(
        &'a self,
        kind: &'static str,
        scope: &'a Scope,
    ) -> BoxFuture<'a, Result<Vec<String>, JournalError>>;

    /// Lets all go that this process holds: it ends.
    fn leave(&self) -> BoxFuture<'_, Result<(), JournalError>>;

    /// Says that this process is still there. Whoever does not say so for a while loses its notes.
    fn hold(&self) -> BoxFuture<'_, Result<(), JournalError>>;
}
