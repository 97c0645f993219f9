//! Everything of which there is only so much, for all callers of a server together.

use crate::bounds;
use crate::checks::Checks;
use crate::guests::Guests;
use crate::knocks::Knocks;
use crate::loads::Loads;
use crate::request_memory::RequestMemory;
use crate::unread::Unread;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

#[derive(Debug)]
pub(crate) struct Capacity {
    pub(crate) memory: RequestMemory,
    pub(crate) unread: Unread,
    pub(crate) guests: Guests,
    pub(crate) knocks: Knocks,
    pub(crate) loads: Loads,
    pub(crate) checks: Checks,
    making: Semaphore,
    outstanding: Arc<Semaphore>,
}

impl Capacity {
    pub(crate) fn new() -> Self {
        Self {
            memory: RequestMemory::new(),
            unread: Unread::new(),
            guests: Guests::default(),
            knocks: Knocks::default(),
            loads: Loads::default(),
            checks: Checks::default(),
            making: Semaphore::new(bounds::MADE_AT_ONCE),
            outstanding: Arc::new(Semaphore::new(bounds::OUTSTANDING_IN_ALL)),
        }
    }

    /// Waits for the turn to make a reply that may be large.
    pub(crate) async fn make(&self) -> SemaphorePermit<'_> {
        self.making.acquire().await.expect("the semaphore is never closed")
    }

    /// The right to have one more unanswered request on a socket, if there are not too many.
    pub(crate) fn outstanding(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.outstanding).try_acquire_owned().ok()
    }
}
