//! Configuration: current values, a version per workspace, history, snapshots.

use crate::database::Database;
use crate::error::{damaged, failed};
use crate::journal::PostgresJournal;
use crate::sequencer::number_of;
use deadpool_postgres::Transaction;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use trellis_domain::config::{Settings, StoredItem};
use trellis_domain::{Caller, Configured, Hash, Workspace};
use trellis_orchestrator::leaf::LeafKind;
use trellis_orchestrator::memory::check_items;
use trellis_orchestrator::ports::{
    BoxFuture, Config, ConfigError, HistoryEntry, JournalError, Signal, SignalListener, World, items_at,
};

/// Settings kept in memory, by their hash.
const MOST_SETTINGS: usize = 64;

/// The configuration of all processes that share a database.
#[derive(Debug)]
pub struct PostgresConfig {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    database: Database,
    world: Arc<dyn World>,
    /// There is something for the log.
    written: Arc<Notify>,
    changes: Signal,
    settings: Mutex<HashMap<(Workspace, Hash), Arc<Settings>>>,
    /// The newest pin of each workspace. It counts as long as its version is the workspace's.
    pinned: Mutex<HashMap<Workspace, Arc<Settings>>>,
}

type ItemChange = (String, String, Option<String>);

/// The keys under which changes are kept and proven, the same in every store.
fn history_start(workspace: &Workspace, kind: &str, key: &str) -> Vec<u8> {
    format!("h{workspace}\0{kind}\0{key}\0").into_bytes()
}

fn history_key(workspace: &Workspace, kind: &str, key: &str, version: u64) -> Vec<u8> {
    [history_start(workspace, kind, key).as_slice(), &version.to_be_bytes()].concat()
}

fn made_key(workspace: &Workspace, version: u64) -> Vec<u8> {
    [format!("c{workspace}\0").as_bytes(), &version.to_be_bytes()].concat()
}

/// No item has such a name.
fn is_no_name(kind: &str, key: &str) -> bool {
    kind.contains('\0') || key.contains('\0')
}

