//! The queue of wake-ups. Losing one costs a delay, duplicating one costs nothing.

use super::{BoxFuture, OpenTurn};
use trellis_domain::record::{Core, Name};

/// A wake-up that was handed out and waits for its acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub turn: OpenTurn,
    /// Tells this hand-out from an earlier one of the same turn.
    pub tag: u64,
    /// Counts hand-outs of this wake-up, from 1.
    pub count: u32,
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

pub trait Queue: Send + Sync + std::fmt::Debug {
    /// Confirmed when it returns. A turn that waits already is not queued twice.
    fn publish(&self, turn: OpenTurn) -> BoxFuture<'_, ()>;

    /// Waits for the next due wake-up of a role; competing takers each get different ones.
    fn take(&self, role: Role) -> BoxFuture<'_, Delivery>;

    fn acknowledge<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, ()>;

    /// Gives a wake-up back: it will be handed out again, counted.
    fn reject(&self, delivery: Delivery) -> BoxFuture<'_, ()>;
}
