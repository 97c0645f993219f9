//! The journal's database: its tables and what is read from them.

use crate::keys;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;
use std::sync::Arc;
use trellis_domain::document::Payload;
use trellis_domain::record::{Record, UnreadableRecord};
use trellis_domain::run::RunSummary;
use trellis_domain::{Hash, RunId, SessionId, Workspace};
use trellis_orchestrator::ports::JournalError;

/// Few tables: each has a write buffer of its own.
#[derive(Clone)]
pub(crate) struct Tables {
    pub(crate) database: Database,
    pub(crate) records: Keyspace,
    pub(crate) index: Keyspace,
    /// Large texts and configuration snapshots, by workspace and hash.
    pub(crate) blobs: Keyspace,
    pub(crate) config: Keyspace,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

const MB: u64 = 1 << 20;

impl Tables {
    pub(crate) fn open(path: &Path) -> Result<Self, fjall::Error> {
        let database =
            Database::builder(path).cache_size(32 * MB).max_journaling_size(128 * MB).worker_threads(1).open()?;
        let table = |name: &str, buffer: u64| {
            database.keyspace(name, || KeyspaceCreateOptions::default().max_memtable_size(buffer))
        };
        Ok(Self {
            records: table("records", 24 * MB)?,
            index: table("index", 16 * MB)?,
            blobs: table("blobs", 16 * MB)?,
            config: table("config", 2 * MB)?,
            database,
        })
    }

    pub(crate) fn persist(&self) -> Result<(), fjall::Error> {
        self.database.persist(PersistMode::SyncAll)
    }

    /// All records of a session, with their texts.
    pub(crate) fn session(
        &self,
        workspace: &Workspace,
        session: &SessionId,
    ) -> Result<Vec<(Arc<Record>, usize)>, JournalError> {
        let rows = self.records.prefix(keys::session(workspace, session));
        rows.map(|row| self.read_record(workspace, &row.value().map_err(read_failed)?)).collect()
    }

    fn read_record(&self, workspace: &Workspace, bytes: &[u8]) -> Result<(Arc<Record>, usize), JournalError> {
        let mut record = Record::from_bytes(bytes).map_err(unreadable)?;
        let mut size = bytes.len();
        for payload in record.body.payloads_mut() {
            if let Payload::Blob { blob, .. } = payload {
                let text = self.text(workspace, *blob)?;
                size += text.len();
                *payload = Payload::Inline(text);
            }
        }
        Ok((Arc::new(record), size))
    }

    fn text(&self, workspace: &Workspace, hash: Hash) -> Result<Arc<str>, JournalError> {
        let bytes = self.blob(workspace, hash)?;
        let damaged = |what: &str| JournalError::Damaged(format!("the stored text {hash} {what}"));
        let bytes = bytes.ok_or_else(|| damaged("is missing"))?;
        let text = std::str::from_utf8(&bytes).map_err(|_| damaged("is not readable"))?;
        Ok(text.into())
    }

    pub(crate) fn blob(&self, workspace: &Workspace, hash: Hash) -> Result<Option<fjall::UserValue>, JournalError> {
        self.blobs.get(blob_key(workspace, hash)).map_err(read_failed)
    }

    pub(crate) fn run(&self, workspace: &Workspace, run: &RunId) -> Result<Option<RunSummary>, JournalError> {
        let bytes = self.index.get(keys::run(workspace, run)).map_err(read_failed)?;
        bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose().map_err(|error| unreadable(error.into()))
    }

    /// Records of a run after that sequence number.
    pub(crate) fn events(
        &self,
        workspace: &Workspace,
        run: &RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Record>>, JournalError> {
        let (from, to) = (keys::event(workspace, run, after + 1), keys::event(workspace, run, u64::MAX));
        let rows = self.index.range(from..=to).take(limit);
        rows.map(|row| {
            let key = row.value().map_err(read_failed)?;
            let bytes = self.records.get(&key).map_err(read_failed)?;
            let bytes = bytes.ok_or_else(|| JournalError::Damaged(format!("a record of run {run} is missing")))?;
            Ok(self.read_record(workspace, &bytes)?.0)
        })
        .collect()
    }
}

pub(crate) fn blob_key(workspace: &Workspace, hash: Hash) -> Vec<u8> {
    let mut key = format!("{workspace}\0").into_bytes();
    key.extend_from_slice(hash.as_bytes());
    key
}

pub(crate) fn read_failed(error: fjall::Error) -> JournalError {
    JournalError::Read(error.to_string())
}

pub(crate) fn unreadable(error: UnreadableRecord) -> JournalError {
    JournalError::Damaged(error.to_string())
}
