//! Who works on a store, and what they have in hand.

use super::{BoxFuture, JournalError, TurnKey};
use trellis_domain::Timestamp;

/// A process that has the store open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// The command that it was started with, such as `serve` or `worker`.
    pub command: String,
    /// What tells it from others: its number, and the machine that it is on.
    pub id: String,
    pub since: Timestamp,
}

/// A turn that somebody handles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnInHand {
    pub turn: TurnKey,
    /// Somebody else takes it then, unless it is renewed. None where claims do not expire.
    pub until: Option<Timestamp>,
}

/// For people who look after a deployment: nothing is decided by it.
pub trait Presence: Send + Sync + std::fmt::Debug {
    /// The processes that are there now, oldest first.
    fn processes(&self) -> BoxFuture<'_, Result<Vec<Process>, JournalError>>;

    /// The first turns that are claimed, in the order of their keys.
    fn in_hand(&self, limit: usize) -> BoxFuture<'_, Result<Vec<TurnInHand>, JournalError>>;
}
