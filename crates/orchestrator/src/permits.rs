//! Room for a bounded number of calls at a time, shared fairly: round robin over workspaces, then over runs.
//!
//! A semaphore would serve callers in the order in which they come, so that whoever asks four hundred questions is
//! served four hundred times before the next one is served once.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use tokio::sync::oneshot;
use trellis_domain::{RunId, Workspace};

/// Whom a call is made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requester {
    pub workspace: Workspace,
    /// None for a call outside of any run: all those of a workspace count as one run.
    pub run: Option<RunId>,
}

/// Room for so many calls. What is given back goes to the next one in turn.
#[derive(Debug)]
pub struct CallCapacity(Mutex<CapacityState>);

#[derive(Debug)]
struct CapacityState {
    free: usize,
    waiting: Rounds<Workspace, Rounds<Option<RunId>, VecDeque<oneshot::Sender<Permit>>>>,
}

/// Room for one call. Copies stand for the same place; it is free again when the last of them is gone.
#[derive(Debug, Clone, Default)]
pub struct Permit(Option<Arc<TakenPlace>>);

#[derive(Debug)]
struct TakenPlace(Arc<CallCapacity>);

impl CallCapacity {
    pub fn new(places: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(CapacityState { free: places, waiting: Rounds::default() })))
    }

    /// A place, if one is free now. Nobody who waits is overtaken: while somebody waits, none is free.
    pub fn try_enter(self: &Arc<Self>) -> Option<Permit> {
        let mut state = self.0.lock();
        state.free = state.free.checked_sub(1)?;
        Some(self.permit())
    }

    /// Waits for a place. Who stops waiting loses nothing but its place in the line.
    pub fn enter(self: &Arc<Self>, requester: Requester) -> impl Future<Output = Permit> + Send + use<> {
        let entering = {
            let mut state = self.0.lock();
            if let Some(free) = state.free.checked_sub(1) {
                state.free = free;
                Ok(self.permit())
            } else {
                let (granted, waits) = oneshot::channel();
                state.waiting.line(requester.workspace).line(requester.run).push_back(granted);
                Err(waits)
            }
        };
        async move {
            match entering {
                Ok(permit) => permit,
                // The sender is in the room, and whoever holds a permit holds the room.
                Err(waits) => waits.await.unwrap_or_default(),
            }
        }
    }

    fn permit(self: &Arc<Self>) -> Permit {
        Permit(Some(Arc::new(TakenPlace(Arc::clone(self)))))
    }
}

impl Permit {
    /// Whether it is a place in this room.
    pub fn is_in(&self, capacity: &Arc<CallCapacity>) -> bool {
        self.0.as_ref().is_some_and(|place| Arc::ptr_eq(&place.0, capacity))
    }
}

impl Drop for TakenPlace {
    fn drop(&mut self) {
        let next = {
            let mut state = self.0.0.lock();
            let next = std::iter::from_fn(|| state.waiting.next()).find(|next| !next.is_closed());
            state.free += usize::from(next.is_none());
            next
        };
        // Who stops waiting in this moment gives its permit back like anybody else.
        drop(next.map(|next| next.send(self.0.permit())));
    }
}

/// Something that is served one after the other.
trait WaitingLine: Default {
    type Item;

    fn next(&mut self) -> Option<Self::Item>;
    fn is_empty(&self) -> bool;
}

impl<T> WaitingLine for VecDeque<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.pop_front()
    }

    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }
}

/// Lines that are served in turn, one of each.
#[derive(Debug)]
struct Rounds<K, L> {
    /// Whose turn it is next.
    order: VecDeque<K>,
    lines: HashMap<K, L>,
}

impl<K, L> Default for Rounds<K, L> {
    fn default() -> Self {
        Self { order: VecDeque::new(), lines: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash, L: WaitingLine> Rounds<K, L> {
    /// The line of that name, which something is to be added to.
    fn line(&mut self, name: K) -> &mut L {
        if !self.lines.contains_key(&name) {
            self.order.push_back(name.clone());
        }
        self.lines.entry(name).or_default()
    }
}

impl<K: Clone + Eq + Hash, L: WaitingLine> WaitingLine for Rounds<K, L> {
    type Item = L::Item;

    fn next(&mut self) -> Option<L::Item> {
        let name = self.order.pop_front()?;
        let line = self.lines.get_mut(&name)?;
        let item = line.next();
        if line.is_empty() {
            self.lines.remove(&name);
        } else {
            self.order.push_back(name);
        }
        item
    }

    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
#[path = "permits_tests.rs"]
mod tests;
