//! Opening and closing a data folder.

use crate::check::{self, Checked};
use crate::committer::Committer;
use crate::config::EmbeddedConfig;
use crate::engine_fault::EngineFault;
use crate::engine_files::{self, FoundLog};
use crate::engine_log::sync_folder;
use crate::evidence::EmbeddedLog;
use crate::folder::{FORMAT, Folder, Holder, LastExit, OpenError};
use crate::graph::{CheckedView, EmbeddedGraph};
use crate::head::{self, Head, HeadFile};
use crate::journal::EmbeddedJournal;
use crate::key;
use crate::keys::{self, prefix};
use crate::knowledge::{CheckedKnowledge, EmbeddedKnowledge};
use crate::library::EmbeddedLibrary;
use crate::log;
use crate::recovery::{self, AsideTurn};
use crate::request::Request;
use crate::rows::{CheckedTables, EmbeddedTables};
use crate::served::Served;
use crate::shadow::Shadow;
use crate::state::{Shared, Turn};
use crate::tables::{OpenRefused, Tables, read_failed, unwritable};
use crate::upgrade;
use std::collections::{BTreeMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use trellis_domain::{Hash, Timestamp};
use trellis_orchestrator::ledger::Salts;
use trellis_orchestrator::log_key::LogKey;
use trellis_orchestrator::ports::{JournalError, TurnKey, World};

/// So much in the engine's log is read in no time, when the folder is opened again.
const LONG_LOG: u64 = 2 << 20;

/// The embedded engine: one folder, owned by one process.
#[derive(Debug)]
pub struct Store {
    pub journal: Arc<EmbeddedJournal>,
    pub config: Arc<EmbeddedConfig>,
    pub library: Arc<EmbeddedLibrary>,
    pub graph: Arc<EmbeddedGraph>,
    pub knowledge: Arc<EmbeddedKnowledge>,
    pub tables: Arc<EmbeddedTables>,
    pub log: Arc<EmbeddedLog>,
    committer: Option<JoinHandle<()>>,
    /// Dropped late: until then the folder is ours.
    folder: Folder,
    /// Dropped last: what is read instead of a folder that cannot be written.
    shadow: Option<Shadow>,
}

impl Store {
    /// Takes the folder, checks that nothing acknowledged is missing, and starts the committer.
    pub fn open(path: &Path, holder: &Holder, world: Arc<dyn World>) -> Result<Self, OpenError> {
        Self::open_in(Folder::take(path, holder)?, None, world)
    }

    /// The same in a shadow, which stands for its original from then on.
    pub(crate) fn open_shadow(shadow: Shadow, holder: &Holder, world: Arc<dyn World>) -> Result<Self, OpenError> {
        let folder = Folder::take(shadow.path(), holder).map_err(|error| shadow.about_original(error))?;
        Self::open_in(folder, Some(shadow), world)
    }

    fn open_in(mut folder: Folder, shadow: Option<Shadow>, world: Arc<dyn World>) -> Result<Self, OpenError> {
        match Opened::of(&mut folder, shadow.as_ref(), &world) {
            Ok(Opened { journal, key, committer }) => {
                let unwritable = shadow.as_ref().map(|shadow| unwritable(shadow.original(), &shadow.reason));
                let knowledge = EmbeddedKnowledge::new(folder.knowledge(), unwritable.clone());
                // Where they really are: a shadow has none of them, and that must not look like there being none.
                let original = shadow.as_ref().map(|shadow| shadow.original().join("tables"));
                let tables = EmbeddedTables::new(original.unwrap_or_else(|| folder.tables()), unwritable);
                Ok(Self {
                    log: Arc::new(EmbeddedLog::new(journal.clone(), key)),
                    config: Arc::new(EmbeddedConfig::new(journal.clone(), Arc::clone(&world))),
                    library: Arc::new(EmbeddedLibrary::new(journal.clone(), world)),
                    graph: Arc::new(EmbeddedGraph::new(folder.view(), journal.clone(), knowledge.clone())),
                    knowledge: Arc::new(knowledge),
                    tables: Arc::new(tables),
                    journal: Arc::new(journal),
                    committer: Some(committer),
                    folder,
                    shadow,
                })
            }
            Err(error) => {
                let error = naming_files(&folder, error);
                folder.give_back(&error);
                Err(if let Some(shadow) = &shadow { shadow.about_original(error) } else { error })
            }
        }
    }

    /// Reads everything there is and holds it against the log and against itself.
    pub fn check(&self) -> Checked {
        let mut checked = check::everything(&self.journal.tables);
        for file in engine_files::damages(&self.folder.journal()) {
            checked.fault(self.named(file));
        }
        checked
    }

    /// Reads the whole view of the graph and holds it against the records.
    pub fn check_view(&self) -> CheckedView {
        let checked = self.graph.check();
        CheckedView { faults: checked.faults.into_iter().map(|fault| self.named(fault)).collect(), ..checked }
    }

    /// Reads all loaded knowledge and holds it against what was noted of it.
    pub fn check_knowledge(&self) -> CheckedKnowledge {
        let checked = self.knowledge.check();
        CheckedKnowledge { faults: checked.faults.into_iter().map(|fault| self.named(fault)).collect(), ..checked }
    }

    /// Reads all rows of all tables and holds them against their indexes.
    pub fn check_tables(&self) -> CheckedTables {
        self.tables.check()
    }

    /// A text with the names of the folder that is meant.
    fn named(&self, text: String) -> String {
        self.shadow.as_ref().map_or(text.clone(), |shadow| shadow.named(&text))
    }

    /// Writes the tables anew without what was replaced in them. The engine's log goes when the folder is opened again.
    pub fn shed(&self) -> Result<(), JournalError> {
        let write = |error: fjall::Error| JournalError::Write(error.to_string());
        self.journal.tables.write_out().map_err(write)?;
        for (_, table) in self.journal.tables.read().tables() {
            table.major_compact().map_err(write)?;
        }
        self.journal.tables.persist().map_err(write)
    }

    /// How the folder is left. Whoever opens it next would have to read a long log before anything else.
    fn left(&self) -> LastExit {
        let tables = &self.journal.tables;
        if tables.in_memory() > LONG_LOG
            && let Err(error) = tables.write_out()
        {
            tracing::warn!(%error, "the engine's log stays long");
        }
        let nothing_left = tables.in_memory() == 0;
        let last = nothing_left.then(|| engine_files::last_batch(&self.folder.journal()).ok().flatten()).flatten();
        let synced = engine_files::sync_tables(&self.folder.journal()).is_ok();
        last.filter(|_| synced).map_or(LastExit::Closed, |last| LastExit::Shed { last, tables: tables.written() })
    }

    /// Whether the engine's log holds nothing that was written before.
    pub fn has_empty_log(&self) -> bool {
        matches!(engine_files::last_batch(&self.folder.journal()), Ok(None))
            && self.journal.tables.database.journal_count() == 1
    }

    /// Logs that were kept because something in them could not be read.
    pub fn kept_logs(&self) -> Vec<PathBuf> {
        let kept = engine_files::kept_before(self.folder.path()).unwrap_or_default();
        match &self.shadow {
            Some(shadow) => kept.iter().map(|kept| shadow.kept_in_original(kept)).collect(),
            None => kept,
        }
    }

    /// Turns that were set aside, because what their session has recorded cannot be read.
    pub fn set_aside(&self) -> Result<Vec<AsideTurn>, JournalError> {
        recovery::all_aside(&self.journal.tables)
    }

    pub fn path(&self) -> &Path {
        self.shadow.as_ref().map_or(self.folder.path(), Shadow::original)
    }

    /// Why the folder is only read, if it cannot be written.
    pub fn only_read(&self) -> Option<&str> {
        self.shadow.as_ref().map(|shadow| shadow.reason.as_str())
    }
}

/// What is at work in an open folder.
struct Opened {
    journal: EmbeddedJournal,
    key: LogKey,
    committer: JoinHandle<()>,
}

impl Opened {
    fn of(folder: &mut Folder, shadow: Option<&Shadow>, world: &Arc<dyn World>) -> Result<Self, OpenError> {
        let (tables, head, group) = open_journal(folder, shadow)?;
        let damaged = |error: JournalError| folder.damaged(error.to_string(), None);
        let key = key::of(folder.path()).map_err(|error| {
            let damaged = error.kind() == ErrorKind::InvalidData;
            if damaged { folder.damaged(error.to_string(), None) } else { folder.unusable(error) }
        })?;
        let abandoned = crate::library::abandoned(&tables, world.now()).map_err(damaged)?;
        let (turns, open_runs, oldest) = open_turns(&tables).map_err(damaged)?;
        let served = Served::read(&tables, world.now(), oldest).map_err(damaged)?;
        let shared = Arc::new(Shared::new(turns, open_runs, served));
        let (requests, inbox) = mpsc::channel();
        let frontier =
            log::size(&tables.read()).and_then(|size| log::frontier(&tables.read(), size)).map_err(damaged)?;
        let seeds = Salts::new(&**world);
        let path = folder.path();
        let mut committer = Committer::new(path, tables.clone(), Arc::clone(&shared), head, frontier, group, seeds);
        if let Some(shadow) = shadow {
            committer.only_keep_for_itself(unwritable(shadow.original(), &shadow.reason));
        }
        let thread = std::thread::Builder::new().name("committer".to_owned());
        let committer = thread.spawn(move || committer.run(&inbox)).map_err(|error| folder.unusable(error))?;
        if !abandoned.is_empty() {
            // Nobody waits for it.
            drop(requests.send(Request::Library(abandoned, tokio::sync::oneshot::channel().0)));
        }
        Ok(Self { journal: EmbeddedJournal { tables, shared, requests }, key, committer })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // A committer that is gone already has nothing left to write.
        drop(self.journal.requests.send(Request::Stop));
        let joined = self.committer.take().is_none_or(|thread| thread.join().is_ok());
        if joined && self.journal.shared.failures().borrow().is_none() {
            // A shadow goes with this process.
            let left = if self.shadow.is_some() { LastExit::Closed } else { self.left() };
            self.folder.close(left);
        } else {
            tracing::error!("the committer failed before the folder was closed");
        }
    }
}

/// Damage is told with the files that are not what was written, if the engine did not say which.
fn naming_files(folder: &Folder, error: OpenError) -> OpenError {
    let OpenError::Damaged { path, reason, kept } = error else { return error };
    let files = engine_files::damages(&folder.journal());
    let told = files.iter().all(|file| reason.contains(file));
    let reason = if told { reason } else { format!("{reason}: {}", files.join(", ")) };
    OpenError::Damaged { path, reason, kept }
}

/// Creates the journal beside its place and moves it there whole: a process that dies in between leaves nothing that looks
/// like a journal. The head is there before the journal is, so a journal without one has lost it.
fn create_journal(folder: &Folder) -> Result<(), OpenError> {
    let (journal, scratch) = (folder.journal(), folder.path().join("journal.new"));
    let create = || -> std::io::Result<()> {
        if scratch.exists() {
            std::fs::remove_dir_all(&scratch)?;
        }
        let refused = |error: String| std::io::Error::other(error);
        let tables = Tables::open(&scratch).map_err(|error| refused(error.to_string()))?;
        tables.persist().map_err(|error| refused(error.to_string()))?;
        drop(tables);
        HeadFile::create(folder.path(), Head { group: 0, size: 0, root: Hash::of([]) })?;
        key::create(folder.path())?;
        std::fs::rename(&scratch, journal)?;
        // Before anything is committed: after a power cut it must not be found under its first name and removed.
        sync_folder(folder.path())
    };
    create().map_err(|error| folder.unusable(error))
}

/// What the operating system said, if it was the operating system that refused something.
fn io_error(error: &fjall::Error) -> Option<ErrorKind> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    if let fjall::Error::Io(error) = error { Some(error.kind()) } else { None }
}

