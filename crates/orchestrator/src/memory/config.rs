//! Configuration in memory.

use crate::ports::{BoxFuture, Config, ConfigError, HistoryEntry, Signal, SignalListener, World, items_at};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::config::{Problem, Settings, StoredItem, not_served, validate};
use trellis_domain::{Caller, Configured, Hash, Workspace};

#[derive(Debug)]
pub struct MemoryConfig {
    state: Arc<Mutex<ConfigState>>,
    changes: Signal,
    world: Arc<dyn World>,
}

#[derive(Debug, Default)]
struct ConfigState {
    workspaces: BTreeMap<Workspace, WorkspaceItems>,
    snapshots: BTreeMap<(Workspace, Hash), Arc<Settings>>,
}

#[derive(Debug, Default)]
struct WorkspaceItems {
    version: u64,
    values: BTreeMap<(String, String), String>,
    history: BTreeMap<(String, String), Vec<HistoryEntry>>,
    /// By version, from 1.
    made: Vec<Configured>,
}

impl MemoryConfig {
    pub fn new(world: Arc<dyn World>) -> Self {
        Self { state: Arc::default(), changes: Signal::default(), world }
    }

    /// The same configuration as another process sees it: its watchers hear of a change here only if they are told.
    #[must_use]
    pub fn of_another_process(&self) -> Self {
        let (state, world) = (Arc::clone(&self.state), Arc::clone(&self.world));
        Self { state, changes: Signal::default(), world }
    }

    fn change(&self, workspace: &Workspace, values: Vec<(String, String, Option<String>)>, by: &Caller) -> u64 {
        let time = self.world.now();
        let version = {
            let mut state = self.state.lock();
            let items = state.workspaces.entry(workspace.clone()).or_default();
            items.version += 1;
            items.made.push(Configured { version: items.version, time, by: by.clone() });
            for (kind, key, value) in values {
                let entry = HistoryEntry { version: items.version, time, value: value.clone(), by: Some(by.clone()) };
                items.history.entry((kind.clone(), key.clone())).or_default().push(entry);
                match value {
                    Some(value) => drop(items.values.insert((kind, key), value)),
                    None => drop(items.values.remove(&(kind, key))),
                }
            }
            items.version
        };
        self.changes.send();
        version
    }

    fn items(&self, workspace: &Workspace) -> (u64, Vec<StoredItem>) {
        let state = self.state.lock();
        let Some(items) = state.workspaces.get(workspace) else { return (0, Vec::new()) };
        let item = |((kind, key), value): (&(String, String), &String)| StoredItem {
            kind: kind.clone(),
            key: key.clone(),
            value: value.clone(),
        };
        (items.version, items.values.iter().map(item).collect())
    }
}

/// Names become parts of keys.
fn misnamed(item: &StoredItem) -> Option<Problem> {
    const LONGEST: usize = 200;
    let wrong = |name: &str| name.is_empty() || name.len() > LONGEST || name.contains('\0');
    let what = || format!("type and key must have 1 to {LONGEST} bytes, without NUL");
    (wrong(&item.kind) || wrong(&item.key)).then(|| name_problem(item, what(), "choose another name"))
}

fn name_problem(item: &StoredItem, what: String, mend: &str) -> Problem {
    Problem {
        kind: item.kind.chars().take(50).collect(),
        key: item.key.chars().take(50).collect(),
        field: "key".to_owned(),
        what,
        mend: mend.to_owned(),
    }
}

/// Refuses items that are not valid, all at once.
pub fn check_items(items: &[StoredItem]) -> Result<(), ConfigError> {
    let mut problems: Vec<_> = items.iter().filter_map(misnamed).collect();
    problems.extend(items.iter().filter_map(|item| validate(&item.kind, &item.key, &item.value).err()));
    problems.extend(items.iter().filter_map(|item| not_served(&item.kind, &item.key, &item.value)));
    for (place, item) in items.iter().enumerate() {
        if items[..place].iter().any(|earlier| earlier.kind == item.kind && earlier.key == item.key) {
            problems.push(name_problem(item, "is named twice".to_owned(), "keep one of the two"));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid(problems)) }
}

