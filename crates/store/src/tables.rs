//! The journal's database: its tables and what is read from them.

use crate::keys;
use crate::request::LibraryTable;
use crate::tally::Tally;
use fjall::config::PartitioningPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode, Readable, Snapshot};
use lsm_tree::AbstractTree;
use std::cell::Cell;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::Duration;
use trellis_domain::record::{Record, UnreadableRecord};
use trellis_domain::run::RunSummary;
use trellis_domain::{Hash, RunId, SessionId, Workspace};
use trellis_orchestrator::ledger::SessionHead;
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
    /// What is known of documents and uploads.
    pub(crate) library: Keyspace,
    /// The content of documents, in pieces.
    pub(crate) content: Keyspace,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

thread_local! {
    /// Whether a panic of this thread is caught and says nothing new.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// fjall panics over some kinds of damage; that is an answer too, and no reason to print more. What other threads print
/// meanwhile is their own.
pub(crate) fn catching_panics<T>(open: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                usual(panic);
            }
        }));
    });
    let before = QUIET.replace(true);
    let opened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(open));
    QUIET.set(before);
    opened.ok()
}

/// Why the engine would not open a database.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenRefused {
    #[error(transparent)]
    Failed(fjall::Error),
    #[error("the engine cannot make sense of its log")]
    Panicked,
}

const MB: u64 = 1 << 20;

/// What the tables' write buffers hold together before writers wait: somewhat more than all of them full.
const MOST_UNWRITTEN: u64 = 80 * MB;
/// How long writers wait at a time, and how often at most.
const PAUSE: Duration = Duration::from_millis(5);
const MOST_PAUSES: u32 = 400;

impl Tables {
    pub(crate) fn open(path: &Path) -> Result<Self, OpenRefused> {
        catching_panics(|| Self::open_database(path)).ok_or(OpenRefused::Panicked)?.map_err(OpenRefused::Failed)
    }

    fn open_database(path: &Path) -> Result<Self, fjall::Error> {
        let database =
            Database::builder(path).cache_size(32 * MB).max_journaling_size(128 * MB).worker_threads(1).open()?;
        let table = |name: &str, buffer: u64| {
            database.keyspace(name, || {
                KeyspaceCreateOptions::default()
                    .max_memtable_size(buffer)
                    // Whole index blocks are read again and again once a table was reopened.
                    .index_block_partitioning_policy(PartitioningPolicy::all(true))
                    .filter_block_partitioning_policy(PartitioningPolicy::all(true))
            })
        };
        Ok(Self {
            records: table("records", 12 * MB)?,
            index: table("index", 8 * MB)?,
            blobs: table("blobs", 8 * MB)?,
            config: table("config", 2 * MB)?,
            library: table("library", 2 * MB)?,
            // Large values lie in files of their own: they are never written again to make room for others.
            content: database.keyspace("content", || {
                let apart = KvSeparationOptions::default();
                KeyspaceCreateOptions::default().max_memtable_size(16 * MB).with_kv_separation(Some(apart))
            })?,
            database,
        })
    }

    pub(crate) fn table(&self, table: LibraryTable) -> &Keyspace {
        match table {
            LibraryTable::Library => &self.library,
            LibraryTable::Content => &self.content,
        }
    }

    pub(crate) fn persist(&self) -> Result<(), fjall::Error> {
        self.database.persist(PersistMode::SyncAll)
    }

    /// How much is in memory, and in the engine's log only.
    pub(crate) fn in_memory(&self) -> u64 {
        let of = |(_, table): (&str, &Keyspace)| {
            let sealed = table.tree.sealed_memtable_count();
            if sealed > 0 { u64::MAX } else { table.tree.active_memtable().size() }
        };
        self.all().map(of).into_iter().fold(0, u64::saturating_add)
    }

    /// Waits while the engine holds too much in memory. It writes it out beside us, and may fall behind on a busy
    /// machine: then writers are slowed down, because otherwise they would take all the memory there is.
    pub(crate) fn wait_for_room(&self) {
        let unwritten = || self.all().iter().map(|(_, table)| table.tree.active_memtable().size()).sum::<u64>();
        for _ in 0..MOST_PAUSES {
            if unwritten() <= MOST_UNWRITTEN {
                return;
            }
            std::thread::sleep(PAUSE);
        }
        tracing::warn!("the engine has not written out what it holds in memory; is the disk very slow?");
    }

