//! Who may evaluate a query now, and who has to wait.
//!
//! Nobody holds more than half of the places, so that there is always one for somebody else.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::oneshot;
use trellis_domain::Workspace;

/// Queries of one workspace, or of one caller, that may wait; and of all.
const WAITING_OF_ONE: usize = 16;
const WAITING: usize = 64;

/// On whose behalf a query is evaluated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    pub workspace: Workspace,
    /// None where callers are not told apart.
    pub caller: Option<String>,
}

impl Asker {
    fn shares_workspace(&self, other: &Self) -> bool {
        self.workspace == other.workspace
    }

    fn shares_caller(&self, other: &Self) -> bool {
        self.caller.is_some() && self.caller == other.caller
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Places(Arc<SharedPlaces>);

#[derive(Debug)]
struct SharedPlaces {
    at_once: usize,
    state: Mutex<PlacesState>,
}

#[derive(Debug, Default)]
struct PlacesState {
    /// Who holds a place.
    held: Vec<Asker>,
    /// In the order in which they came.
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    asker: Asker,
    wake: oneshot::Sender<QueryPlace>,
}

/// A place, until this is dropped.
#[derive(Debug)]
pub(crate) struct QueryPlace {
    places: Places,
    asker: Asker,
}

/// So many queries wait already that no more are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Places {
    pub(crate) fn new(at_once: usize) -> Self {
        Self(Arc::new(SharedPlaces { at_once: at_once.max(1), state: Mutex::default() }))
    }

    /// Waits for a place. Whoever stops waiting by dropping the future gives up its turn.
    pub(crate) async fn take(&self, asker: Asker) -> Result<QueryPlace, Full> {
        let woken = {
            let mut state = self.0.state.lock();
            if state.held.len() < self.0.at_once && state.may_hold(&asker, self.0.at_once) {
                state.held.push(asker.clone());
                drop(state);
                return Ok(QueryPlace { places: self.clone(), asker });
            }
            state.waiting.retain(|waiter| !waiter.wake.is_closed());
            let of_workspace = state.waiting.iter().filter(|waiter| waiter.asker.shares_workspace(&asker)).count();
            let of_caller = state.waiting.iter().filter(|waiter| waiter.asker.shares_caller(&asker)).count();
            if of_workspace >= WAITING_OF_ONE || of_caller >= WAITING_OF_ONE || state.waiting.len() >= WAITING {
                return Err(Full);
            }
            let (wake, woken) = oneshot::channel();
            state.waiting.push_back(Waiter { asker, wake });
            woken
        };
        woken.await.map_err(|_| Full)
    }

    /// Gives free places to those who wait.
    fn grant(&self) {
        loop {
            let next = {
                let mut state = self.0.state.lock();
                if state.held.len() >= self.0.at_once {
                    return;
                }
                let Some(next) = state.next(self.0.at_once) else { return };
                state.held.push(next.asker.clone());
                next
            };
            let place = QueryPlace { places: self.clone(), asker: next.asker };
            // Whoever has gone meanwhile gives it back; `QueryPlace` grants again when it is dropped.
            if next.wake.send(place).is_ok() {
                continue;
            }
            return;
        }
    }
}

impl PlacesState {
    fn may_hold(&self, asker: &Asker, at_once: usize) -> bool {
        let most = (at_once / 2).max(1);
        let of_workspace = self.held.iter().filter(|held| held.shares_workspace(asker)).count();
        let of_caller = self.held.iter().filter(|held| held.shares_caller(asker)).count();
        of_workspace < most && of_caller < most
    }

    /// Takes out whoever is next: of the workspace that holds least, and of those the first.
    fn next(&mut self, at_once: usize) -> Option<Waiter> {
        self.waiting.retain(|waiter| !waiter.wake.is_closed());
        let may = self.waiting.iter().enumerate().filter(|(_, waiter)| self.may_hold(&waiter.asker, at_once));
        let holds = |asker: &Asker| self.held.iter().filter(|held| held.shares_workspace(asker)).count();
        let (place, _) = may.min_by_key(|(place, waiter)| (holds(&waiter.asker), *place))?;
        self.waiting.remove(place)
    }
}

impl Drop for QueryPlace {
    fn drop(&mut self) {
        {
            let mut state = self.places.0.state.lock();
            let mine = state.held.iter().position(|held| *held == self.asker);
            if let Some(mine) = mine {
                state.held.swap_remove(mine);
            }
        }
        self.places.grant();
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
