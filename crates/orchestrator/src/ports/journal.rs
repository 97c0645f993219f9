//! The journal: records, open turns, runs. Its commit contract is the heart of the system.

use super::BoxFuture;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::outage::Outages;
use trellis_domain::record::{Body, Cause, Name, Record};
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::{ConversationId, Hash, PatternName, RunId, Scope, SessionId, TaskTypeName, Timestamp, Workspace};
use trellis_patterns::Session;
use utoipa::ToSchema;

/// Names one turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TurnKey {
    pub scope: Scope,
    pub run: RunId,
    pub session: SessionId,
    pub name: Name,
}

/// A turn that waits to be handled. The journal is the set of them; their order lives in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTurn {
    pub key: TurnKey,
    /// Not before this time.
    pub due: Option<Timestamp>,
    /// The first turn of a run; others go before it.
    pub root: bool,
    /// How often it is known to have been begun and cut short.
    pub begun: u32,
    pub cut: Cut,
}

impl OpenTurn {
    /// One that nobody has begun yet.
    pub fn new(key: TurnKey, due: Option<Timestamp>, root: bool) -> Self {
        Self { key, due, root, begun: 0, cut: Cut::default() }
    }
}

/// At how many crashes a turn was in hand and had brought nothing since it was begun, without one in between at which it
/// was kept back. One that was is a suspect: it is tried apart from the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cut {
    pub times: u32,
    /// How often of these it was the only suspect in hand.
    pub alone: u32,
}

/// Tells one attempt to handle a turn from all others, of this process or of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClaimId {
    pub process: u64,
    pub number: u64,
}

/// The right to handle a turn. Whoever claims chooses the id, so that a claim whose answer was lost can be given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub turn: TurnKey,
    pub id: ClaimId,
}

/// What came of claiming a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claiming {
    Claimed {
        /// How often it has been begun, this time included.
        begun: u32,
        /// Whether the claim has to be renewed.
        expires: bool,
    },
    /// By somebody else.
    Held,
    /// The turn is not open.
    Closed,
}

/// A session that cannot be ended by a commit, because what it has recorded cannot be read.
#[derive(Debug, Clone)]
pub struct SetAside {
    pub workspace: Workspace,
    pub run: RunId,
    /// If it is the root, the whole run is set aside.
    pub session: SessionId,
    pub reason: String,
    /// How the run counts as ended, if it is the whole.
    pub state: RunState,
    pub time: Timestamp,
}

/// When the store was served, before and since it was opened.
#[derive(Debug, Clone, Default)]
pub struct Service {
    /// When it was not, as far as that still matters to an open run.
    pub outages: Arc<Outages>,
    /// For how long the process before this one served, since it last began to try suspects.
    pub before_ms: u64,
}

/// What is to be committed, all or nothing.
#[derive(Debug, Clone)]
pub struct Commit {
    pub scope: Scope,
    pub run: RunId,
    pub session: SessionId,
    /// The session's version that was decided from.
    pub seen: u64,
    /// The versions of other sessions that something was decided from, such as the end of one that is wound up.
    pub seen_of_others: Vec<(SessionId, u64)>,
    pub records: Vec<NewRecord>,
    /// Turns of the session. The first must be open; the others are closed along with it if they are.
    pub close: Vec<Name>,
    pub open: Vec<NewTurn>,
}

#[derive(Debug, Clone)]
pub struct NewRecord {
    pub session: SessionId,
    pub name: Name,
    pub causes: Vec<Cause>,
    pub config: Hash,
    pub attempt: u32,
    pub time: Timestamp,
    pub body: Body,
}

#[derive(Debug, Clone)]
pub struct NewTurn {
    pub session: SessionId,
    pub name: Name,
    pub due: Option<Timestamp>,
}

/// Conflict is an answer, not an error: reload and decide again.
#[derive(Debug)]
pub enum Outcome {
    Committed(Committed),
    Conflict,
}

#[derive(Debug)]
pub struct Committed {
    /// The session's version now. If it is not one above what was seen, other records lie between.
    pub version: u64,
    pub records: Vec<Arc<Record>>,
    pub opened: Vec<OpenTurn>,
}

