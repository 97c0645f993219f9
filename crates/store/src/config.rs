//! Embedded configuration: current values, a version per workspace, history, snapshots.

use crate::cache::Cache;
use crate::journal::{EmbeddedJournal, off_the_runtime};
use crate::request::{ConfigWrite, Request};
use crate::tables::{Reader, Tables, read_failed};
use parking_lot::Mutex;
use std::sync::Arc;
use trellis_domain::config::{Settings, StoredItem};
use trellis_domain::{Caller, Configured, Hash, Workspace};
use trellis_orchestrator::memory::check_items;
use trellis_orchestrator::ports::{
    BoxFuture, Config, ConfigError, HistoryEntry, JournalError, Signal, SignalListener, World, items_at,
};

/// Parsed snapshots kept in memory.
const CACHED_SETTINGS: usize = 64;

#[derive(Debug)]
pub struct EmbeddedConfig {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    journal: EmbeddedJournal,
    world: Arc<dyn World>,
    /// One change at a time: a version is read, then written.
    writing: tokio::sync::Semaphore,
    changes: Signal,
    settings: Mutex<Cache<(Workspace, Hash), Arc<Settings>>>,
    /// The newest pin of each workspace, by version.
    pinned: Mutex<std::collections::HashMap<Workspace, Arc<Settings>>>,
}

fn value_key(workspace: &Workspace, kind: &str, key: &str) -> Vec<u8> {
    format!("i{workspace}\0{kind}\0{key}").into_bytes()
}

fn history_key(workspace: &Workspace, kind: &str, key: &str, version: u64) -> Vec<u8> {
    let mut bytes = format!("h{workspace}\0{kind}\0{key}\0").into_bytes();
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes
}

fn version_key(workspace: &Workspace) -> Vec<u8> {
    format!("v{workspace}").into_bytes()
}

fn made_key(workspace: &Workspace, version: u64) -> Vec<u8> {
    let mut bytes = format!("c{workspace}\0").into_bytes();
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes
}

fn read_version(reader: &Reader<'_>, workspace: &Workspace) -> Result<u64, JournalError> {
    let bytes = reader.config(&version_key(workspace))?;
    Ok(bytes.and_then(|bytes| Some(u64::from_be_bytes((*bytes).try_into().ok()?))).unwrap_or(0))
}

/// Each has a version under its name, and names are sorted as keys are.
fn read_workspaces(tables: &Tables) -> Result<Vec<Workspace>, JournalError> {
    let reader = tables.read();
    let keys = reader.config_prefix(b"v").map(|row| row.into_inner().map(|(key, _)| key).map_err(read_failed));
    let names = keys.map(|key| Ok(Workspace::new(&String::from_utf8_lossy(&key?[1..])).ok()));
    names.filter_map(Result::transpose).collect()
}

fn read_all(tables: &Tables, workspace: &Workspace) -> Result<(u64, Vec<StoredItem>), JournalError> {
    let prefix = format!("i{workspace}\0").into_bytes();
    let reader = tables.read();
    let mut items = Vec::new();
    for row in reader.config_prefix(&prefix) {
        let (key, value) = row.into_inner().map_err(read_failed)?;
        let name = String::from_utf8_lossy(&key[prefix.len()..]).into_owned();
        if let Some((kind, key)) = name.split_once('\0') {
            let value = String::from_utf8_lossy(&value).into_owned();
            items.push(StoredItem { kind: kind.to_owned(), key: key.to_owned(), value });
        }
    }
    Ok((read_version(&reader, workspace)?, items))
}

/// The changes of all items, those of each oldest first.
fn read_changes(tables: &Tables, workspace: &Workspace) -> Result<Vec<(String, String, HistoryEntry)>, JournalError> {
    let prefix = format!("h{workspace}\0").into_bytes();
    let reader = tables.read();
    let mut changes = Vec::new();
    for row in reader.config_prefix(&prefix) {
        let (key, value) = row.into_inner().map_err(read_failed)?;
        // Behind the name are a zero and the version.
        let name = String::from_utf8_lossy(&key[prefix.len()..key.len().saturating_sub(9).max(prefix.len())]);
        if let Some((kind, key)) = name.split_once('\0') {
            let entry = serde_json::from_slice(&value).map_err(|error| JournalError::Damaged(error.to_string()))?;
            changes.push((kind.to_owned(), key.to_owned(), entry));
        }
    }
    Ok(changes)
}