/// Opens the journal and compares it with the log's head before anything is trusted.
fn open_journal(folder: &mut Folder, shadow: Option<&Shadow>) -> Result<(Tables, HeadFile, u64), OpenError> {
    let (journal, head) = (folder.journal(), folder.path().join(head::FILE));
    if !journal.exists() {
        let known = head::read(folder.path()).ok().flatten();
        if folder.format != FORMAT || known.is_some_and(|head| head.group > 0) {
            return Err(folder.damaged(format!("{} is missing", journal.display()), None));
        }
        create_journal(folder)?;
    }
    if folder.format == FORMAT && !head.exists() {
        return Err(folder.damaged("the log's head is missing: nobody can say whether something was lost", None));
    }
    let left = folder.left;
    let opened = open_left(folder, shadow, left);
    // Not as it was left, which may be a copy that was taken at a bad moment: then the log is needed after all.
    if opened.is_err() && left.shed_at().is_some() { open_left(folder, shadow, LastExit::Unknown) } else { opened }
}

fn open_left(
    folder: &mut Folder,
    shadow: Option<&Shadow>,
    left: LastExit,
) -> Result<(Tables, HeadFile, u64), OpenError> {
    let found = engine_files::prepare(folder.path(), &folder.journal(), folder.format, left);
    let found = found.map_err(|fault| match fault {
        EngineFault::Io(error) => folder.unusable(error),
        EngineFault::Damaged(reason) => folder.damaged(reason, None),
    })?;
    let opened = open_compared(folder).and_then(|opened| match left {
        LastExit::Shed { tables, .. } if opened.0.written().iter().zip(tables).any(|(now, then)| *now < then) => {
            Err(folder.damaged("its tables are not those that it was left with", None))
        }
        LastExit::Shed { .. } | LastExit::Closed | LastExit::Unknown => Ok(opened),
    });
    match opened {
        Ok((tables, file, group)) => {
            if let Some(kept) =
                found.map(FoundLog::settle).transpose().map_err(|error| folder.unusable(error))?.flatten()
            {
                let kept = shadow.map_or_else(|| kept.clone(), |shadow| shadow.kept_in_original(&kept));
                tracing::error!(kept = %kept.display(), "the end of the log was rubbish and is cut off");
            }
            Ok((tables, file, group))
        }
        Err(error) => {
            if let Some(found) = found {
                found.put_back().map_err(|error| folder.unusable(error))?;
            }
            Err(error)
        }
    }
}

