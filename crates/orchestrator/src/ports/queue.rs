//! The queue of wake-ups. Losing one costs a delay, duplicating one costs nothing.

use super::{BoxFuture, OpenTurn};

/// A wake-up that was handed out and waits for its acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub turn: OpenTurn,
    /// Tells this hand-out from an earlier one of the same turn.
    pub tag: u64,
    /// Counts hand-outs of this wake-up, from 1.
    pub count: u32,
}

pub trait Queue: Send + Sync + std::fmt::Debug {
    /// Confirmed when it returns. A turn that waits already is not queued twice.
    fn publish(&self, turn: OpenTurn) -> BoxFuture<'_, ()>;

    /// Waits for the next due wake-up; competing takers each get different ones.
    fn take(&self) -> BoxFuture<'_, Delivery>;

    fn acknowledge<'a>(&'a self, delivery: &'a Delivery) -> BoxFuture<'a, ()>;

    /// Gives a wake-up back: it will be handed out again, counted.
    fn reject(&self, delivery: Delivery) -> BoxFuture<'_, ()>;
}
