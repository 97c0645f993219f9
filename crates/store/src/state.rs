//! What readers see of the journal without touching the disk: open turns and recent sessions.

use crate::cache::Cache;
use crate::served::Served;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::{Notify, watch};
use trellis_domain::record::Record;
use trellis_domain::{RunId, SessionId, Timestamp, Workspace};
use trellis_orchestrator::ports::{ClaimId, Committed, Cut, JournalError, OpenTurn, SessionLog, TurnKey};

/// The records of recent sessions take at most about twice this many bytes.
const CACHED_RECORDS: usize = 2 << 20;

/// An open turn as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) due: Option<Timestamp>,
    pub(crate) root: bool,
    /// How often it was begun after it was found on disk.
    pub(crate) begun: u32,
    /// At how many crashes it was in hand and had brought nothing, since the last at which it was kept back.
    #[serde(default)]
    pub(crate) cut: u32,
    /// How often of these it was the only suspect in hand.
    #[serde(default)]
    pub(crate) alone: u32,
    /// It is in hand, since the session had this version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) in_hand: Option<u64>,
    /// It is suspected, and how it is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trial: Option<TrialStanding>,
    /// Found on disk: an earlier process may have begun it.
    #[serde(skip)]
    pub(crate) recovered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TrialStanding {
    /// Not begun before others were served.
    KeptBack,
    Alone,
}

impl Turn {
    pub(crate) fn fresh(turn: &OpenTurn) -> Self {
        let (due, root) = (turn.due, turn.root);
        Self { due, root, begun: 0, cut: 0, alone: 0, in_hand: None, trial: None, recovered: false }
    }

    fn to_open(&self, key: &TurnKey) -> OpenTurn {
        let cut = Cut { times: self.cut, alone: self.alone };
        OpenTurn { key: key.clone(), due: self.due, root: self.root, begun: self.begun, cut }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a turn is always JSON")
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    turns: Mutex<BTreeMap<TurnKey, Turn>>,
    /// Who handles which turn. One process has the folder, so claims live as long as it does.
    claims: Mutex<HashMap<TurnKey, ClaimId>>,
    sessions: Mutex<Sessions>,
    open_runs: AtomicUsize,
    served: Mutex<Served>,
    /// Somebody is suspected: every beginning is written down.
    watchful: AtomicBool,
    /// Told whenever a run that has ended is to be read, be it again.
    pub(crate) finished: Notify,
    /// Why nothing can be written any more.
    failed: watch::Sender<Option<JournalError>>,
}

type Sessions = Cache<(Workspace, SessionId), Recent>;

/// A session since its first record.
#[derive(Debug, Default)]
struct Recent {
    log: SessionLog,
    /// Its run has other sessions, too.
    has_subagents: bool,
}

/// Adds a record to a cached session, or begins one. A session that is not cached stays on disk.
fn append(sessions: &mut Sessions, workspace: &Workspace, record: &Arc<Record>, size: usize) {
    let header = &record.header;
    if header.session != header.run
        && let Some(root) = sessions.get(&(workspace.clone(), header.run.clone()))
    {
        root.has_subagents = true;
    }
    let place = (workspace.clone(), header.session.clone());
    let known = sessions.remove_with_weight(&place);
    let first = header.version == 1 && known.is_none();
    if let Some((mut recent, weight)) = known.or(first.then(Default::default)) {
        recent.log.version = header.version;
        recent.log.records.push(Arc::clone(record));
        sessions.put(place, recent, weight + size);
    }
}

impl Shared {
    pub(crate) fn new(turns: BTreeMap<TurnKey, Turn>, open_runs: usize, served: Served) -> Self {
        Self {
            served: Mutex::new(served),
            watchful: AtomicBool::new(turns.values().any(|turn| turn.cut > 0)),
            turns: Mutex::new(turns),
            claims: Mutex::default(),
            sessions: Mutex::new(Cache::new(CACHED_RECORDS)),
            open_runs: AtomicUsize::new(open_runs),
            finished: Notify::new(),
            failed: watch::Sender::new(None),
        }
    }

    pub(crate) fn fail(&self, error: JournalError) {
        self.failed.send_replace(Some(error));
    }

    pub(crate) fn failures(&self) -> watch::Receiver<Option<JournalError>> {
        self.failed.subscribe()
    }

    /// Forgets what is cached of sessions: their rows have changed.
    pub(crate) fn forget(&self, places: &[(Workspace, SessionId)]) {
        let mut sessions = self.sessions.lock();
        for place in places {
            sessions.remove_with_weight(place);
        }
    }

    pub(crate) fn turns(&self) -> MutexGuard<'_, BTreeMap<TurnKey, Turn>> {
        self.turns.lock()
    }

