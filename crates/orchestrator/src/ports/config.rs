//! Configuration with versions, history, snapshots and watch.

use super::{BoxFuture, Disposition, JournalError, SignalListener};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::config::{Problem, Settings, StoredItem};
use trellis_domain::{Caller, Configured, Hash, Timestamp, Workspace};

/// One change of one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub version: u64,
    pub time: Timestamp,
    /// None if the item was deleted.
    pub value: Option<String>,
    /// Who made it; none in the history of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
}

/// Items as they were at a version, from their changes with type and key; those of each item oldest first.
pub fn items_at(changes: impl IntoIterator<Item = (String, String, HistoryEntry)>, version: u64) -> Vec<StoredItem> {
    let mut values = BTreeMap::new();
    for (kind, key, entry) in changes {
        if entry.version <= version {
            values.insert((kind, key), entry.value);
        }
    }
    values.into_iter().filter_map(|((kind, key), value)| Some(StoredItem { kind, key, value: value? })).collect()
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Invalid(Vec<Problem>),
    #[error("there is no configuration snapshot {0}")]
    NoSnapshot(Hash),
    #[error(transparent)]
    Store(#[from] JournalError),
}

impl ConfigError {
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Invalid(_) | Self::NoSnapshot(_) => Disposition::FailRun,
            Self::Store(error) => error.disposition(),
        }
    }
}

/// Every call names a workspace. Each change makes a new version of the workspace's configuration.
pub trait Config: Send + Sync + std::fmt::Debug {
    fn get<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ConfigError>>;

    /// The version of a workspace's configuration: 0 if it never had any.
    fn version<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<u64, ConfigError>>;

    /// The workspaces that have, or had, a configuration, sorted.
    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<Workspace>, ConfigError>>;

    /// All items of the workspace, sorted, and the version they are.
    fn all<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<(u64, Vec<StoredItem>), ConfigError>>;

    /// Writes items as one new version. Invalid ones are refused, and then none is written.
    fn put<'a>(
        &'a self,
        workspace: &'a Workspace,
        items: Vec<StoredItem>,
        by: Caller,
    ) -> BoxFuture<'a, Result<u64, ConfigError>>;

    /// Deletes an item; the version it made, or None if there was no such item.
    fn delete<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
        by: Caller,
    ) -> BoxFuture<'a, Result<Option<u64>, ConfigError>>;

    /// Takes over what a deployment's own configuration service has: items to write, and those to delete (without a value), as
    /// one version. Whether they can be used is not asked: what cannot is left out when they are read. What is to be deleted
    /// may be gone already.
    fn adopt<'a>(
        &'a self,
        workspace: &'a Workspace,
        changes: Vec<(String, String, Option<String>)>,
        by: Caller,
    ) -> BoxFuture<'a, Result<(), ConfigError>>;

    /// The changes of an item, oldest first.
    fn history<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Vec<HistoryEntry>, ConfigError>>;

    /// All items as they were at a version, sorted, those that were deleted since among them.
    fn all_at<'a>(
        &'a self,
        workspace: &'a Workspace,
        version: u64,
    ) -> BoxFuture<'a, Result<Vec<StoredItem>, ConfigError>>;

    /// Who made a version of the workspace's configuration; none if that was not kept.
    fn configured<'a>(
        &'a self,
        workspace: &'a Workspace,
        version: u64,
    ) -> BoxFuture<'a, Result<Option<Configured>, ConfigError>>;

    /// The settings in force, with their snapshot stored: what a new session is pinned to.
    fn pin<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<Arc<Settings>, ConfigError>>;

    /// The settings of an earlier pin.
    fn snapshot<'a>(
        &'a self,
        workspace: &'a Workspace,
        hash: Hash,
    ) -> BoxFuture<'a, Result<Arc<Settings>, ConfigError>>;

    /// Hears of every change in any workspace.
    fn watch(&self) -> SignalListener;

    /// Another process has made a version of a workspace's configuration. What is kept here of older ones as the newest is
    /// dropped, and watchers are told.
    fn changed_elsewhere(&self, workspace: &Workspace, version: u64);
}
