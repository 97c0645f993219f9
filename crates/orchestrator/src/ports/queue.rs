//! The queue of wake-ups. Losing one costs a delay, duplicating one costs nothing.

use super::{BoxFuture, Disposition, OpenTurn};
use std::time::Duration;
use trellis_domain::record::{Core, Name};

/// What a queue knows a delivery by. Nobody else reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt(pub Box<[u8]>);

/// A wake-up that was handed out. It is acknowledged or given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub turn: OpenTurn,
    pub receipt: Receipt,
    /// Counts hand-outs of this wake-up, from 1, as far as the queue knows. Nothing is decided by it.
    pub count: u32,
    /// It is handed out again unless it is renewed so often. None if it is not.
    pub renew_every: Option<Duration>,
}

/// A queue that cannot do its work now. A wake-up that is lost with it costs a delay.
#[derive(Debug, Clone, thiserror::Error)]
pub enum QueueError {
    #[error("the queue cannot be reached: {0}")]
    Unavailable(String),
    /// A receipt of a connection that is gone.
    #[error("this wake-up came over a connection that is gone; it comes again")]
    Stale,
    #[error("the queue is closed")]
    Closed,
}

impl QueueError {
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Unavailable(_) | Self::Stale => Disposition::Retry,
            Self::Closed => Disposition::Stop,
        }
    }
}

/// Who takes a turn. Any process can have either role, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    Agent,
    /// Takes the turns of fan-ins. Its wake-ups are the completions on the explainability topic.
    Aggregator,
}

impl Role {
    /// Whose wake-up it is.
    pub fn of(turn: &OpenTurn) -> Self {
        Self::of_turn(&turn.key.name)
    }

    /// Whose turn it is.
    pub fn of_turn(name: &Name) -> Self {
        if name.core().is_some_and(Core::is_fan_in) { Self::Aggregator } else { Self::Agent }
    }
}

/// Competing consumers of wake-ups. There is no promise that a wake-up comes once only.
pub trait Queue: Send + Sync + std::fmt::Debug {
    /// Confirmed when it returns.
    fn publish(&self, turn: OpenTurn) -> BoxFuture<'_, Result<(), QueueError>>;

    /// Waits for the next due wake-up of a role; competing takers each get different ones.
    fn take(&self, role: Role) -> BoxFuture<'_, Result<Delivery, QueueError>>;

    fn acknowledge<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>>;

    /// The turn is still being handled.
    fn renew<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>>;

    /// It will be handed out again, counted, not before that time has passed.
    fn give_back(&self, delivery: Delivery, delay: Duration) -> BoxFuture<'_, Result<(), QueueError>>;
}
