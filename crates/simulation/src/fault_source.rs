//! What goes wrong, and when: one source of chance for the whole world.

use crate::chance::Chance;
use crate::scenario::Faults;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The faults of a scenario, until it is calm.
#[derive(Debug)]
pub(crate) struct FaultSource {
    chance: Mutex<Chance>,
    faults: Faults,
    calm: AtomicBool,
}

impl FaultSource {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        // Another course than the one that the scenario was made with.
        Self { chance: Mutex::new(Chance::new(!seed)), faults, calm: AtomicBool::new(false) }
    }

    pub(crate) fn chance(&self) -> MutexGuard<'_, Chance> {
        self.chance.lock()
    }

    pub(crate) fn calm_down(&self) {
        self.calm.store(true, Ordering::SeqCst);
    }

    /// Whether something of that rate happens now.
    pub(crate) fn strikes(&self, rate: impl Fn(&Faults) -> u32) -> bool {
        !self.calm.load(Ordering::SeqCst) && self.chance().per_mille(rate(&self.faults))
    }

    /// How long something takes that takes up to so long.
    pub(crate) fn takes(&self, most: impl Fn(&Faults) -> u64) -> Duration {
        let most = most(&self.faults);
        if most == 0 { Duration::ZERO } else { Duration::from_millis(self.chance().between(1, most)) }
    }
}