fn ready<'a, T: Send + 'a>(value: Result<T, ConfigError>) -> BoxFuture<'a, Result<T, ConfigError>> {
    Box::pin(std::future::ready(value))
}

impl Config for MemoryConfig {
    fn get<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ConfigError>> {
        let key = (kind.to_owned(), key.to_owned());
        ready(Ok(self.state.lock().workspaces.get(workspace).and_then(|items| items.values.get(&key).cloned())))
    }

    fn version<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<u64, ConfigError>> {
        ready(Ok(self.state.lock().workspaces.get(workspace).map_or(0, |items| items.version)))
    }

    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<Workspace>, ConfigError>> {
        ready(Ok(self.state.lock().workspaces.keys().cloned().collect()))
    }

    fn all<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<(u64, Vec<StoredItem>), ConfigError>> {
        ready(Ok(self.items(workspace)))
    }

    fn put<'a>(
        &'a self,
        workspace: &'a Workspace,
        items: Vec<StoredItem>,
        by: Caller,
    ) -> BoxFuture<'a, Result<u64, ConfigError>> {
        let written = check_items(&items).map(|()| {
            let values = items.into_iter().map(|item| (item.kind, item.key, Some(item.value)));
            self.change(workspace, values.collect(), &by)
        });
        ready(written)
    }

    fn delete<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
        by: Caller,
    ) -> BoxFuture<'a, Result<Option<u64>, ConfigError>> {
        let place = (kind.to_owned(), key.to_owned());
        let exists = self.state.lock().workspaces.get(workspace).is_some_and(|items| items.values.contains_key(&place));
        ready(Ok(exists.then(|| self.change(workspace, vec![(place.0, place.1, None)], &by))))
    }

    fn adopt<'a>(
        &'a self,
        workspace: &'a Workspace,
        changes: Vec<(String, String, Option<String>)>,
        by: Caller,
    ) -> BoxFuture<'a, Result<(), ConfigError>> {
        self.change(workspace, changes, &by);
        ready(Ok(()))
    }

    fn history<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<HistoryEntry>, ConfigError>> {
        let place = (kind.to_owned(), key.to_owned());
        let state = self.state.lock();
        let entries = state.workspaces.get(workspace).and_then(|items| items.history.get(&place).cloned());
        ready(Ok(entries.unwrap_or_default()))
    }

    fn all_at<'a>(
        &'a self,
        workspace: &'a Workspace,
        version: u64,
    ) -> BoxFuture<'a, Result<Vec<StoredItem>, ConfigError>> {
        let state = self.state.lock();
        let history = state.workspaces.get(workspace).into_iter().flat_map(|items| &items.history);
        let changes = history.flat_map(|((kind, key), entries)| {
            entries.iter().map(move |entry| (kind.clone(), key.clone(), entry.clone()))
        });
        ready(Ok(items_at(changes, version)))
    }

    fn configured<'a>(
        &'a self,
        workspace: &'a Workspace,
        version: u64,
    ) -> BoxFuture<'a, Result<Option<Configured>, ConfigError>> {
        let state = self.state.lock();
        let made = state.workspaces.get(workspace).into_iter().flat_map(|items| &items.made);
        ready(Ok(made.rev().find(|made| made.version == version).cloned()))
    }

    fn pin<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<Arc<Settings>, ConfigError>> {
        let (version, items) = self.items(workspace);
        let settings = Arc::new(Settings::take(version, items).0);
        let hash = settings.snapshot.unwrap_or(Hash::ZERO);
        self.state.lock().snapshots.insert((workspace.clone(), hash), Arc::clone(&settings));
        ready(Ok(settings))
    }

    fn snapshot<'a>(
        &'a self,
        workspace: &'a Workspace,
        hash: Hash,
    ) -> BoxFuture<'a, Result<Arc<Settings>, ConfigError>> {
        let found = self.state.lock().snapshots.get(&(workspace.clone(), hash)).cloned();
        ready(found.ok_or(ConfigError::NoSnapshot(hash)))
    }

    fn watch(&self) -> SignalListener {
        self.changes.listen()
    }

    /// Nothing is kept beside the one state.
    fn changed_elsewhere(&self, _: &Workspace, _: u64) {
        self.changes.send();
    }
}
