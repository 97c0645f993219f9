//! Opening and closing a data folder.

use crate::chain;
use crate::committer::Committer;
use crate::config::EmbeddedConfig;
use crate::folder::{Folder, HighWater, Holder, Mark, OpenError};
use crate::graph::EmbeddedGraph;
use crate::journal::EmbeddedJournal;
use crate::keys::{self, prefix};
use crate::library::EmbeddedLibrary;
use crate::recovery::{self, AsideTurn};
use crate::request::Request;
use crate::rescue::{Rescue, sync_folder};
use crate::service::Served;
use crate::state::{Shared, Turn};
use crate::tables::{Refusal, Tables, catching_panics, read_failed};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use trellis_domain::Timestamp;
use trellis_orchestrator::ports::{JournalError, TurnKey, World};

/// The embedded engine: one folder, owned by one process.
#[derive(Debug)]
pub struct Store {
    pub journal: Arc<EmbeddedJournal>,
    pub config: Arc<EmbeddedConfig>,
    pub library: Arc<EmbeddedLibrary>,
    pub graph: Arc<EmbeddedGraph>,
    committer: Option<JoinHandle<()>>,
    /// Dropped last: until then the folder is ours.
    folder: Folder,
}

impl Store {
    /// Takes the folder, checks that nothing acknowledged is missing, and starts the committer.
    pub fn open(path: &Path, holder: &Holder, world: Arc<dyn World>) -> Result<Self, OpenError> {
        let folder = Folder::take(path, holder)?;
        let (high_water, known) = HighWater::open(&folder).map_err(|error| folder.unusable(error))?;
        let rescue = Rescue::copy(path, &folder.journal()).map_err(|error| folder.unusable(error))?;
        let (tables, mark) = open_rescued(&folder, known, rescue)?;
        let damaged = |error: JournalError| folder.damaged(error.to_string(), None);
        let prepared = crate::upgrade::list_conversations(&tables);
        prepared.and_then(|()| crate::library::drop_abandoned(&tables, world.now())).map_err(|error| match error {
            JournalError::Write(reason) => folder.unusable(reason),
            error @ (JournalError::Read(_) | JournalError::Damaged(_) | JournalError::Closed) => damaged(error),
        })?;
        let (turns, open_runs, oldest) = open_turns(&tables).map_err(damaged)?;
        let served = Served::read(&tables, world.now(), oldest).map_err(damaged)?;
        let shared = Arc::new(Shared::new(turns, open_runs, served));
        let (requests, inbox) = mpsc::channel();
        let committer = Committer::new(tables.clone(), Arc::clone(&shared), high_water, mark);
        let thread = std::thread::Builder::new().name("committer".to_owned());
        let committer = thread.spawn(move || committer.run(&inbox)).map_err(|error| folder.unusable(error))?;
        let journal = EmbeddedJournal { tables, shared, requests };
        let graph = open_graph(&folder, &journal)?;
        Ok(Self {
            config: Arc::new(EmbeddedConfig::new(journal.clone(), Arc::clone(&world))),
            library: Arc::new(EmbeddedLibrary::new(journal.clone(), world)),
            journal: Arc::new(journal),
            graph: Arc::new(graph),
            committer: Some(committer),
            folder,
        })
    }

    /// Recomputes the whole hash chain. The number of commits, or what is wrong.
    pub fn check(&self) -> Result<u64, JournalError> {
        chain::check_from(&self.journal.tables, Mark::START).map(|mark| mark.number)
    }

    /// Turns that were set aside, because what their session has recorded cannot be read.
    pub fn set_aside(&self) -> Result<Vec<AsideTurn>, JournalError> {
        recovery::all_aside(&self.journal.tables)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // A committer that is gone already has nothing left to write.
        drop(self.journal.requests.send(Request::Stop));
        if let Some(thread) = self.committer.take()
            && thread.join().is_err()
        {
            tracing::error!("the committer failed while closing");
        }
    }
}

enum Fault {
    Unusable(String),
    /// The engine refuses the log.
    Refused(String),
    /// The log can be read, but something that was acknowledged is not in it.
    Missing(String),
}

