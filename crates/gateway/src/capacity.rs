//! Everything of which there is only so much, for all callers of a server together.

use crate::bounds;
use crate::checks::Checks;
use crate::guests::Guests;
use crate::knocks::Knocks;
use crate::loads::Loads;
use crate::request_memory::RequestMemory;
use crate::unread::Unread;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

#[derive(Debug)]
pub(crate) struct Capacity {
    pub(crate) memory: RequestMemory,
    pub(crate) unread: Unread,
    pub(crate) guests: Guests,
    pub(crate) knocks: Knocks,
    pub(crate) loads: Loads,
    pub(crate) checks: Checks,
    making: Arc<Semaphore>,
    outstanding: Arc<Semaphore>,
}

/// The turn to make a reply. It ends with the last of its copies, or when it is given back.
#[derive(Debug, Clone)]
pub(crate) struct Turn(Arc<Mutex<Option<OwnedSemaphorePermit>>>);

impl Turn {
    /// What is done next takes long, and others are not to wait for it.
    pub(crate) fn give_back(&self) {
        drop(self.0.lock().take());
    }

    pub(crate) fn is_held(&self) -> bool {
        self.0.lock().is_some()
    }
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
            making: Arc::new(Semaphore::new(bounds::MADE_AT_ONCE)),
            outstanding: Arc::new(Semaphore::new(bounds::OUTSTANDING_IN_ALL)),
        }
    }

    /// Waits for the turn to make a reply that may be large.
    pub(crate) async fn make(&self) -> Turn {
        let permit = Arc::clone(&self.making).acquire_owned().await.expect("the semaphore is never closed");
        Turn(Arc::new(Mutex::new(Some(permit))))
    }

    /// The right to have one more unanswered request on a socket, if there are not too many.
    pub(crate) fn outstanding(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.outstanding).try_acquire_owned().ok()
    }
}
