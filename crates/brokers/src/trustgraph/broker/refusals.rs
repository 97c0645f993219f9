//! Topics that the broker takes no messages for: whoever has a message for one is not kept waiting again and again.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;
use trellis_domain::Timestamp;

/// So often a topic is refused before that counts.
const MOST: u32 = 3;
/// After so long it is tried again.
pub(super) const PAUSE: Duration = Duration::from_secs(30);

/// How often each topic was refused in succession, and when it was for the last time.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<BTreeMap<String, (u32, Timestamp)>>);

impl Refusals {
    /// Notes a refusal. Whether that was once too often.
    pub(super) fn note(&self, topic: &str, now: Timestamp) -> bool {
        let mut refusals = self.0.lock();
        refusals.retain(|_, (_, last)| u128::from(now.ms_since(*last)) < (2 * PAUSE).as_millis());
        let (count, last) = refusals.entry(topic.to_owned()).or_insert((0, now));
        (*count, *last) = (count.saturating_add(1), now);
        *count >= MOST
    }

    pub(super) fn forget(&self, topic: &str) {
        self.0.lock().remove(topic);
    }

    pub(super) fn is_given_up(&self, topic: &str, now: Timestamp) -> bool {
        let refusals = self.0.lock();
        refusals
            .get(topic)
            .is_some_and(|(count, last)| *count >= MOST && u128::from(now.ms_since(*last)) < PAUSE.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_given_up_for_a_while_and_then_tried_again() {
        let (refusals, start) = (Refusals::default(), Timestamp::from_micros(1_000_000));
        assert!(!refusals.note("a", start) && !refusals.note("a", start));
        assert!(!refusals.is_given_up("a", start));
        assert!(refusals.note("a", start));
        assert!(refusals.is_given_up("a", start.plus_ms(29_999)) && !refusals.is_given_up("b", start));
        let later = start.plus_ms(30_000);
        assert!(!refusals.is_given_up("a", later));
        assert!(refusals.note("a", later), "once is enough now");
        assert!(refusals.is_given_up("a", later));
        refusals.forget("a");
        assert!(!refusals.is_given_up("a", later));
    }
}