impl PostgresConfig {
    pub fn new(journal: &PostgresJournal, world: Arc<dyn World>) -> Self {
        let inner = Inner {
            database: journal.database().clone(),
            world,
            written: journal.sequencer().written(),
            changes: Signal::default(),
            settings: Mutex::default(),
            pinned: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// In a task of its own: a caller that goes away must not leave a change half announced. The version it made, or the
    /// one there is if nothing was to be changed.
    async fn change(
        &self,
        workspace: &Workspace,
        changes: Vec<ItemChange>,
        by: Caller,
    ) -> Result<Option<u64>, ConfigError> {
        let (inner, workspace) = (Arc::clone(&self.inner), workspace.clone());
        let task = tokio::spawn(async move {
            let made = Box::pin(inner.database.within(inner.change(&workspace, changes, by))).await;
            inner.changes.send();
            inner.written.notify_one();
            made
        });
        Ok(task.await.map_err(|error| JournalError::Unavailable(error.to_string()))??)
    }
}

impl Inner {
    async fn version(&self, workspace: &Workspace) -> Result<u64, JournalError> {
        let query = "SELECT version FROM config_versions WHERE workspace = $1";
        let row = self.database.find(query, &[&workspace.as_str()]).await?;
        Ok(row.map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
    }

    /// One change of a workspace at a time.
    async fn change(
        &self,
        workspace: &Workspace,
        changes: Vec<ItemChange>,
        by: Caller,
    ) -> Result<Option<u64>, JournalError> {
        let mut lease = self.database.lease().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        let lock = self.database.lock_of(&format!("config\0{workspace}"));
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&lock]).await.map_err(failed)?;
        let find = "SELECT 1 FROM config_items WHERE workspace = $1 AND kind = $2 AND key = $3";
        let mut left = Vec::with_capacity(changes.len());
        for (kind, key, value) in changes {
            // Somebody else may have deleted it meanwhile.
            let place: [&(dyn ToSql + Sync); 3] = [&workspace.as_str(), &kind, &key];
            if value.is_some() || transaction.query_opt(find, &place).await.map_err(failed)?.is_some() {
                left.push((kind, key, value));
            }
        }
        if left.is_empty() {
            transaction.rollback().await.map_err(failed)?;
            lease.release();
            return Ok(None);
        }
        let next = "INSERT INTO config_versions (workspace, version) VALUES ($1, 1) \
            ON CONFLICT (workspace) DO UPDATE SET version = config_versions.version + 1 RETURNING version";
        let row = transaction.query_one(next, &[&workspace.as_str()]).await.map_err(failed)?;
        let version = row.get::<_, i64>(0).cast_unsigned();
        let time = self.world.now();
        let made = Configured { version, time, by: by.clone() };
        let mut logged = vec![(made_key(workspace, version), json(&made))];
        for (kind, key, value) in left {
            let entry = HistoryEntry { version, time, value: value.clone(), by: Some(by.clone()) };
            logged.push((history_key(workspace, &kind, &key, version), json(&entry)));
            write_item(&transaction, workspace, (&kind, &key), value.as_deref()).await?;
        }
        write_logged(&transaction, &logged).await?;
        transaction.commit().await.map_err(failed)?;
        lease.release();
        Ok(Some(version))
    }

    /// Items and version of one moment.
    async fn read_all(&self, workspace: &Workspace) -> Result<(u64, Vec<StoredItem>), JournalError> {
        let query = "SELECT v.version, i.kind, i.key, i.value FROM config_versions v \
            LEFT JOIN config_items i USING (workspace) WHERE workspace = $1 ORDER BY i.kind, i.key";
        let rows = self.database.query(query, &[&workspace.as_str()]).await?;
        let version = rows.first().map_or(0, |row| row.get::<_, i64>(0).cast_unsigned());
        let item = |row: &Row| {
            let (kind, key) = (row.get::<_, Option<String>>(1)?, row.get::<_, Option<String>>(2)?);
            Some(StoredItem { kind, key, value: text(row.get(3)) })
        };
        Ok((version, rows.iter().filter_map(item).collect()))
    }

    /// What is kept here counts only if nobody has changed anything since.
    async fn pin_now(&self, workspace: &Workspace) -> Result<Arc<Settings>, ConfigError> {
        let version = self.version(workspace).await?;
        let kept = self.pinned.lock().get(workspace).filter(|kept| kept.version == version).cloned();
        if let Some(settings) = kept {
            return Ok(settings);
        }
        let (version, items) = self.read_all(workspace).await?;
        let (settings, bytes) = Settings::take(version, items);
        let (settings, hash) = (Arc::new(settings), Hash::of(&bytes));
        let insert = "INSERT INTO snapshots (workspace, hash, settings) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        self.database.execute(insert, &[&workspace.as_str(), &&hash.as_bytes()[..], &bytes]).await?;
        self.keep((workspace.clone(), hash), &settings);
        self.pinned.lock().insert(workspace.clone(), Arc::clone(&settings));
        Ok(settings)
    }

    fn keep(&self, place: (Workspace, Hash), settings: &Arc<Settings>) {
        let mut kept = self.settings.lock();
        if kept.len() >= MOST_SETTINGS {
            kept.clear();
        }
        kept.insert(place, Arc::clone(settings));
    }

    async fn read_snapshot(&self, workspace: &Workspace, hash: Hash) -> Result<Arc<Settings>, ConfigError> {
        let place = (workspace.clone(), hash);
        if let Some(settings) = self.settings.lock().get(&place) {
            return Ok(Arc::clone(settings));
        }
        let query = "SELECT settings FROM snapshots WHERE workspace = $1 AND hash = $2";
        let row = self.database.find(query, &[&workspace.as_str(), &&hash.as_bytes()[..]]).await?;
        let row = row.ok_or(ConfigError::NoSnapshot(hash))?;
        let bytes: &[u8] = row.get(0);
        if Hash::of(bytes) != hash {
            return Err(damaged(format!("the configuration snapshot {hash} is not what its hash says")).into());
        }
        let settings = Settings::from_snapshot(bytes)
            .map_err(|error| damaged(format!("configuration snapshot {hash}: {error}")))?;
        let settings = Arc::new(settings);
        self.keep(place, &settings);
        Ok(settings)
    }

    async fn read_history(
        &self,
        workspace: &Workspace,
        kind: &str,
        key: &str,
    ) -> Result<Vec<HistoryEntry>, JournalError> {
        if is_no_name(kind, key) {
            return Ok(Vec::new());
        }
        let start = history_start(workspace, kind, key);
        let end = [start.as_slice(), &[0xff; 9]].concat();
        let query = "SELECT value FROM config_changes WHERE key >= $1 AND key < $2 ORDER BY key";
        let rows = self.database.query(query, &[&start, &end]).await?;
        rows.iter().map(|row| serde_json::from_slice(row.get(0)).map_err(damaged)).collect()
    }

    /// The changes of all items, those of each oldest first.
    async fn read_changes(&self, workspace: &Workspace) -> Result<Vec<(String, String, HistoryEntry)>, JournalError> {
        let start = format!("h{workspace}\0").into_bytes();
        // No workspace has such a name.
        let end = format!("h{workspace}\u{1}").into_bytes();
        let query = "SELECT key, value FROM config_changes WHERE key >= $1 AND key < $2 ORDER BY key";
        let rows = self.database.query(query, &[&start, &end]).await?;
        let mut changes = Vec::with_capacity(rows.len());
        for row in &rows {
            if let Some((kind, key)) = name_of(row.get(0), &start) {
                changes.push((kind, key, serde_json::from_slice(row.get(1)).map_err(damaged)?));
            }
        }
        Ok(changes)
    }
}

/// Type and key of the item whose change has this key: behind them are a zero and the version.
fn name_of(key: &[u8], start: &[u8]) -> Option<(String, String)> {
    let name = key.strip_prefix(start)?;
    let name = text(name.get(..name.len().checked_sub(9)?)?);
    let (kind, key) = name.split_once('\0')?;
    Some((kind.to_owned(), key.to_owned()))
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("names, numbers and texts are always JSON")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

async fn write_item(
    transaction: &Transaction<'_>,
    workspace: &Workspace,
    (kind, key): (&str, &str),
    value: Option<&str>,
) -> Result<(), JournalError> {
    let workspace = workspace.as_str();
    let written = if let Some(value) = value {
        let insert = "INSERT INTO config_items (workspace, kind, key, value) VALUES ($1, $2, $3, $4) \
            ON CONFLICT (workspace, kind, key) DO UPDATE SET value = excluded.value";
        transaction.execute(insert, &[&workspace, &kind, &key, &value.as_bytes()]).await
    } else {
        let delete = "DELETE FROM config_items WHERE workspace = $1 AND kind = $2 AND key = $3";
        transaction.execute(delete, &[&workspace, &kind, &key]).await
    };
    written.map(drop).map_err(failed)
}

/// What the log proves.
async fn write_logged(transaction: &Transaction<'_>, rows: &[(Vec<u8>, Vec<u8>)]) -> Result<(), JournalError> {
    let (keys, values): (Vec<_>, Vec<_>) = rows.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).unzip();
    let insert = "INSERT INTO config_changes (key, value) SELECT * FROM unnest($1::bytea[], $2::bytea[])";
    transaction.execute(insert, &[&keys, &values]).await.map_err(failed)?;
    let hashes: Vec<_> = rows.iter().map(|(key, value)| LeafKind::Config.hash(key, value)).collect();
    let hashes: Vec<_> = hashes.iter().map(|hash| &hash.as_bytes()[..]).collect();
    let note = "INSERT INTO unsequenced (kind, key, hash) SELECT $3::int2, * FROM unnest($1::bytea[], $2::bytea[])";
    let columns: [&(dyn ToSql + Sync); 3] = [&keys, &hashes, &number_of(LeafKind::Config)];
    transaction.execute(note, &columns).await.map(drop).map_err(failed)
}

impl Config for PostgresConfig {
    fn get<'a>(
        &'a self,
        workspace: &'a Workspace,
        kind: &'a str,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, ConfigError>> {
        Box::pin(async move {
            if is_no_name(kind, key) {
                return Ok(None);
            }
            let query = "SELECT value FROM config_items WHERE workspace = $1 AND kind = $2 AND key = $3";
            let row = self.inner.database.find(query, &[&workspace.as_str(), &kind, &key]).await?;
            Ok(row.map(|row| text(row.get(0))))
        })
    }

