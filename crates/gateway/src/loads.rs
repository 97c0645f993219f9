//! Files that are being loaded: how many at once, and for whom.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use trellis_domain::Workspace;

/// Each has a thread and a batch in memory.
const AT_ONCE: usize = 8;
/// Nobody keeps others from loading.
const OF_ONE_WORKSPACE: usize = 2;

#[derive(Debug, Default, Clone)]
pub(crate) struct Loads(Arc<Mutex<HashMap<Workspace, usize>>>);

/// The right to load one file.
#[derive(Debug)]
pub(crate) struct LoadPermit {
    loads: Loads,
    workspace: Workspace,
}

impl Loads {
    /// None if there are enough already.
    pub(crate) fn begin(&self, workspace: &Workspace) -> Option<LoadPermit> {
        let mut loads = self.0.lock();
        let (all, own) = (loads.values().sum::<usize>(), loads.get(workspace).copied().unwrap_or_default());
        if all >= AT_ONCE || own >= OF_ONE_WORKSPACE {
            return None;
        }
        *loads.entry(workspace.clone()).or_default() += 1;
        Some(LoadPermit { loads: self.clone(), workspace: workspace.clone() })
    }
}

impl Drop for LoadPermit {
    fn drop(&mut self) {
        let mut loads = self.loads.0.lock();
        if let Some(count) = loads.get_mut(&self.workspace) {
            *count -= 1;
            if *count == 0 {
                loads.remove(&self.workspace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_workspace_leaves_room_for_others() {
        let loads = Loads::default();
        let workspace = |n: usize| Workspace::new(&format!("w{n}")).expect("a valid name");
        let mine: Vec<_> = (0..OF_ONE_WORKSPACE).map(|_| loads.begin(&workspace(0)).expect("there is room")).collect();
        assert!(loads.begin(&workspace(0)).is_none());
        let others: Vec<_> = (1..).map_while(|n| loads.begin(&workspace(n))).collect();
        assert_eq!(mine.len() + others.len(), AT_ONCE);
        drop(others);
        assert!(loads.begin(&workspace(0)).is_none(), "the own ones are still there");
        drop(mine);
        assert!(loads.begin(&workspace(0)).is_some());
    }
}
