//! What a provider takes per minute, respected ahead: calls wait for their turn instead of being refused.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

const MINUTE: Duration = Duration::from_mins(1);

/// How much a provider takes. Calls wait until it is their turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimit {
    pub requests_per_minute: Option<u32>,
    pub tokens_per_minute: Option<u64>,
}

/// The calls of the last minute, and those that have their turn in a while. All models of a provider share it.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    limit: RateLimit,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    /// In the order of their times.
    taken: VecDeque<Turn>,
    next: u64,
}

#[derive(Debug, Clone, Copy)]
struct Turn {
    number: u64,
    at: Instant,
    tokens: u64,
}

impl Pace {
    pub(crate) fn new(limit: RateLimit) -> Self {
        Self { limit, calls: Mutex::default() }
    }

    /// Waits until a call of about so many tokens may be made. Gives its number.
    pub(crate) async fn enter(&self, tokens: u64) -> u64 {
        let Some(turn) = self.take(tokens) else { return 0 };
        let mut waiting = Waiting { pace: self, number: Some(turn.number) };
        sleep_until(turn.at).await;
        waiting.number = None;
        turn.number
    }

    /// A call that is made at once, because it belongs to one that had its turn.
    pub(crate) fn count(&self, tokens: u64) {
        self.take(tokens);
    }

    /// How many tokens it took in the end.
    pub(crate) fn settle(&self, number: u64, tokens: u64) {
        let mut calls = self.calls.lock();
        if let Some(turn) = calls.taken.iter_mut().find(|turn| turn.number == number) {
            turn.tokens = tokens;
        }
    }

    /// The next free turn; none if there are no limits.
    fn take(&self, tokens: u64) -> Option<Turn> {
        if self.limit == RateLimit::default() {
            return None;
        }
        let mut calls = self.calls.lock();
        let now = Instant::now();
        calls.taken.retain(|turn| turn.at + MINUTE > now);
        let mut at = calls.taken.back().map_or(now, |last| last.at.max(now));
        while let Some(oldest) = self.in_the_way(&calls.taken, at, tokens) {
            at = oldest.at + MINUTE;
        }
        calls.next += 1;
        let turn = Turn { number: calls.next, at, tokens };
        calls.taken.push_back(turn);
        Some(turn)
    }

    /// The oldest call of the minute before, if there is no room for one more. A call that is larger than the limit has a
    /// minute for itself.
    fn in_the_way(&self, taken: &VecDeque<Turn>, at: Instant, tokens: u64) -> Option<Turn> {
        let before = || taken.iter().filter(|turn| turn.at + MINUTE > at);
        let requests = before().count() as u64;
        let spent = before().fold(0, |sum: u64, turn| sum.saturating_add(turn.tokens));
        let too_many = self.limit.requests_per_minute.is_some_and(|most| requests >= u64::from(most));
        let too_much = self.limit.tokens_per_minute.is_some_and(|most| spent.saturating_add(tokens) > most);
        before().next().copied().filter(|_| too_many || too_much)
    }
}

/// A call that waits for its turn. One that is given up makes room: nobody can keep others waiting with calls that are
/// never made.
struct Waiting<'p> {
    pace: &'p Pace,
    number: Option<u64>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.pace.calls.lock().taken.retain(|turn| turn.number != number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn times(pace: &Pace, calls: &[u64]) -> Vec<u64> {
        let began = Instant::now();
        let mut times = Vec::new();
        for tokens in calls {
            pace.enter(*tokens).await;
            times.push(began.elapsed().as_secs());
        }
        times
    }

    #[tokio::test(start_paused = true)]
    async fn no_minute_sees_more_calls_than_it_may() {
        let pace = Pace::new(RateLimit { requests_per_minute: Some(2), tokens_per_minute: None });
        assert_eq!(times(&pace, &[1, 1, 1, 1, 1]).await, [0, 0, 60, 60, 120]);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_count_as_they_were_in_the_end() {
        let pace = Pace::new(RateLimit { requests_per_minute: None, tokens_per_minute: Some(100) });
        assert_eq!(times(&pace, &[60, 60, 500, 1]).await, [0, 60, 120, 180]);
        let pace = Pace::new(RateLimit { requests_per_minute: None, tokens_per_minute: Some(100) });
        let first = pace.enter(60).await;
        pace.settle(first, 10);
        assert_eq!(times(&pace, &[60]).await, [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn without_limits_nobody_waits() {
        assert_eq!(times(&Pace::default(), &[1_000_000, 1_000_000]).await, [0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_are_given_up_keep_nobody_waiting() {
        let pace = Pace::new(RateLimit { requests_per_minute: Some(1), tokens_per_minute: None });
        pace.enter(1).await;
        for _ in 0..100 {
            assert!(tokio::time::timeout(Duration::from_millis(1), pace.enter(1)).await.is_err());
        }
        let began = Instant::now();
        pace.enter(1).await;
        assert!(began.elapsed() <= MINUTE, "{:?}", began.elapsed());
    }
}