fn open_compared(folder: &mut Folder) -> Result<(Tables, HeadFile, u64), OpenError> {
    let tables = Tables::open(&folder.journal()).map_err(|error| match &error {
        OpenRefused::Failed(cause) => match io_error(cause) {
            None | Some(ErrorKind::NotFound | ErrorKind::InvalidData | ErrorKind::UnexpectedEof) => {
                folder.damaged(error.to_string(), None)
            }
            Some(kind) => folder.unusable(std::io::Error::new(kind, error.to_string())),
        },
        OpenRefused::Panicked => folder.damaged(error.to_string(), None),
    })?;
    if folder.format == 1 {
        upgrade::log_from_chain(folder, &tables)?;
    }
    let group = compare(folder, &tables)?;
    let head = HeadFile::open(folder.path()).map_err(|error| folder.unusable(error))?;
    Ok((tables, head, group))
}

/// Whether the journal has everything that was acknowledged, and nothing that was not written by us.
fn compare(folder: &Folder, tables: &Tables) -> Result<u64, OpenError> {
    let known = head::read(folder.path()).map_err(|error| folder.unusable(error))?;
    let Some(known) = known else { return Err(folder.damaged("the log's head cannot be read", None)) };
    let reader = tables.read();
    let damaged = |error: JournalError| folder.damaged(error.to_string(), None);
    let (group, size) = (log::group(&reader).map_err(damaged)?, log::size(&reader).map_err(damaged)?);
    let missing = |reason: String| Err(folder.damaged(reason, None));
    if group < known.group {
        let lost = known.group - group;
        return missing(format!("{lost} of {} groups of commits that were on disk are missing", known.group));
    }
    if group > known.group + 1 {
        return missing(format!("the log's head is older than the journal: {} of {group} groups", known.group));
    }
    if size < known.size {
        return missing(format!("{} of {} entries of the log are missing", known.size - size, known.size));
    }
    if log::root(&reader, known.size).map_err(damaged)? != known.root {
        return missing(format!("the first {} entries of the log are not those that were written", known.size));
    }
    // What lies behind the head was never acknowledged, so it was not compared with anything before.
    for number in known.size..size {
        check::entry(&reader, number).map_err(damaged)?;
    }
    Ok(group)
}