/// Opens the graph's view. It is derived, so a damaged one is removed and derived anew.
fn open_graph(folder: &Folder, journal: &EmbeddedJournal) -> Result<EmbeddedGraph, OpenError> {
    let reason = match catching_panics(|| EmbeddedGraph::open(&folder.view(), journal.clone())) {
        Some(Ok(graph)) => return Ok(graph),
        Some(Err(error)) => error.to_string(),
        None => Refusal::Panicked.to_string(),
    };
    tracing::error!(reason, "the graph view cannot be opened; it is derived anew");
    let view = folder.view();
    let removed = if view.is_dir() { std::fs::remove_dir_all(&view) } else { std::fs::remove_file(&view) };
    removed.map_err(|error| folder.unusable(error))?;
    EmbeddedGraph::open(&folder.view(), journal.clone()).map_err(|error| folder.unusable(error))
}

/// Creates the journal beside its place and moves it there whole: a process that dies in between leaves
/// nothing that looks like a journal.
fn create_journal(folder: &Folder) -> Result<(), String> {
    let (journal, scratch) = (folder.journal(), folder.path().join("journal.new"));
    if journal.exists() {
        return Ok(());
    }
    let text = |error: std::io::Error| error.to_string();
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch).map_err(text)?;
    }
    let tables = Tables::open(&scratch).map_err(|error| error.to_string())?;
    tables.persist().map_err(|error| error.to_string())?;
    drop(tables);
    std::fs::rename(scratch, journal).map_err(text)?;
    // Before anything is committed: after a power cut it must not be found under its first name and removed.
    sync_folder(folder.path()).map_err(text)
}

/// Whether the operating system refused something: no fault of the log.
fn is_io(error: &fjall::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<std::io::Error>() {
            return true;
        }
        cause = error.source();
    }
    matches!(error, fjall::Error::Io(_)) || format!("{error:?}").contains("Io(")
}

/// Opens the journal. If its log is refused, a torn tail is cut off; if anything acknowledged would be lost by
/// that, the log is put back as it was found.
fn open_rescued(folder: &Folder, known: Option<Mark>, rescue: Rescue) -> Result<(Tables, Mark), OpenError> {
    let io = |error: std::io::Error| folder.unusable(error);
    let reason = match open_checked(folder, known) {
        Ok(opened) => {
            rescue.discard().map_err(io)?;
            return Ok(opened);
        }
        Err(Fault::Unusable(reason)) => return Err(folder.unusable(reason)),
        Err(Fault::Missing(reason)) => reason,
        Err(Fault::Refused(reason)) => {
            let opens = || Tables::open(&folder.journal()).is_ok();
            if rescue.cut_torn_tail(&folder.journal(), opens).map_err(io)?
                && let Ok(opened) = open_checked(folder, known)
            {
                let kept = rescue.set_aside().map_err(io)?;
                tracing::error!(kept = %kept.display(), "an unacknowledged tail of the log was torn and is cut off");
                return Ok(opened);
            }
            reason
        }
    };
    let kept = rescue.keep(&folder.journal()).ok();
    Err(folder.damaged(reason, kept))
}

/// Opens the journal and compares it with the high-water mark before anything is trusted.
fn open_checked(folder: &Folder, known: Option<Mark>) -> Result<(Tables, Mark), Fault> {
    create_journal(folder).map_err(Fault::Unusable)?;
    let tables = Tables::open(&folder.journal()).map_err(|error| {
        let reason = error.to_string();
        match error {
            Refusal::Panicked | Refusal::Failed(fjall::Error::JournalRecovery(_)) => Fault::Refused(reason),
            Refusal::Failed(error) if is_io(&error) => Fault::Unusable(reason),
            Refusal::Failed(_) => Fault::Missing(reason),
        }
    })?;
    let broken = |error: JournalError| Fault::Missing(error.to_string());
    let newest = chain::newest(&tables).map_err(broken)?;
    let known = known.unwrap_or_else(|| {
        if newest.number > 0 {
            tracing::warn!(
                "there is no high-water mark: everything is checked, but a log cut off at its end looks whole"
            );
        }
        Mark::START
    });
    if newest.number < known.number {
        let lost = known.number - newest.number;
        return Err(Fault::Missing(format!(
            "{lost} of {} commits that were on disk are missing from the log",
            known.number
        )));
    }
    if chain::at(&tables, known.number).map_err(broken)? != Some(known) {
        return Err(Fault::Missing(format!("commit {} is not the one that was written", known.number)));
    }
    let checked = chain::check_from(&tables, known).map_err(broken)?;
    Ok((tables, checked))
}

type OpenTurns = (HashMap<TurnKey, Turn>, usize, Option<Timestamp>);

/// The open turns as the journal has them, how many runs they belong to, and when the first of these began.
fn open_turns(tables: &Tables) -> Result<OpenTurns, JournalError> {
    let mut turns = HashMap::new();
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
