//! What really happened, in one order: what was recorded, what was called, what was promised to whom.

use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::record::{Name, Record};
use trellis_domain::{Hash, RunId, SessionId, Workspace};

/// One record, or the call that leads to one.
pub(crate) type CallPlace = (Workspace, SessionId, Name);

#[derive(Debug, Default)]
pub struct Seen {
    /// Counts everything that is seen.
    order: u64,
    pub recorded: BTreeMap<CallPlace, Recorded>,
    /// Records that a worker was told are committed.
    pub promised: Vec<(CallPlace, Hash)>,
    pub calls: Vec<EffectCall>,
    /// The version of a session that a process has read last, and when.
    loaded: BTreeMap<(usize, Workspace, SessionId), (u64, u64)>,
    drawn: u64,
    /// How often something happened that is worth telling.
    pub counts: BTreeMap<&'static str, u64>,
    /// How often a worker was about to record the end of a run.
    pub ends_tried: BTreeMap<(Workspace, RunId), u32>,
}

#[derive(Debug, Clone, Copy)]
pub struct Recorded {
    pub order: u64,
    pub content: Hash,
    pub version: u64,
    /// Since the world began.
    pub passed: Duration,
}

/// A model was asked, or a tool was called.
#[derive(Debug)]
pub struct EffectCall {
    pub order: u64,
    pub process: usize,
    pub place: CallPlace,
    /// The session's version that its process had read.
    pub loaded: u64,
    /// Everything it was called with.
    pub text: String,
    pub is_of_tool: bool,
}

impl Seen {
    fn next(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    fn loaded(&self, process: usize, workspace: &Workspace, session: &SessionId) -> (u64, u64) {
        self.loaded.get(&(process, workspace.clone(), session.clone())).copied().unwrap_or_default()
    }

    /// When a process has read a session last.
    pub(crate) fn loaded_at(&self, process: usize, workspace: &Workspace, session: &SessionId) -> u64 {
        self.loaded(process, workspace, session).1
    }

    /// A number that comes once.
    pub(crate) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }
}

#[derive(Debug, Default)]
pub(crate) struct Recorder(Mutex<Seen>);

pub(crate) fn place(record: &Record) -> CallPlace {
    let header = &record.header;
    (header.workspace.clone(), header.session.clone(), header.name.clone())
}

impl Recorder {
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock()
    }

    pub(crate) fn committed(&self, records: &[Arc<Record>], passed: Duration) {
        let mut seen = self.seen();
        for record in records {
            let (order, header) = (seen.next(), &record.header);
            let recorded = Recorded { order, content: header.content, version: header.version, passed };
            seen.recorded.insert(place(record), recorded);
        }
    }

    pub(crate) fn promised(&self, records: &[Arc<Record>]) {
        let promised = records.iter().map(|record| (place(record), record.header.content));
        self.seen().promised.extend(promised);
    }

    pub(crate) fn loaded(&self, process: usize, workspace: &Workspace, session: &SessionId, version: u64) {
        let mut seen = self.seen();
        let order = seen.next();
        seen.loaded.insert((process, workspace.clone(), session.clone()), (version, order));
    }

    pub(crate) fn called(&self, process: usize, place: CallPlace, text: String, is_of_tool: bool) {
        let mut seen = self.seen();
        let (order, (loaded, _)) = (seen.next(), seen.loaded(process, &place.0, &place.1));
        seen.calls.push(EffectCall { order, process, place, loaded, text, is_of_tool });
    }

    pub(crate) fn count(&self, what: &'static str) {
        *self.seen().counts.entry(what).or_default() += 1;
    }

    pub(crate) fn ends(&self, workspace: &Workspace, run: &RunId) {
        *self.seen().ends_tried.entry((workspace.clone(), run.clone())).or_default() += 1;
    }
}