    fn version<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<u64, ConfigError>> {
        Box::pin(async { Ok(self.inner.version(workspace).await?) })
    }

    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<Workspace>, ConfigError>> {
        Box::pin(async {
            let rows = self.inner.database.query("SELECT workspace FROM config_versions ORDER BY 1", &[]).await?;
            Ok(rows.iter().filter_map(|row| Workspace::new(row.get::<_, &str>(0)).ok()).collect())
        })
    }

    fn all<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<(u64, Vec<StoredItem>), ConfigError>> {
        Box::pin(async { Ok(self.inner.read_all(workspace).await?) })
    }

    fn put<'a>(
        &'a self,
        workspace: &'a Workspace,
        items: Vec<StoredItem>,
        by: Caller,
    ) -> BoxFuture<'a, Result<u64, ConfigError>> {
        Box::pin(async move {
            check_items(&items)?;
            if items.is_empty() {
                return Ok(self.inner.version(workspace).await?);
            }
            let changes = items.into_iter().map(|item| (item.kind, item.key, Some(item.value))).collect();
            Ok(self.change(workspace, changes, by).await?.unwrap_or_default())
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
            if is_no_name(kind, key) {
                return Ok(None);
            }
            self.change(workspace, vec![(kind.to_owned(), key.to_owned(), None)], by).await
        })
    }

    fn adopt<'a>(
        &'a self,
        workspace: &'a Workspace,
        changes: Vec<ItemChange>,
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
        Box::pin(async move { Ok(self.inner.read_history(workspace, kind, key).await?) })
    }

    fn all_at<'a>(
        &'a self,
        workspace: &'a Workspace,
        version: u64,
    ) -> BoxFuture<'a, Result<Vec<StoredItem>, ConfigError>> {
        Box::pin(async move { Ok(items_at(self.inner.read_changes(workspace).await?, version)) })
    }

    fn configured<'a>(
        &'a self,
        workspace: &'a Workspace,
        version: u64,
    ) -> BoxFuture<'a, Result<Option<Configured>, ConfigError>> {
        Box::pin(async move {
            let query = "SELECT value FROM config_changes WHERE key = $1";
            let row = self.inner.database.find(query, &[&made_key(workspace, version)]).await?;
            let wrong =
                |error: serde_json::Error| damaged(format!("who made configuration {version} of {workspace}: {error}"));
            Ok(row.map(|row| serde_json::from_slice(row.get(0)).map_err(wrong)).transpose()?)
        })
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

    /// Nothing has to be forgotten: what is kept counts only if it is the newest.
    fn changed_elsewhere(&self, _: &Workspace, _: u64) {
        self.inner.changes.send();
    }
}