type ItemChange = (String, String, Option<String>);

impl EmbeddedConfig {
    pub(crate) fn new(journal: EmbeddedJournal, world: Arc<dyn World>) -> Self {
        let inner = Inner {
            journal,
            world,
            writing: tokio::sync::Semaphore::new(1),
            changes: Signal::default(),
            settings: Mutex::new(Cache::new(CACHED_SETTINGS)),
            pinned: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// In a task of its own: a caller that goes away must not leave a change half announced.
    async fn change(&self, workspace: &Workspace, changes: Vec<ItemChange>, by: Caller) -> Result<u64, ConfigError> {
        let (inner, workspace) = (Arc::clone(&self.inner), workspace.clone());
        let task = tokio::spawn(async move { inner.change(&workspace, changes, by).await });
        task.await.map_err(|error| JournalError::Write(error.to_string()))?
    }
}

impl Inner {
    fn tables(&self) -> Tables {
        self.journal.tables.clone()
    }

    async fn change(&self, workspace: &Workspace, changes: Vec<ItemChange>, by: Caller) -> Result<u64, ConfigError> {
        let _one = self.writing.acquire().await.expect("the semaphore is never closed");
        let version = read_version(&self.journal.tables.read(), workspace)?;
        if changes.is_empty() {
            return Ok(version);
        }
        let version = version + 1;
        let time = self.world.now();
        let made = Configured { version, time, by: by.clone() };
        let made = serde_json::to_vec(&made).expect("names and numbers are always JSON");
        let mut writes = vec![
            write(version_key(workspace), Some(version.to_be_bytes().to_vec()), false),
            write(made_key(workspace, version), Some(made), true),
        ];
        for (kind, key, value) in changes {
            let entry = HistoryEntry { version, time, value: value.clone(), by: Some(by.clone()) };
            let entry = serde_json::to_vec(&entry).expect("history is always JSON");
            writes.push(write(history_key(workspace, &kind, &key, version), Some(entry), true));
            writes.push(write(value_key(workspace, &kind, &key), value.map(String::into_bytes), false));
        }
        self.journal.ask(|reply| Request::Config(writes, reply)).await?;
        self.pinned.lock().remove(workspace);
        self.changes.send();
        Ok(version)
    }

    async fn pin_now(&self, workspace: &Workspace) -> Result<Arc<Settings>, ConfigError> {
        if let Some(settings) = self.pinned.lock().get(workspace) {
            return Ok(Arc::clone(settings));
        }
        let _one = self.writing.acquire().await.expect("the semaphore is never closed");
        let (tables, of) = (self.tables(), workspace.clone());
        let (version, items) = off_the_runtime(move || read_all(&tables, &of)).await?;
        let (settings, bytes) = Settings::take(version, items);
        let (settings, hash) = (Arc::new(settings), Hash::of(&bytes));
        self.journal.ask(|reply| Request::Snapshot(workspace.clone(), hash, bytes, reply)).await?;
        self.settings.lock().put((workspace.clone(), hash), Arc::clone(&settings), 1);
        self.pinned.lock().insert(workspace.clone(), Arc::clone(&settings));
        Ok(settings)
    }

    async fn read_snapshot(&self, workspace: &Workspace, hash: Hash) -> Result<Arc<Settings>, ConfigError> {
        let place = (workspace.clone(), hash);
        if let Some(settings) = self.settings.lock().get(&place) {
            return Ok(Arc::clone(settings));
        }
        let (tables, of) = (self.tables(), workspace.clone());
        let bytes =
            off_the_runtime(move || tables.read().blob(&of, hash)).await?.ok_or(ConfigError::NoSnapshot(hash))?;
        if Hash::of(&bytes) != hash {
            let what = format!("the configuration snapshot {hash} is not what its hash says");
            return Err(JournalError::Damaged(what).into());
        }
        let settings = Settings::from_snapshot(&bytes)
            .map_err(|error| JournalError::Damaged(format!("configuration snapshot {hash}: {error}")))?;
        let settings = Arc::new(settings);
        self.settings.lock().put(place, Arc::clone(&settings), 1);
        Ok(settings)
    }
}

fn write(key: Vec<u8>, value: Option<Vec<u8>>, logged: bool) -> ConfigWrite {
    ConfigWrite { key, value, logged }
}

impl Config for EmbeddedConfig {
    fn get<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ConfigError>> {
        let found = self.inner.journal.tables.read().config(&value_key(workspace, kind, key));
        let text = found.map(|value| value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
        Box::pin(std::future::ready(text.map_err(Into::into)))
    }

    fn version<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<u64, ConfigError>> {
        let version = read_version(&self.inner.journal.tables.read(), workspace);
        Box::pin(std::future::ready(version.map_err(Into::into)))
    }

    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<Workspace>, ConfigError>> {
        let tables = self.inner.tables();
        Box::pin(async move { Ok(off_the_runtime(move || read_workspaces(&tables)).await?) })
    }

    fn all<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<(u64, Vec<StoredItem>), ConfigError>> {
        let (tables, workspace) = (self.inner.tables(), workspace.clone());
        Box::pin(async move { Ok(off_the_runtime(move || read_all(&tables, &workspace)).await?) })
    }

    fn put<'a>(
        &'a self,
        workspace: &'a Workspace,
        items: Vec<StoredItem>,
        by: Caller,
    ) -> BoxFuture<'a, Result<u64, ConfigError>> {
        Box::pin(async move {
            check_items(&items)?;
            let changes = items.into_iter().map(|item| (item.kind, item.key, Some(item.value))).collect();
            self.change(workspace, changes, by).await
        })
    }

    fn delete<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
        by: Caller,
    ) -> BoxFuture<'a, Result<Option<u64>, ConfigError>> {
        Box::pin(async move {
            if self.get(workspace, kind, key).await?.is_none() {
                return Ok(None);
            }
            self.change(workspace, vec![(kind.to_owned(), key.to_owned(), None)], by).await.map(Some)
        })
    }

    fn adopt<'a>(
        &'a self,
        workspace: &'a Workspace,
        changes: Vec<(String, String, Option<String>)>,
        by: Caller,
    ) -> BoxFuture<'a, Result<(), ConfigError>> {
        Box::pin(async move { self.change(workspace, changes, by).await.map(drop) })
    }

    fn history<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<HistoryEntry>, ConfigError>> {
        let (tables, prefix) = (self.inner.tables(), format!("h{workspace}\0{kind}\0{key}\0").into_bytes());
        let read = move || {
            let reader = tables.read();
            let rows = reader.config_prefix(&prefix);
            rows.map(|row| {
                let value = row.value().map_err(read_failed)?;
                serde_json::from_slice(&value).map_err(|error| JournalError::Damaged(error.to_string()))
            })
            .collect()
        };
        Box::pin(async move { Ok(off_the_runtime(read).await?) })
    }

    fn all_at<'a>(
        &'a self,
        workspace: &'a Workspace,
        version: u64,
    ) -> BoxFuture<'a, Result<Vec<StoredItem>, ConfigError>> {
        let (tables, workspace) = (self.inner.tables(), workspace.clone());
        let read = move || read_changes(&tables, &workspace).map(|changes| items_at(changes, version));
        Box::pin(async move { Ok(off_the_runtime(read).await?) })
    }

    fn configured<'a>(
        &'a self,
        workspace: &'a Workspace,
        version: u64,
    ) -> BoxFuture<'a, Result<Option<Configured>, ConfigError>> {
        let found = self.inner.journal.tables.read().config(&made_key(workspace, version));
        let damaged = |error: serde_json::Error| {
            JournalError::Damaged(format!("who made configuration {version} of {workspace}: {error}"))
        };
        let made = found.and_then(|value| value.map(|row| serde_json::from_slice(&row).map_err(damaged)).transpose());
        Box::pin(std::future::ready(made.map_err(Into::into)))
    }

    fn pin<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<Arc<Settings>, ConfigError>> {
        Box::pin(self.inner.pin_now(workspace))
    }

    fn snapshot<'a>(
        &'a self,
        workspace: &'a Workspace,
        hash: Hash,
    ) -> BoxFuture<'a, Result<Arc<Settings>, ConfigError>> {
        Box::pin(self.inner.read_snapshot(workspace, hash))
    }

    fn watch(&self) -> SignalListener {
        self.inner.changes.listen()
    }

    fn changed_elsewhere(&self, workspace: &Workspace, version: u64) {
        self.inner.pinned.lock().retain(|of, settings| of != workspace || settings.version >= version);
        self.inner.changes.send();
    }
}