    /// Writes into tables what is in memory. The engine does that beside us, and does not say when it cannot.
    pub(crate) fn write_out(&self) -> Result<(), fjall::Error> {
        for (_, table) in self.all() {
            table.rotate_memtable()?;
        }
        for waited in 0..1_000 {
            // Logs that are not needed any more go a little later, or not before the next batch.
            if self.in_memory() == 0 && (self.database.journal_count() == 1 || waited > 50) {
                return self.persist();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(fjall::Error::Io(std::io::Error::other("tables could not be written within 10 s")))
    }

    /// The highest number that is in each table on disk.
    pub(crate) fn written(&self) -> [Option<u64>; 6] {
        self.all().map(|(_, table)| table.tree.get_highest_persisted_seqno())
    }

    fn all(&self) -> [(&'static str, &Keyspace); 6] {
        let Self { records, index, blobs, config, library, content, .. } = self;
        [
            ("records", records),
            ("index", index),
            ("texts", blobs),
            ("configuration", config),
            ("library", library),
            ("content", content),
        ]
    }

    /// Everything as of now. A batch becomes readable table by table while it is written; only a snapshot
    /// sees all of it or nothing.
    pub(crate) fn read(&self) -> Reader<'_> {
        Reader { tables: self, snapshot: self.database.snapshot() }
    }
}

/// One consistent look at all tables.
pub(crate) struct Reader<'a> {
    tables: &'a Tables,
    snapshot: Snapshot,
}

type Value = Option<fjall::UserValue>;

/// Where the tally of documents stands.
pub(crate) const TALLY: &[u8] = &[keys::prefix::TALLY];

/// The engine's own limit: it would not return from looking for a longer one.
const LONGEST_KEY: usize = u16::MAX as usize;

impl Reader<'_> {
    pub(crate) fn get(&self, table: &Keyspace, key: &[u8]) -> Result<Value, JournalError> {
        if key.len() > LONGEST_KEY {
            return Ok(None);
        }
        self.snapshot.get(table, key).map_err(read_failed)
    }

    fn prefix(&self, table: &Keyspace, prefix: &[u8]) -> fjall::Iter {
        if prefix.len() > LONGEST_KEY {
            return self.snapshot.range(table, ..Vec::new());
        }
        self.snapshot.prefix(table, prefix)
    }

    pub(crate) fn index(&self, key: &[u8]) -> Result<Value, JournalError> {
        self.get(&self.tables.index, key)
    }

    pub(crate) fn index_prefix(&self, prefix: &[u8]) -> fjall::Iter {
        self.prefix(&self.tables.index, prefix)
    }

    pub(crate) fn index_range(&self, range: impl RangeBounds<Vec<u8>>) -> fjall::Iter {
        self.snapshot.range(&self.tables.index, range)
    }

    pub(crate) fn config(&self, key: &[u8]) -> Result<Value, JournalError> {
        self.get(&self.tables.config, key)
    }

    pub(crate) fn config_prefix(&self, prefix: &[u8]) -> fjall::Iter {
        self.prefix(&self.tables.config, prefix)
    }

    pub(crate) fn library(&self, key: &[u8]) -> Result<Value, JournalError> {
        self.get(&self.tables.library, key)
    }

    pub(crate) fn library_prefix(&self, prefix: &[u8]) -> fjall::Iter {
        self.prefix(&self.tables.library, prefix)
    }

    pub(crate) fn content(&self, key: &[u8]) -> Result<Value, JournalError> {
        self.get(&self.tables.content, key)
    }

    pub(crate) fn content_prefix(&self, prefix: &[u8]) -> fjall::Iter {
        self.prefix(&self.tables.content, prefix)
    }

    pub(crate) fn record(&self, key: &[u8]) -> Result<Value, JournalError> {
        self.snapshot.get(&self.tables.records, key).map_err(read_failed)
    }

    pub(crate) fn blob(&self, workspace: &Workspace, hash: Hash) -> Result<Value, JournalError> {
        self.snapshot.get(&self.tables.blobs, blob_key(workspace, hash)).map_err(read_failed)
    }

