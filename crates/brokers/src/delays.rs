//! What is not due yet: brokers know no delays, so this process waits.
//!
//! Losing it costs a delay: the journal knows when a turn is due, and whoever sweeps finds it.

use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use trellis_domain::Timestamp;
use trellis_orchestrator::ports::{OpenTurn, Role, TurnKey, World};

/// Turns that were published and are due later. More, and later ones, are left to the sweep.
const MOST: usize = 10_000;
const LATEST: Duration = Duration::from_hours(1);

/// Something that will be due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delayed {
    Publish(OpenTurn),
    /// A message that was given back, by its number: it waits at the broker unsettled until then.
    GiveBack(Role, u64),
}

#[derive(Debug)]
pub(crate) struct Delays {
    state: Mutex<DelaysState>,
    changed: Notify,
    world: Arc<dyn World>,
}

#[derive(Debug, Default)]
struct DelaysState {
    heap: BinaryHeap<Reverse<(Timestamp, u64)>>,
    entries: HashMap<u64, Delayed>,
    /// When the turns that wait to be published are due.
    turns: HashMap<TurnKey, Timestamp>,
    arrivals: u64,
}

impl DelaysState {
    fn push(&mut self, due: Timestamp, delayed: Delayed) {
        self.arrivals += 1;
        self.heap.push(Reverse((due, self.arrivals)));
        self.entries.insert(self.arrivals, delayed);
    }

    fn pop(&mut self, now: Timestamp) -> Result<Delayed, Option<Timestamp>> {
        match self.heap.peek() {
            Some(Reverse((due, _))) if *due > now => return Err(Some(*due)),
            Some(_) => {}
            None => return Err(None),
        }
        let Some(Reverse((_, arrival))) = self.heap.pop() else { return Err(None) };
        let delayed = self.entries.remove(&arrival).expect("what is in the heap has its entry");
        if let Delayed::Publish(turn) = &delayed {
            self.turns.remove(&turn.key);
        }
        Ok(delayed)
    }
}

impl Delays {
    pub(crate) fn new(world: Arc<dyn World>) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), world }
    }

    /// Keeps a turn that is not due yet. One that is due is given back.
    pub(crate) fn keep(&self, turn: OpenTurn) -> Option<OpenTurn> {
        let now = self.world.now();
        let Some(due) = turn.due.filter(|due| *due > now) else { return Some(turn) };
        let mut state = self.state.lock();
        let waits = state.turns.get(&turn.key).is_some_and(|kept| *kept == due);
        let late = due.ms_since(now) > u64::try_from(LATEST.as_millis()).unwrap_or(u64::MAX);
        if !waits && !late && state.turns.len() < MOST {
            state.turns.insert(turn.key.clone(), due);
            state.push(due, Delayed::Publish(turn));
            drop(state);
            self.changed.notify_one();
        }
        None
    }

    pub(crate) fn give_back_after(&self, role: Role, message: u64, delay: Duration) {
        let delay = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self.state.lock().push(self.world.now().plus_ms(delay), Delayed::GiveBack(role, message));
        self.changed.notify_one();
    }

    /// Waits for the next that is due.
    pub(crate) async fn next(&self) -> Delayed {
        loop {
            let changed = self.changed.notified();
            let popped = self.state.lock().pop(self.world.now());
            match popped {
                Ok(delayed) => return delayed,
                Err(None) => changed.await,
                Err(Some(due)) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = self.world.sleep(Duration::from_millis(due.ms_since(self.world.now()) + 1)) => {}
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::record::Name;
    use trellis_domain::{Scope, SessionId};
    use trellis_orchestrator::memory::VirtualWorld;

    fn turn(n: u32, due: Option<Timestamp>) -> OpenTurn {
        let id = SessionId::new("s").unwrap();
        let key = TurnKey { scope: Scope::default(), run: id.clone(), session: id, name: Name::new(format!("i{n}")) };
        OpenTurn::new(key, due, false)
    }

    #[tokio::test(start_paused = true)]
    async fn each_comes_when_it_is_due_and_only_once() {
        let world = Arc::new(VirtualWorld::new());
        let delays = Delays::new(Arc::clone(&world) as Arc<dyn World>);
        let in_ms = |ms| Some(world.now().plus_ms(ms));
        assert!(delays.keep(turn(1, None)).is_some());
        assert!(delays.keep(turn(1, Some(world.now()))).is_some());
        let (late, early) = (turn(1, in_ms(2_000)), turn(2, in_ms(1_000)));
        assert_eq!(delays.keep(late.clone()), None);
        assert_eq!(delays.keep(late.clone()), None);
        assert_eq!(delays.keep(early.clone()), None);
        delays.give_back_after(Role::Agent, 7, Duration::from_millis(1_500));
        for (expected, ms) in [
            (Delayed::Publish(early), 1_000),
            (Delayed::GiveBack(Role::Agent, 7), 1_500),
            (Delayed::Publish(late), 2_000),
        ] {
            assert_eq!(delays.next().await, expected);
            assert!(
                (ms..ms + 10).contains(&u64::try_from(world.passed().as_millis()).unwrap()),
                "{:?}",
                world.passed()
            );
        }
        assert!(tokio::time::timeout(Duration::from_hours(9), delays.next()).await.is_err(), "nothing comes twice");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_far_away_or_too_many_is_left_to_the_sweep() {
        let world = Arc::new(VirtualWorld::new());
        let delays = Delays::new(Arc::clone(&world) as Arc<dyn World>);
        assert_eq!(delays.keep(turn(0, Some(world.now().plus_ms(3_600_001)))), None);
        assert_eq!(delays.state.lock().entries.len(), 0);
        for n in 0..u32::try_from(MOST).unwrap() + 10 {
            assert_eq!(delays.keep(turn(n, Some(world.now().plus_ms(5)))), None);
        }
        assert_eq!(delays.state.lock().entries.len(), MOST);
    }
}