/// The records of a session, in the order of commits.
#[derive(Debug, Clone, Default)]
pub struct SessionLog {
    pub version: u64,
    pub records: Vec<Arc<Record>>,
    pub kept: KeptSession,
}

/// Room for the session that was folded from these records, so that its next turn folds only what is new. A journal keeps
/// it with the records that it has in memory, and lets it go with them.
#[derive(Debug, Clone, Default)]
pub struct KeptSession(Arc<Mutex<Option<Session>>>);

impl KeptSession {
    /// The session of a turn that has ended, if nobody else goes on from it.
    pub(crate) fn take(&self) -> Option<Session> {
        self.0.lock().take()
    }

    pub(crate) fn put(&self, session: Session) {
        *self.0.lock() = Some(session);
    }
}

#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    pub state: Option<RunState>,
    pub pattern: Option<PatternName>,
    pub task_type: Option<TaskTypeName>,
    pub conversation: Option<ConversationId>,
    /// Only what began then or later.
    pub since: Option<Timestamp>,
    /// Part of the question, case-insensitive.
    pub search: Option<String>,
    /// What workers have in hand is running, even if nothing of it is recorded yet.
    pub in_hand: HashSet<RunId>,
}

impl RunFilter {
    /// Where a run stands, seen from here.
    pub fn state_of(&self, run: &RunSummary) -> RunState {
        let begun = run.state == RunState::Queued && self.in_hand.contains(&run.run);
        if begun { RunState::Running } else { run.state }
    }

    pub fn matches(&self, run: &RunSummary) -> bool {
        self.state.is_none_or(|state| self.state_of(run) == state)
            && self.pattern.as_ref().is_none_or(|pattern| run.pattern.as_ref() == Some(pattern))
            && self.task_type.as_ref().is_none_or(|task_type| run.task_type.as_ref() == Some(task_type))
            && self.since.is_none_or(|since| run.started >= since)
            && self.conversation.as_ref().is_none_or(|id| run.conversation.as_ref() == Some(id))
            && self.search.as_ref().is_none_or(|text| run.question.to_lowercase().contains(&text.to_lowercase()))
    }
}

/// Runs, newest first, and where to go on. A page may be short although there is more: looking for what is rare is done
/// in portions.
#[derive(Debug, Clone, Default)]
pub struct RunPage {
    pub runs: Vec<RunSummary>,
    pub next: Option<String>,
    /// Runs in between that cannot be read.
    pub unreadable: Vec<UnreadableRun>,
}

/// A run that is known and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnreadableRun {
    #[serde(rename = "run_id")]
    #[schema(value_type = String)]
    pub run: RunId,
    pub reason: String,
}

/// The store failed. What was committed before is safe; nothing of the failed commit counts.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JournalError {
    /// It is unknown what is stored now, so nobody goes on.
    #[error("cannot write to the store: {0}; nothing committed is lost")]
    Write(String),
    #[error("cannot read from the store: {0}")]
    Read(String),
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// Whether the call took effect is unknown. Every call can be repeated.
    #[error("the store cannot be reached: {0}")]
    Unavailable(String),
    #[error("the store is closed")]
    Closed,
}

impl JournalError {
    /// What was asked for cannot be read; everything else can.
    pub fn is_unreadable(&self) -> bool {
        match self {
            Self::Read(_) | Self::Damaged(_) => true,
            Self::Write(_) | Self::Unavailable(_) | Self::Closed => false,
        }
    }

    pub fn disposition(&self) -> Disposition {
        match self {
            Self::Read(_) | Self::Unavailable(_) => Disposition::Retry,
            Self::Damaged(_) => Disposition::SetAside,
            Self::Write(_) | Self::Closed => Disposition::Stop,
        }
    }
}

/// What happens to the work that an error interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// The same may succeed later.
    Retry,
    /// The run ends with the error as its reason.
    FailRun,
    /// The session can neither go on nor be ended by a commit: its turns are closed and the reason is kept.
    SetAside,
    /// The process stops: it must not go on.
    Stop,
}

