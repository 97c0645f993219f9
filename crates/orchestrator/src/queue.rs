//! The queue in memory: fair between workspaces and runs, continuations before new roots.
//!
//! It serves both as the twin of every broker and as the embedded queue: the journal is the durable set
//! of open turns, so the order may live here and be rebuilt at start.

use crate::ports::{BoxFuture, Delivery, OpenTurn, Queue, QueueError, Receipt, Role, TurnKey, World};
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use trellis_domain::{RunId, Timestamp, Workspace};

#[derive(Debug)]
pub struct FairQueue {
    agents: Lane,
    aggregators: Lane,
}

/// The wake-ups of one role.
#[derive(Debug)]
struct Lane {
    state: Mutex<QueueState>,
    changed: Notify,
    world: Arc<dyn World>,
}

#[derive(Debug, Default)]
struct QueueState {
    /// Workspaces with something to do, next one first.
    order: VecDeque<Workspace>,
    workspaces: HashMap<Workspace, WorkspaceQueue>,
    delayed: BinaryHeap<Reverse<Delayed>>,
    /// Everything that waits, here or in the heap.
    waiting: HashSet<TurnKey>,
    arrivals: u64,
}

#[derive(Debug, Default)]
struct WorkspaceQueue {
    /// Runs with continuations, next one first.
    order: VecDeque<RunId>,
    continuations: HashMap<RunId, VecDeque<Entry>>,
    roots: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    turn: OpenTurn,
    count: u32,
}

/// Ordered by due time, then by arrival.
#[derive(Debug)]
struct Delayed {
    due: Timestamp,
    arrival: u64,
    entry: Entry,
}

impl PartialEq for Delayed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Delayed {}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Delayed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.arrival).cmp(&(other.due, other.arrival))
    }
}

impl WorkspaceQueue {
    fn push(&mut self, entry: Entry) {
        if entry.turn.root {
            self.roots.push_back(entry);
            return;
        }
        let run = entry.turn.key.run.clone();
        let entries = self.continuations.entry(run.clone()).or_default();
        if entries.is_empty() {
            self.order.push_back(run);
        }
        entries.push_back(entry);
    }

    fn pop(&mut self) -> Option<Entry> {
        let Some(run) = self.order.pop_front() else { return self.roots.pop_front() };
        let entries = self.continuations.get_mut(&run)?;
        let entry = entries.pop_front();
        if entries.is_empty() {
            self.continuations.remove(&run);
        } else {
            self.order.push_back(run);
        }
        entry
    }

    fn is_empty(&self) -> bool {
        self.order.is_empty() && self.roots.is_empty()
    }
}

impl QueueState {
    fn push(&mut self, entry: Entry, now: Timestamp) {
        match entry.turn.due {
            Some(due) if due > now => {
                self.arrivals += 1;
                self.delayed.push(Reverse(Delayed { due, arrival: self.arrivals, entry }));
            }
            Some(_) | None => self.push_ready(entry),
        }
    }

    fn push_ready(&mut self, entry: Entry) {
        let workspace = entry.turn.key.scope.workspace.clone();
        let queue = self.workspaces.entry(workspace.clone()).or_default();
        if queue.is_empty() {
            self.order.push_back(workspace);
        }
        queue.push(entry);
    }

    fn pop(&mut self, now: Timestamp) -> Option<Delivery> {
        while self.delayed.peek().is_some_and(|Reverse(first)| first.due <= now) {
            if let Some(Reverse(delayed)) = self.delayed.pop() {
                self.push_ready(delayed.entry);
            }
        }
        let workspace = self.order.pop_front()?;
        let queue = self.workspaces.get_mut(&workspace)?;
        let entry = queue.pop()?;
        if queue.is_empty() {
            self.workspaces.remove(&workspace);
        } else {
            self.order.push_back(workspace);
        }
        self.waiting.remove(&entry.turn.key);
        let receipt = Receipt(Box::default());
        Some(Delivery { turn: entry.turn, receipt, count: entry.count, renew_every: None })
    }
}

impl FairQueue {
    pub fn new(world: Arc<dyn World>) -> Self {
        Self { agents: Lane::new(Arc::clone(&world)), aggregators: Lane::new(world) }
    }

    fn lane(&self, role: Role) -> &Lane {
        match role {
            Role::Agent => &self.agents,
            Role::Aggregator => &self.aggregators,
        }
    }
}

impl Lane {
    fn new(world: Arc<dyn World>) -> Self {
        Self { state: Mutex::default(), changed: Notify::new(), world }
    }

    fn put(&self, turn: OpenTurn, count: u32) {
        let mut state = self.state.lock();
        if state.waiting.insert(turn.key.clone()) {
            state.push(Entry { turn, count }, self.world.now());
            drop(state);
            self.changed.notify_one();
        }
    }

    async fn next(&self) -> Delivery {
        loop {
            // Created before looking, so that a change between looking and waiting is not missed.
            let changed = self.changed.notified();
            let (ready, first_due) = {
                let mut state = self.state.lock();
                let ready = state.pop(self.world.now());
                (ready, state.delayed.peek().map(|Reverse(first)| first.due))
            };
            if let Some(delivery) = ready {
                // More may be ready: wake one more taker.
                self.changed.notify_one();
                return delivery;
            }
            match first_due {
                None => changed.await,
                Some(due) => {
                    let wait = Duration::from_millis(due.ms_since(self.world.now()) + 1);
                    tokio::select! {
                        biased;
                        () = changed => {}
                        () = self.world.sleep(wait) => {}
                    }
                }
            }
        }
    }
}

fn done<'a>() -> BoxFuture<'a, Result<(), QueueError>> {
    Box::pin(std::future::ready(Ok(())))
}

impl Queue for FairQueue {
    /// A turn that waits already is not queued twice.
    fn publish(&self, turn: OpenTurn) -> BoxFuture<'_, Result<(), QueueError>> {
        self.lane(Role::of(&turn)).put(turn, 1);
        done()
    }

    fn take(&self, role: Role) -> BoxFuture<'_, Result<Delivery, QueueError>> {
        Box::pin(async move { Ok(self.lane(role).next().await) })
    }

    /// What was handed out is not here any more: the journal keeps what is open.
    fn acknowledge<'a>(&'a self, _: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>> {
        done()
    }

    fn renew<'a>(&'a self, _: &'a Delivery) -> BoxFuture<'a, Result<(), QueueError>> {
        done()
    }

    fn give_back(&self, delivery: Delivery, delay: Duration) -> BoxFuture<'_, Result<(), QueueError>> {
        let Delivery { mut turn, count, .. } = delivery;
        let lane = self.lane(Role::of(&turn));
        if !delay.is_zero() {
            let earliest = lane.world.now().plus_ms(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
            turn.due = turn.due.max(Some(earliest));
        }
        lane.put(turn, count + 1);
        done()
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