    /// Who handles which turn. Locked after the turns, where both are.
    pub(crate) fn claims(&self) -> MutexGuard<'_, HashMap<TurnKey, ClaimId>> {
        self.claims.lock()
    }

    pub(crate) fn served(&self) -> MutexGuard<'_, Served> {
        self.served.lock()
    }

    pub(crate) fn is_watchful(&self) -> bool {
        self.watchful.load(Ordering::Relaxed)
    }

    pub(crate) fn watch(&self, watchful: bool) {
        self.watchful.store(watchful, Ordering::Relaxed);
    }

    /// Turns are set aside, and with them the whole run if it was open.
    pub(crate) fn set_aside(&self, turns: &[TurnKey], ended: bool) {
        self.turns().retain(|turn, _| !turns.contains(turn));
        self.open_runs.fetch_sub(usize::from(ended), Ordering::Relaxed);
    }

    pub(crate) fn open_runs(&self) -> usize {
        self.open_runs.load(Ordering::Relaxed)
    }

    /// A page of the turns that are due and that nobody has claimed.
    pub(crate) fn due(&self, until: Timestamp, after: Option<&TurnKey>, limit: usize) -> Vec<OpenTurn> {
        let (turns, claims) = (self.turns(), self.claims());
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        let open = turns.range::<TurnKey, _>((behind, Bound::Unbounded));
        let due = open.filter(|(key, turn)| turn.due.is_none_or(|due| due <= until) && !claims.contains_key(key));
        due.take(limit).map(|(key, turn)| turn.to_open(key)).collect()
    }

    pub(crate) fn turns_of(&self, workspace: &Workspace, run: &RunId) -> Vec<OpenTurn> {
        let turns = self.turns();
        let of_run = turns.iter().filter(|(key, _)| key.run == *run && key.scope.workspace == *workspace);
        of_run.map(|(key, turn)| turn.to_open(key)).collect()
    }

    /// A durable commit becomes visible.
    pub(crate) fn publish(
        &self,
        workspace: &Workspace,
        committed: &Committed,
        sizes: &[usize],
        closed: &[TurnKey],
        began: bool,
        ended: bool,
    ) {
        // Records first and all at once: whoever finds a turn must find what it was opened by.
        {
            let mut sessions = self.sessions.lock();
            for (record, size) in committed.records.iter().zip(sizes) {
                append(&mut sessions, workspace, record, *size);
            }
        }
        {
            let mut turns = self.turns();
            for turn in closed {
                turns.remove(turn);
            }
            for turn in &committed.opened {
                turns.insert(turn.key.clone(), Turn::fresh(turn));
            }
        }
        if began {
            self.open_runs.fetch_add(1, Ordering::Relaxed);
        }
        if ended {
            self.open_runs.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Looks at a cached session where it is. None if it is not cached.
    pub(crate) fn look<T>(&self, place: &(Workspace, SessionId), look: impl FnOnce(&SessionLog) -> T) -> Option<T> {
        self.sessions.lock().get(place).map(|recent| look(&recent.log))
    }

    /// The records of a run after that sequence number, if all that it has are its root's and they are cached.
    pub(crate) fn events(&self, root: &(Workspace, SessionId), after: u64, limit: usize) -> Option<Vec<Arc<Record>>> {
        let mut sessions = self.sessions.lock();
        let recent = sessions.get(root).filter(|recent| !recent.has_subagents)?;
        let records = &recent.log.records;
        let later = &records[records.partition_point(|record| record.header.seq <= after)..];
        Some(later.iter().take(limit).cloned().collect())
    }

    pub(crate) fn cached(&self, place: &(Workspace, SessionId)) -> Option<SessionLog> {
        self.sessions.lock().get(place).map(|recent| recent.log.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_domain::record::{Body, FORMAT, Header, Name};
    use trellis_domain::{Flow, Hash, Scope};
    use trellis_patterns::react::IterationNames;

    fn committed(n: u64) -> Committed {
        let session = SessionId::new(&format!("s{n}")).unwrap();
        let header = |place: u64| Header {
            format: FORMAT,
            workspace: Workspace::default(),
            flow: Flow::default(),
            run: session.clone(),
            session: session.clone(),
            name: Name::new(format!("r{place}")),
            seq: place,
            version: 1,
            causes: Vec::new(),
            parents: Vec::new(),
            content: Hash::ZERO,
            config: Hash::ZERO,
            attempt: 1,
            late: false,
            trace: None,
            time: Timestamp::from_micros(0),
        };
        let body: Body = serde_json::from_str(r#"{"event": "observed", "ms": 0}"#).unwrap();
        let record = |place| Arc::new(Record { header: header(place), body: body.clone() });
        let (run, own) = (RunId::clone(&session), session.clone());
        let key = TurnKey { scope: Scope::default(), run, session: own, name: Name::iteration(1) };
        let opened = vec![OpenTurn::new(key, None, false)];
        Committed { version: 1, records: (1..=20).map(record).collect(), opened }
    }

    #[test]
    fn whoever_finds_a_turn_finds_all_that_it_was_opened_by() {
        let served = Served::new(Timestamp::from_micros(0), None);
        let shared = Arc::new(Shared::new(BTreeMap::new(), 0, served));
        let reader = Arc::clone(&shared);
        let reading = std::thread::spawn(move || {
            let mut checked = 0;
            while checked < 500 {
                let due = reader.due(Timestamp::from_micros(1), None, 9);
                for turn in &due {
                    let place = (Workspace::default(), turn.key.session.clone());
                    let records = reader.look(&place, |log| log.records.len());
                    assert_eq!(records, Some(20), "{}", turn.key.session);
                    reader.turns().remove(&turn.key);
                    checked += 1;
                }
            }
        });
        for n in 0..500 {
            shared.publish(&Workspace::default(), &committed(n), &[1; 20], &[], false, false);
        }
        reading.join().expect("a turn is never seen before its records");
    }
}
