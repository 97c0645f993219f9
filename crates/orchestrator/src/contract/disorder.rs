//! A queue in disorder.

use crate::ports::{BoxFuture, Delivery, OpenTurn, Queue, QueueError, Receipt, Role};
use parking_lot::Mutex;
use std::time::Duration;
use tokio::sync::Notify;

/// A queue that loses, doubles, holds back and shuffles wake-ups.
#[derive(Debug)]
pub struct Disorder {
    state: Mutex<(u64, Vec<OpenTurn>)>,
    changed: Notify,
}

impl Disorder {
    pub fn new(seed: u64) -> Self {
        Self { state: Mutex::new((seed | 1, Vec::new())), changed: Notify::new() }
    }

    /// One of the waiting wake-ups of a role, any of them.
    fn pick(&self, role: Role) -> Option<OpenTurn> {
        let mut state = self.state.lock();
        let mine =
            (0..state.1.len()).filter(|place| Role::of(&state.1[*place]) == role && state.1[*place].due.is_none());
        let mine: Vec<_> = mine.collect();
        if mine.is_empty() {
            return None;
        }
        let place = mine[chance(&mut state.0, mine.len())];
        Some(state.1.swap_remove(place))
    }
}

/// A number below `most`, from a small generator whose quality is good enough for disorder.
fn chance(state: &mut u64, most: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state % (most.max(1) as u64)).unwrap_or(0)
}

impl Queue for Disorder {
    fn publish(&self, turn: OpenTurn) -> BoxFuture<'_, Result<(), QueueError>> {
        {
            let mut state = self.state.lock();
            // Lost now and then: the sweeper finds the turn again. Often doubled.
            let copies = [0, 1, 1, 2, 3][chance(&mut state.0, 5)];
            state.1.extend(std::iter::repeat_n(turn, copies));
        }
        self.changed.notify_waiters();
        Box::pin(std::future::ready(Ok(())))
    }

    fn take(&self, role: Role) -> BoxFuture<'_, Result<Delivery, QueueError>> {
        Box::pin(async move {
            loop {
                let changed = self.changed.notified();
                let hold_back = chance(&mut self.state.lock().0, 3) == 0;
                if hold_back {
                    tokio::task::yield_now().await;
                } else if let Some(turn) = self.pick(role) {
                    return Ok(Delivery { turn, receipt: Receipt(Box::default()), count: 1, renew_every: None });
                }
                tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep(Duration::from_millis(1)) => {}
                }
            }
        })
    }

    fn acknowledge<'a>(&'a self, _: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn renew<'a>(&'a self, _: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn give_back(&self, delivery: Delivery, _: Duration) -> BoxFuture<'_, Result<(), QueueError>> {
        self.publish(delivery.turn)
    }
}
