//! How many may work at once, in all and of one workspace: nobody keeps others waiting for long.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use trellis_domain::Workspace;

/// Places for work. Whoever comes first is served first, within a workspace and among workspaces.
#[derive(Debug, Clone)]
pub struct Gate {
    all: Arc<Semaphore>,
    of_one: usize,
    timeout: Duration,
    workspaces: Arc<Mutex<HashMap<Workspace, Weak<Semaphore>>>>,
}

/// A place, free again when it is dropped.
#[derive(Debug)]
pub struct Entered {
    _of_all: OwnedSemaphorePermit,
    _of_own: OwnedSemaphorePermit,
    /// Keeps the workspace's own places known while one of them is taken.
    _own: Arc<Semaphore>,
}

impl Gate {
    /// So many places in all, so many of them for one workspace, and how long somebody waits for one.
    pub fn new(all: usize, of_one: usize, timeout: Duration) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), of_one, timeout, workspaces: Arc::default() }
    }

    /// None if no place became free in time.
    #[allow(clippy::disallowed_methods, reason = "nothing of a run depends on this wait: it is for real callers only")]
    pub async fn enter(&self, workspace: &Workspace) -> Option<Entered> {
        let own = self.own(workspace);
        let entering = async {
            // The own place first: whoever waits for it takes nothing from others.
            let of_own = Arc::clone(&own).acquire_owned().await.ok()?;
            let of_all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Entered { _of_all: of_all, _of_own: of_own, _own: Arc::clone(&own) })
        };
        tokio::time::timeout(self.timeout, entering).await.ok().flatten()
    }

    /// None if no place is free now.
    pub fn try_enter(&self, workspace: &Workspace) -> Option<Entered> {
        let own = self.own(workspace);
        let of_own = Arc::clone(&own).try_acquire_owned().ok()?;
        let of_all = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some(Entered { _of_all: of_all, _of_own: of_own, _own: own })
    }

    fn own(&self, workspace: &Workspace) -> Arc<Semaphore> {
        let mut workspaces = self.workspaces.lock();
        if let Some(known) = workspaces.get(workspace).and_then(Weak::upgrade) {
            return known;
        }
        workspaces.retain(|_, known| known.strong_count() > 0);
        let own = Arc::new(Semaphore::new(self.of_one));
        workspaces.insert(workspace.clone(), Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_workspace_that_wants_everything_leaves_room_for_others() {
        let gate = Gate::new(2, 1, Duration::from_secs(1));
        let (greedy, other) = (Workspace::new("greedy").unwrap(), Workspace::new("other").unwrap());
        let first = gate.enter(&greedy).await.unwrap();
        assert!(gate.enter(&greedy).await.is_none(), "it waits for its own place in vain");
        let second = gate.enter(&other).await.unwrap();
        assert!(gate.enter(&Workspace::default()).await.is_none(), "all places are taken");
        drop(first);
        let third = gate.enter(&greedy).await.unwrap();
        assert!(gate.try_enter(&greedy).is_none() && gate.try_enter(&Workspace::default()).is_none());
        drop((second, third));
        assert!(gate.try_enter(&greedy).is_some());
        assert_eq!(gate.all.available_permits(), 2);
    }
}
