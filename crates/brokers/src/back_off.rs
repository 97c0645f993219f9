//! How long something is left alone that has failed: longer each time, and not by everybody for as long.

use std::time::Duration;
use trellis_domain::Hash;
use trellis_orchestrator::ports::World;

#[derive(Debug, Clone, Copy)]
pub(crate) struct BackOff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl BackOff {
    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, failures: 0 }
    }

    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Waits once more: at least half of the time that it is due.
    pub(crate) async fn wait(&mut self, world: &dyn World) {
        let due = delay(self.first, self.longest, self.failures, world);
        self.failures = self.failures.saturating_add(1);
        world.sleep(due).await;
    }
}

/// Between half of the time that is due after so many failures and all of it.
pub(crate) fn delay(first: Duration, longest: Duration, failures: u32, world: &dyn World) -> Duration {
    let due = first.saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX)).min(longest);
    due / 2 + due.mul_f64(chance(world)) / 2
}

/// Anything from 0 to 1.
fn chance(world: &dyn World) -> f64 {
    let hash = Hash::of(world.fresh_id());
    let [a, b, c, d, ..] = *hash.as_bytes();
    f64::from(u32::from_be_bytes([a, b, c, d])) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_orchestrator::ports::RealWorld;

    #[test]
    fn it_doubles_up_to_a_bound_and_is_never_the_same_for_all() {
        let (first, longest) = (Duration::from_millis(100), Duration::from_secs(2));
        let after = |failures| delay(first, longest, failures, &RealWorld);
        for (failures, due) in [(0, 100), (1, 200), (4, 1_600), (5, 2_000), (31, 2_000), (400, 2_000)] {
            let (least, most) = (Duration::from_millis(due / 2), Duration::from_millis(due));
            let delays: Vec<_> = (0..50).map(|_| after(failures)).collect();
            assert!(delays.iter().all(|delay| (least..=most).contains(delay)), "{failures}: {delays:?}");
            assert!(delays.iter().max() > delays.iter().min());
        }
    }
}
