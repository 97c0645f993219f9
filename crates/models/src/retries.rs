//! When a provider that failed is asked again.

use crate::provider::ProviderError;
use std::time::Duration;

pub(crate) const FIRST_BUSY_PAUSE: Duration = Duration::from_secs(1);
pub(crate) const LONGEST_BUSY_PAUSE: Duration = Duration::from_mins(1);
/// The same for a provider that is busy, if nobody else can be asked: it is waited for over some minutes.
pub(crate) const BUSY_ATTEMPTS: usize = 8;
/// The pause before the first repetition; each further one is twice as long.
pub(crate) const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// A provider that asks for a longer pause is not asked again if another one is there, or the call has no limit.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a request is sent at most.
pub(crate) const ATTEMPTS: usize = 3;

/// How long a provider is left alone before it is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    /// Never sooner: as usual, or as the provider asks for if that is longer.
    pub(crate) least: Duration,
    /// Up to so much later.
    spread: Duration,
}

impl Pause {
    /// Those who were refused at the same time do not come back at the same time: `chance` is between 0 and 1.
    pub(crate) fn drawn(self, chance: f64) -> Duration {
        self.least.saturating_add(self.spread.mul_f64(chance))
    }
}

/// None if asking again makes no sense.
pub(crate) fn pause_before_retry(error: &ProviderError, failed: usize, is_followed: bool) -> Option<Pause> {
    let (retry_after, first, longest, attempts) = match error {
        ProviderError::Busy { retry_after, .. } if !is_followed => {
            (retry_after, FIRST_BUSY_PAUSE, LONGEST_BUSY_PAUSE, BUSY_ATTEMPTS)
        }
        ProviderError::Busy { retry_after, .. } | ProviderError::Transient { retry_after, .. } => {
            (retry_after, FIRST_PAUSE, LONGEST_PAUSE, ATTEMPTS)
        }
        ProviderError::Permanent { .. } | ProviderError::TooLong { .. } | ProviderError::ToolsRefused { .. } => {
            return None;
        }
    };
    let doublings = u32::try_from(failed - 1).unwrap_or(u32::MAX);
    let usual = first.saturating_mul(2_u32.saturating_pow(doublings)).min(longest);
    let least = retry_after.unwrap_or_default().max(usual);
    (failed < attempts).then(|| Pause { least, spread: usual / 2 })
}

/// A number from 0 to 1 that follows from an id which nobody else has.
pub(crate) fn chance(id: &str) -> f64 {
    let bytes = id.bytes().fold(0_u32, |all, byte| all.wrapping_mul(31).wrapping_add(u32::from(byte)));
    f64::from(bytes) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_asks_for_is_the_least_and_nobody_comes_back_with_all_others() {
        let wish = |seconds: Option<u64>| seconds.map(Duration::from_secs);
        let busy = |seconds| ProviderError::Busy { reason: String::new(), retry_after: wish(seconds) };
        let broken = |seconds| ProviderError::Transient { reason: String::new(), retry_after: wish(seconds) };
        for (error, failed, least, most) in [
            (broken(None), 1, 500, 750),
            (broken(None), 2, 1_000, 1_500),
            (broken(Some(20)), 1, 20_000, 20_250),
            (busy(None), 3, 4_000, 6_000),
            (busy(None), 7, 60_000, 90_000),
            (busy(Some(100)), 1, 100_000, 100_500),
            (busy(Some(0)), 1, 1_000, 1_500),
        ] {
            let pause = pause_before_retry(&error, failed, false).unwrap();
            let drawn = [0.0, 1.0].map(|chance| pause.drawn(chance).as_millis());
            assert_eq!(drawn, [least, most], "{error:?}, failed {failed} times");
        }
        assert_eq!(pause_before_retry(&busy(None), BUSY_ATTEMPTS, false), None);
        assert_eq!(pause_before_retry(&broken(None), ATTEMPTS, false), None);
    }

    #[test]
    fn chances_differ_and_keep_within_bounds() {
        let ids = ["", "id", "0d1ff5d6-a18b-4fc1-8da0-1f0d2cb6a2f4", "0d1ff5d6-a18b-4fc1-8da0-1f0d2cb6a2f5"];
        let drawn = ids.map(chance);
        assert!(drawn.iter().all(|chance| (0.0..=1.0).contains(chance)), "{drawn:?}");
        assert!(drawn[2] < drawn[3], "{drawn:?}");
    }
}