    /// All tables with their names.
    pub(crate) fn tables(&self) -> [(&'static str, &Keyspace); 6] {
        self.tables.all()
    }

    /// Every row of a table.
    pub(crate) fn all(&self, table: &Keyspace) -> fjall::Iter {
        self.snapshot.iter(table)
    }

    pub(crate) fn all_blobs(&self) -> fjall::Iter {
        self.all(&self.tables.blobs)
    }

    pub(crate) fn all_of(&self, table: LibraryTable) -> fjall::Iter {
        self.all(self.tables.table(table))
    }

    /// The tally of documents as it was kept.
    pub(crate) fn tally(&self) -> Result<Tally, JournalError> {
        let Some(row) = self.index(TALLY)? else { return Ok(Tally::default()) };
        Tally::from_bytes(&row).ok_or_else(|| JournalError::Damaged("it cannot be read".to_owned()))
    }

    /// All records of a session, with their texts.
    pub(crate) fn session(&self, workspace: &Workspace, session: &SessionId) -> Result<Vec<Arc<Record>>, JournalError> {
        let rows = self.snapshot.prefix(&self.tables.records, keys::session(workspace, session));
        rows.map(|row| self.read_record(workspace, &row.value().map_err(read_failed)?)).collect()
    }

    /// How many records a session has.
    pub(crate) fn count_session(&self, workspace: &Workspace, session: &SessionId) -> Result<usize, JournalError> {
        let rows = self.snapshot.prefix(&self.tables.records, keys::session(workspace, session));
        rows.map(|row| row.key().map(drop).map_err(read_failed)).collect::<Result<Vec<_>, _>>().map(|rows| rows.len())
    }

    /// The records of a session's first commit, with their texts.
    pub(crate) fn first_records(
        &self,
        workspace: &Workspace,
        session: &SessionId,
    ) -> Result<Vec<Arc<Record>>, JournalError> {
        let rows = self.snapshot.prefix(&self.tables.records, keys::first_commit(workspace, session));
        rows.map(|row| self.read_record(workspace, &row.value().map_err(read_failed)?)).collect()
    }

    /// The run that a session belongs to.
    pub(crate) fn run_of(&self, workspace: &Workspace, session: &SessionId) -> Result<Option<RunId>, JournalError> {
        if self.index(&keys::run(workspace, session))?.is_some() {
            return Ok(Some(session.clone()));
        }
        let mut rows = self.snapshot.prefix(&self.tables.records, keys::session(workspace, session));
        let Some(row) = rows.next() else { return Ok(None) };
        Ok(Some(Record::header_of(&row.value().map_err(read_failed)?).map_err(unreadable)?.run))
    }

    /// What a committer must know of a session. Its texts are not read for that.
    pub(crate) fn session_head(&self, workspace: &Workspace, session: &SessionId) -> Result<SessionHead, JournalError> {
        let mut head = SessionHead::default();
        for row in self.snapshot.prefix(&self.tables.records, keys::session(workspace, session)) {
            head.add(&Record::header_of(&row.value().map_err(read_failed)?).map_err(unreadable)?);
        }
        Ok(head)
    }

    pub(crate) fn read_record(&self, workspace: &Workspace, bytes: &[u8]) -> Result<Arc<Record>, JournalError> {
        let mut fetch = |hash| self.text(workspace, hash);
        Record::fetched(bytes, &mut fetch).map(Arc::new).map_err(unreadable)
    }

    /// A text that is stored apart.
    pub(crate) fn text(&self, workspace: &Workspace, hash: Hash) -> Result<Arc<str>, UnreadableRecord> {
        let wrong = |what: &'static str| UnreadableRecord::Stored { hash, what };
        let bytes = self.blob(workspace, hash).map_err(|_| wrong("cannot be read"))?;
        let bytes = bytes.ok_or_else(|| wrong("is missing"))?;
        std::str::from_utf8(&bytes).map(Arc::from).map_err(|_| wrong("is not readable"))
    }

    pub(crate) fn run(&self, workspace: &Workspace, run: &RunId) -> Result<Option<RunSummary>, JournalError> {
        let bytes = self.index(&keys::run(workspace, run))?;
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
        let rows = self.index_range(from..=to).take(limit);
        rows.map(|row| {
            let value = row.value().map_err(read_failed)?;
            let bytes = keys::read_event(&value).map(|(_, key)| self.record(key)).transpose()?.flatten();
            let bytes = bytes.ok_or_else(|| JournalError::Damaged(format!("a record of run {run} is missing")))?;
            self.read_record(workspace, &bytes)
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

/// What the operating system said, if it was the one that refused something; else what the engine says.
pub(crate) fn said(error: fjall::Error) -> String {
    if let fjall::Error::Io(error) | fjall::Error::Storage(lsm_tree::Error::Io(error)) = error {
        return error.to_string();
    }
    error.to_string()
}

pub(crate) fn unreadable(error: UnreadableRecord) -> JournalError {
    JournalError::Damaged(error.to_string())
}

/// The folder cannot be written.
pub(crate) fn unwritable(folder: &Path, reason: &dyn std::fmt::Display) -> JournalError {
    let folder = folder.display();
    JournalError::Write(format!("{folder}: {reason}; free some space or check the folder's permissions"))
}
