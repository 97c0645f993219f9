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
    /// Of messages between processes. Apart from the rest: how many there are changes nothing else.
    notices: Mutex<Chance>,
    faults: Faults,
    calm: AtomicBool,
}

impl FaultSource {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        // Another course than the one that the scenario was made with.
        let (chance, notices) = (Chance::new(!seed), Chance::new(seed.rotate_left(32) ^ 1));
        Self { chance: Mutex::new(chance), notices: Mutex::new(notices), faults, calm: AtomicBool::new(false) }
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

    /// What becomes of a message between processes: after how long each copy arrives, and whether it arrives whole or only
    /// as the news that something was lost.
    pub(crate) fn copies_of_notice(&self) -> Vec<(bool, Duration)> {
        let Faults { notice_lost, notice_doubled, notice_delayed_ms, .. } = self.faults;
        let calm = self.calm.load(Ordering::SeqCst);
        let mut chance = self.notices.lock();
        let delay = |chance: &mut Chance| Duration::from_millis(chance.below(notice_delayed_ms + 1));
        if !calm && chance.per_mille(notice_lost) {
            return if chance.one_in(4) { vec![(false, delay(&mut chance))] } else { Vec::new() };
        }
        let copies = if !calm && chance.per_mille(notice_doubled) { 2 } else { 1 };
        (0..copies).map(|_| (true, delay(&mut chance))).collect()
    }
}
