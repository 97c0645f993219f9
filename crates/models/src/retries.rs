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

/// None if asking again makes no sense. A provider may ask for a longer pause than the usual one, not for a shorter.
/// Those who were refused at the same time do not come back at the same time: `chance` is between 0 and 1.
pub(crate) fn pause_before_retry(
    error: &ProviderError,
    failed: usize,
    is_followed: bool,
    chance: f64,
) -> Option<Duration> {
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
    let usual = first.saturating_mul(2_u32.saturating_pow(doublings)).min(longest).mul_f64(1.0 + chance / 2.0);
    (failed < attempts).then(|| retry_after.unwrap_or(usual).max(usual))
}

/// A number from 0 to 1 that follows from an id which nobody else has.
pub(crate) fn chance(id: &str) -> f64 {
    let bytes = id.bytes().fold(0_u32, |all, byte| all.wrapping_mul(31).wrapping_add(u32::from(byte)));
    f64::from(bytes) / f64::from(u32::MAX)
}