/// Records and open turns under the commit contract:
///
/// - a commit is all or nothing, and durable when it returns;
/// - a record's name must be free; what was decided from a state (close, open, end) needs `seen` to be
///   the session's newest version;
/// - an ended session opens nothing more of its own; outcomes that still arrive are marked late.
pub trait Journal: Send + Sync + std::fmt::Debug {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, JournalError>>;

    fn load<'a>(
        &'a self,
        workspace: &'a Workspace,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionLog>, JournalError>>;

    /// The record of a session's end, if it has ended. A look-up, however much is stored.
    fn end<'a>(
        &'a self,
        workspace: &'a Workspace,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<Record>>, JournalError>>;

    fn is_open<'a>(&'a self, turn: &'a TurnKey) -> BoxFuture<'a, Result<bool, JournalError>>;

    /// Claims a turn for so long by the store's clock. A store that only one process can open may let claims live as
    /// long as the process.
    fn claim<'a>(&'a self, claim: &'a Claim, life: Duration) -> BoxFuture<'a, Result<Claiming, JournalError>>;

    /// Extends a claim to so long from now. False if it is lost: it had expired and is somebody else's, or the turn is
    /// closed.
    fn renew<'a>(&'a self, claim: &'a Claim, life: Duration) -> BoxFuture<'a, Result<bool, JournalError>>;

    /// Gives a turn back unharmed: this beginning does not count. Does nothing if the claim is not held.
    fn give_back<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), JournalError>>;

    /// The runs of a workspace of which a turn is claimed, in whatever process.
    fn in_hand<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<HashSet<RunId>, JournalError>>;

    /// Turns that are suspected are kept back: a process that dies before it begins them did not die of them.
    fn keep_back<'a>(&'a self, turns: &'a [TurnKey]) -> BoxFuture<'a, Result<(), JournalError>>;

    /// These suspects are begun next, and no others.
    fn begin_trial<'a>(&'a self, turns: &'a [TurnKey], now: Timestamp) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Turns that were suspected were tried, and the process has lived: nothing is held against them any more.
    fn acquit<'a>(&'a self, turns: &'a [TurnKey]) -> BoxFuture<'a, Result<(), JournalError>>;

    /// Closes the turns of a session that cannot be read, and keeps the reason.
    fn set_aside(&self, aside: SetAside) -> BoxFuture<'_, Result<(), JournalError>>;

    /// Somebody serves the store at this time. The first sign after it was opened ends the time in which nobody did, and
    /// moves what is delayed by so much.
    fn sign_of_life(&self, now: Timestamp) -> BoxFuture<'_, Result<(), JournalError>>;

    fn service(&self) -> Service;

    /// A page of the open turns that are due at that time and that nobody has claimed, in the order of their keys. One
    /// that is not full is the last; the next one begins behind the last key.
    fn due_turns<'a>(
        &'a self,
        until: Timestamp,
        after: Option<&'a TurnKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<OpenTurn>, JournalError>>;

    /// All open turns of a run, claimed or not, due or not.
    fn turns_of<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<OpenTurn>, JournalError>>;

    /// How many runs have no end yet.
    fn open_runs(&self) -> BoxFuture<'_, Result<usize, JournalError>>;

    fn run<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<RunSummary>, JournalError>>;

    /// Runs of a workspace, newest first.
    fn runs<'a>(
        &'a self,
        workspace: &'a Workspace,
        filter: &'a RunFilter,
        cursor: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<RunPage, JournalError>>;

    /// Ids of runs that begin so, sorted.
    fn with_prefix<'a>(
        &'a self,
        workspace: &'a Workspace,
        start: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, JournalError>>;

    /// The records of a run after that sequence number, in order.
    fn events<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>>;
}

/// All open turns that are due at that time and that nobody has claimed, page by page.
pub async fn all_due_turns(journal: &dyn Journal, until: Timestamp) -> Result<Vec<OpenTurn>, JournalError> {
    const PAGE: usize = 1_000;
    let mut all: Vec<OpenTurn> = Vec::new();
    loop {
        let page = journal.due_turns(until, all.last().map(|turn| &turn.key), PAGE).await?;
        let last = page.len() < PAGE;
        all.extend(page);
        if last {
            return Ok(all);
        }
    }
}
