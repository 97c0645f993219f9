//! The wake-ups that this process has taken from a broker and not settled there yet.
//!
//! Those that wait for a place are handed out in the order of the embedded queue: fair between workspaces and runs.

use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::Timestamp;
use trellis_orchestrator::ports::{Delivery, OpenTurn, Queue as _, Receipt, Role, TurnKey, World};
use trellis_orchestrator::queue::FairQueue;

/// `M` is what a broker knows a message by.
#[derive(Debug)]
pub(crate) struct Held<M> {
    state: Mutex<HeldState<M>>,
    fair: FairQueue,
    world: Arc<dyn World>,
}

#[derive(Debug)]
struct HeldState<M> {
    messages: BTreeMap<u64, HeldMessage<M>>,
    /// Those that wait for a place.
    waiting: HashMap<TurnKey, u64>,
    next: u64,
    /// Messages with smaller numbers came over connections that are gone.
    stale_below: u64,
}

#[derive(Debug)]
struct HeldMessage<M> {
    /// None once the broker was told that it is done.
    message: Option<M>,
    turn: OpenTurn,
    count: u32,
    /// When it came or was last renewed.
    since: Timestamp,
    handed_out: bool,
}

/// What becomes of a message that is to be settled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Settling<M> {
    /// It is not held any more: settle it.
    Now(M),
    /// It was settled before.
    Done,
    /// Its connection is gone.
    Stale,
}

impl<M: Clone> Held<M> {
    pub(crate) fn new(world: Arc<dyn World>) -> Self {
        let state = HeldState { messages: BTreeMap::new(), waiting: HashMap::new(), next: 0, stale_below: 0 };
        Self { state: Mutex::new(state), fair: FairQueue::new(Arc::clone(&world)), world }
    }

    /// A message has come. Gives the one that it takes the place of, because both wake the same turn, or itself if far too many
    /// wait.
    pub(crate) async fn put(&self, turn: OpenTurn, count: u32, message: M) -> Option<M> {
        let replaced = {
            let mut state = self.state.lock();
            if state.waiting.len() >= MOST && !state.waiting.contains_key(&turn.key) {
                return Some(message);
            }
            let number = state.next;
            state.next += 1;
            let replaced = state.waiting.insert(turn.key.clone(), number);
            let replaced = replaced.and_then(|number| state.messages.remove(&number));
            let message = Some(message);
            let held = HeldMessage { message, turn: turn.clone(), count, since: self.world.now(), handed_out: false };
            state.messages.insert(number, held);
            replaced
        };
        // Now or later is up to whoever publishes: what has come is due.
        let published = self.fair.publish(OpenTurn { due: None, ..turn }).await;
        published.expect("a queue in memory always works");
        replaced?.message
    }

    pub(crate) fn waits(&self, turn: &TurnKey) -> bool {
        self.state.lock().waiting.contains_key(turn)
    }

    /// Waits for the next one.
    pub(crate) async fn take(&self, role: Role) -> Delivery {
        loop {
            let next = self.fair.take(role).await.expect("a queue in memory always works");
            let mut state = self.state.lock();
            let Some(number) = state.waiting.remove(&next.turn.key) else { continue };
            let Some(held) = state.messages.get_mut(&number) else { continue };
            held.handed_out = true;
            held.since = self.world.now();
            let receipt = Receipt(number.to_be_bytes().into());
            return Delivery { turn: held.turn.clone(), receipt, count: held.count, renew_every: None };
        }
    }

    pub(crate) fn settle(&self, number: u64) -> Settling<M> {
        let mut state = self.state.lock();
        match state.messages.remove(&number) {
            Some(HeldMessage { message: Some(message), .. }) => Settling::Now(message),
            _ if number < state.stale_below => Settling::Stale,
            _ => Settling::Done,
        }
    }

    /// What is known of a message that is held: its turn, and how often that was handed out.
    pub(crate) fn get(&self, number: u64) -> Option<(OpenTurn, u32)> {
        self.state.lock().messages.get(&number).map(|held| (held.turn.clone(), held.count))
    }

    pub(crate) fn is_stale(&self, number: u64) -> bool {
        number < self.state.lock().stale_below
    }

    /// Its turn is still being handled.
    pub(crate) fn renew(&self, number: u64) -> Option<M> {
        let mut state = self.state.lock();
        let held = state.messages.get_mut(&number)?;
        held.since = self.world.now();
        held.message.clone()
    }

    /// The connection over which all of them came is gone: the broker hands them out again, and receipts mean nothing any more.
    /// What waits for a place keeps waiting; it may be all that there is to do until the broker is back.
    pub(crate) fn lose_connection(&self) {
        let mut state = self.state.lock();
        state.stale_below = state.next;
        state.messages.retain(|_, held| {
            held.message = None;
            !held.handed_out
        });
    }

    /// Those that wait for a place.
    pub(crate) fn waiting(&self) -> Vec<M> {
        let state = self.state.lock();
        state.messages.values().filter(|held| !held.handed_out).filter_map(|held| held.message.clone()).collect()
    }

    /// Those that have been held for longer than this, to be settled: whoever has them goes on, and so do they that wait.
    pub(crate) fn too_old(&self, longest: Duration) -> Vec<M> {
        let mut state = self.state.lock();
        let old = self.old(&state, longest, |_| true);
        let messages = old.iter().filter_map(|number| state.messages.get_mut(number)?.message.take()).collect();
        state.messages.retain(|_, held| !held.handed_out || held.message.is_some());
        messages
    }

    /// Forgets those that were handed out and neither settled nor renewed for so long: nobody has them any more.
    pub(crate) fn forget_unrenewed(&self, longest: Duration) {
        let mut state = self.state.lock();
        for number in self.old(&state, longest, |held| held.handed_out) {
            state.messages.remove(&number);
        }
    }

    fn old(&self, state: &HeldState<M>, longest: Duration, which: impl Fn(&HeldMessage<M>) -> bool) -> Vec<u64> {
        let (now, longest) = (self.world.now(), u64::try_from(longest.as_millis()).unwrap_or(u64::MAX));
        let old = state.messages.iter().filter(|(_, held)| now.ms_since(held.since) > longest && which(held));
        old.map(|(number, _)| *number).collect()
    }
}

/// So many wait for a place at most; a broker is not asked for nearly as many.
const MOST: usize = 50_000;

/// The number of a message, as `Held::take` has written it.
pub(crate) fn number(receipt: &Receipt) -> u64 {
    <[u8; 8]>::try_from(&*receipt.0).map_or(u64::MAX, u64::from_be_bytes)
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