type OpenTurns = (BTreeMap<TurnKey, Turn>, usize, Option<Timestamp>);

/// The open turns as the journal has them, how many runs they belong to, and when the first of these began.
fn open_turns(tables: &Tables) -> Result<OpenTurns, JournalError> {
    let mut turns = BTreeMap::new();
    let reader = tables.read();
    for row in reader.index_prefix(&[prefix::TURN]) {
        let (key, value) = row.into_inner().map_err(read_failed)?;
        let damaged = || JournalError::Damaged("an open turn cannot be read".to_owned());
        let key = keys::read_turn(&key).ok_or_else(damaged)?;
        let turn: Turn = serde_json::from_slice(&value).map_err(|_| damaged())?;
        let turn = recovery::found(tables, &key, turn);
        turns.insert(key, turn);
    }
    let runs: HashSet<_> = turns.keys().map(|turn| (turn.scope.workspace.clone(), turn.run.clone())).collect();
    let (mut open, mut oldest) = (0, None);
    for (workspace, run) in &runs {
        if let Some(summary) = reader.run(workspace, run)?.filter(|summary| !summary.state.is_end()) {
            open += 1;
            oldest = Some(oldest.map_or(summary.started, |oldest: Timestamp| oldest.min(summary.started)));
        }
    }
    Ok((turns, open, oldest))
}
