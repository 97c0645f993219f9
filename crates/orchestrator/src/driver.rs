//! The handling of one turn: fold the records, decide, perform what is due, commit each outcome.

use crate::hub::Hub;
use crate::perform::outcome_of_report;
use crate::ports::{
    Commit, Committed, Config, ConfigError, Journal, JournalError, NewRecord, NewTurn, OpenTurn, Outcome, Prompter,
    Queue, SessionLog, ToolRunner, TurnKey, World,
};
use crate::workers::Claims;
use std::sync::Arc;
use tokio::sync::Semaphore;
use trellis_domain::config::Settings;
use trellis_domain::record::{Body, FORMAT, Header, Name, Record};
use trellis_domain::run::Termination;
use trellis_domain::{Hash, RunId, Workspace};
use trellis_patterns::router::OperatorLimits;
use trellis_patterns::{Effect, Ending, Order, Session, Turn, pattern};

/// What the loop is connected to.
#[derive(Debug, Clone)]
pub struct Ports {
    pub journal: Arc<dyn Journal>,
    pub queue: Arc<dyn Queue>,
    pub config: Arc<dyn Config>,
    pub prompter: Arc<dyn Prompter>,
    pub tools: Arc<dyn ToolRunner>,
    pub hub: Arc<Hub>,
    pub world: Arc<dyn World>,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub limits: OperatorLimits,
    /// Runs without an end; more are refused.
    pub max_open_runs: usize,
    /// A turn that was begun more often than this is set aside: it may be what stops the process.
    pub max_deliveries: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { limits: OperatorLimits::default(), max_open_runs: 10_000, max_deliveries: 5 }
    }
}

/// The loop. Holds no state of its own: any number of them may serve the same journal.
#[derive(Debug, Clone)]
pub struct Orchestrator {
    pub ports: Ports,
    pub options: Options,
    /// Shared by all workers of the process.
    pub(crate) claims: Arc<Claims>,
}

/// Why a turn could not be handled now. It stays open.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl TurnError {
    /// A store that cannot write ends the work; what cannot be read concerns one run.
    pub(crate) fn stops_everything(&self) -> bool {
        let journal = match self {
            Self::Journal(error) | Self::Config(ConfigError::Store(error)) => error,
            Self::Config(ConfigError::Invalid(_) | ConfigError::NoSnapshot(_)) => return false,
        };
        match journal {
            JournalError::Write(_) | JournalError::Closed => true,
            JournalError::Read(_) | JournalError::Damaged(_) => false,
        }
    }
}

/// A turn being handled.
#[derive(Debug)]
pub(crate) struct Handling {
    pub(crate) key: TurnKey,
    pub(crate) session: Session,
    /// Counts from 1; higher when an earlier handling of this turn was cut short.
    pub(crate) attempt: u32,
    /// Outcomes that are not committed yet. Nothing is performed while there are any.
    pending: Vec<NewRecord>,
}

/// What a decision asks of the shell.
enum Step {
    Perform(Name, Effect),
    Open(Name),
    End(Ending),
    /// The session has ended; the turn only needs closing.
    Close,
}

impl Orchestrator {
    pub fn new(ports: Ports, options: Options) -> Self {
        Self { ports, options, claims: Arc::default() }
    }

    /// Handles a turn until it closes. A turn that is not open any more is nobody's business.
    ///
    /// Turns that were cut short more than once run one at a time, so that one that stops the process does not
    /// take others along.
    pub async fn handle(&self, turn: &OpenTurn, suspects: &Semaphore) -> Result<(), TurnError> {
        let _alone = match turn.begun {
            0 | 1 => None,
            _ => match suspects.acquire().await {
                Ok(place) => Some(place),
                // Closed: the process is about to stop and takes nothing new.
                Err(_) => return Ok(()),
            },
        };
        let Some(begun) = self.ports.journal.begin(&turn.key).await? else { return Ok(()) };
        let Some(session) = self.load(&turn.key).await? else { return Ok(()) };
        let mut handling = Handling { key: turn.key.clone(), session, attempt: begun, pending: Vec::new() };
        if begun > self.options.max_deliveries {
            let error = format!("set aside: handling this request was cut short {} times", begun - 1);
            return Box::pin(self.end_with(&mut handling, Ending::failed(Termination::Error, error))).await;
        }
        while !self.advance(&mut handling).await? {}
        Ok(())
    }

    /// Ends the session of a turn that cannot be handled, with the reason.
    pub async fn fail(&self, turn: &OpenTurn, reason: &str) -> Result<(), TurnError> {
        let Some(session) = self.load_without_settings(&turn.key).await? else { return Ok(()) };
        let mut handling = Handling { key: turn.key.clone(), session, attempt: 1, pending: Vec::new() };
        self.end_with(&mut handling, Ending::failed(Termination::Error, reason)).await
    }

    async fn end_with(&self, handling: &mut Handling, ending: Ending) -> Result<(), TurnError> {
        loop {
            let step = if handling.session.ended().is_some() { Step::Close } else { Step::End(ending.clone()) };
            if self.take(handling, step).await? || !self.ports.journal.is_open(&handling.key).await? {
                return Ok(());
            }
        }
    }

    /// One decision and what follows from it. True when the turn is closed.
    async fn advance(&self, handling: &mut Handling) -> Result<bool, TurnError> {
        let turn = Turn { name: handling.key.name.clone(), now: self.ports.world.now() };
        let step = next_step(&handling.session, &turn);
        self.take(handling, step).await
    }

    async fn take(&self, handling: &mut Handling, step: Step) -> Result<bool, TurnError> {
        match step {
            Step::Perform(name, effect) => {
                if !self.commit_pending(handling).await? {
                    // The records have changed under us: decide again before doing anything.
                    return Ok(false);
                }
                let begun = handling.attempt;
                let (body, attempt) = match effect {
                    Effect::AskModel(order) => self.ask_model(handling, &name, order).await,
                    Effect::CallTool { tool, arguments } => {
                        (self.call_tool(handling, &name, &tool, arguments).await, begun)
                    }
                    Effect::Report { error } => (outcome_of_report(&error), begun),
                };
                handling.keep(name, body, attempt, self.ports.world.now());
                Ok(false)
            }
            Step::Open(next) => self.close(handling, Vec::new(), Some(next)).await,
            Step::Close => self.close(handling, Vec::new(), None).await,
            Step::End(ending) => {
                // The outcome first, on its own: it must not be lost to a conflict about the end.
                if !self.commit_pending(handling).await? {
                    return Ok(false);
                }
                let body = ending.into_body(&handling.session);
                let end = handling.record(Name::end(), body, self.ports.world.now());
                self.close(handling, vec![end], None).await
            }
        }
    }

    /// Commits outcomes alone. False if the session is not what it was decided from any more.
    async fn commit_pending(&self, handling: &mut Handling) -> Result<bool, TurnError> {
        if handling.pending.is_empty() {
            return Ok(true);
        }
        let records = std::mem::take(&mut handling.pending);
        let commit = handling.commit(records.clone(), None, Vec::new());
        match self.ports.journal.commit(commit).await? {
            Outcome::Committed(committed) if committed.version == handling.session.seen() + 1 => {
                self.adopt(handling, &committed).await;
                Ok(true)
            }
            Outcome::Committed(committed) => {
                self.after_commit(&handling.key.scope.workspace, &handling.key.run, &committed).await;
                self.reload(handling).await?;
                Ok(false)
            }
            Outcome::Conflict => {
                handling.pending = records;
                self.reload(handling).await?;
                Ok(false)
            }
        }
    }

    /// The last commit of a turn: what is pending, what was decided, and the successor.
    async fn close(
        &self,
        handling: &mut Handling,
        decided: Vec<NewRecord>,
        open: Option<Name>,
    ) -> Result<bool, TurnError> {
        let pending = std::mem::take(&mut handling.pending);
        let records = pending.iter().cloned().chain(decided).collect();
        let session = handling.key.session.clone();
        let open = open.map(|name| NewTurn { session, name, due: None });
        let commit = handling.commit(records, Some(handling.key.name.clone()), open.into_iter().collect());
        match self.ports.journal.commit(commit).await? {
            Outcome::Committed(committed) => {
                self.after_commit(&handling.key.scope.workspace, &handling.key.run, &committed).await;
                Ok(true)
            }
            Outcome::Conflict => {
                handling.pending = pending;
                self.reload(handling).await?;
                if self.ports.journal.is_open(&handling.key).await? {
                    return Ok(false);
                }
                // Another worker has closed the turn. What it did not record is kept all the same.
                while !handling.pending.is_empty() {
                    self.commit_pending(handling).await?;
                }
                Ok(true)
            }
        }
    }

    /// Reads the session anew. An outcome that is recorded by now is adopted and the own one dropped.
    async fn reload(&self, handling: &mut Handling) -> Result<(), TurnError> {
        if let Some(session) = self.load(&handling.key).await? {
            handling.session = session;
        }
        let pending = std::mem::take(&mut handling.pending);
        for record in pending {
            if !handling.session.has(&record.name) {
                handling.session.apply(placeholder(&handling.key, &record, handling.session.seen()));
                handling.pending.push(record);
            }
        }
        Ok(())
    }

    async fn load(&self, key: &TurnKey) -> Result<Option<Session>, TurnError> {
        let workspace = &key.scope.workspace;
        let Some(log) = self.ports.journal.load(workspace, &key.session).await? else { return Ok(None) };
        let snapshot = log.records.first().map_or(Hash::ZERO, |record| record.header.config);
        let settings = self.ports.config.snapshot(workspace, snapshot).await?;
        Ok(Some(folded(settings, log)))
    }

    /// Enough to end a session whose configuration cannot be read.
    async fn load_without_settings(&self, key: &TurnKey) -> Result<Option<Session>, TurnError> {
        let log = self.ports.journal.load(&key.scope.workspace, &key.session).await?;
        Ok(log.map(|log| folded(Arc::default(), log)))
    }

    async fn adopt(&self, handling: &mut Handling, committed: &Committed) {
        for record in &committed.records {
            handling.session.apply(Arc::clone(record));
        }
        self.after_commit(&handling.key.scope.workspace, &handling.key.run, committed).await;
    }

    /// Tells listeners and wakes the turns that were opened.
    pub(crate) async fn after_commit(&self, workspace: &Workspace, run: &RunId, committed: &Committed) {
        for turn in &committed.opened {
            self.ports.queue.publish(turn.clone()).await;
        }
        if !committed.records.is_empty() {
            let root_end = |record: &Arc<Record>| record.header.session == *run && record.header.name == Name::end();
            let ended = committed.records.iter().any(root_end);
            let messages: Vec<_> =
                committed.records.iter().flat_map(|record| crate::perform::messages_of(record)).collect();
            self.ports.hub.close_messages(workspace, run, &messages);
            self.ports.hub.committed(workspace, run, &committed.records, ended);
        }
    }
}

impl Handling {
    pub(crate) fn record(&self, name: Name, body: Body, time: trellis_domain::Timestamp) -> NewRecord {
        let config = self.session.settings().snapshot.unwrap_or(Hash::ZERO);
        let session = self.key.session.clone();
        NewRecord { session, causes: self.causes(&name), name, config, attempt: self.attempt, time, body }
    }

    /// An outcome that is known but not committed yet.
    fn keep(&mut self, name: Name, body: Body, attempt: u32, time: trellis_domain::Timestamp) {
        let record = NewRecord { attempt, ..self.record(name, body, time) };
        self.session.apply(placeholder(&self.key, &record, self.session.seen()));
        self.pending.push(record);
    }

    /// What a record follows from: the newest of what came before it in the session.
    fn causes(&self, name: &Name) -> Vec<Name> {
        let n = self.key.name.as_iteration().unwrap_or(1);
        let mut before = vec![Name::observation(n), Name::iteration(n)];
        if n > 1 {
            before.push(Name::observation(n - 1));
        }
        before.push(Name::pattern_decision());
        before.into_iter().find(|cause| cause != name && self.session.has(cause)).into_iter().collect()
    }

    fn commit(&self, records: Vec<NewRecord>, close: Option<Name>, open: Vec<NewTurn>) -> Commit {
        Commit {
            scope: self.key.scope.clone(),
            run: self.key.run.clone(),
            session: self.key.session.clone(),
            seen: self.session.seen(),
            records,
            close,
            open,
        }
    }
}

fn folded(settings: Arc<Settings>, log: SessionLog) -> Session {
    let mut session = Session::new(settings);
    log.records.into_iter().for_each(|record| session.apply(record));
    session
}

fn next_step(session: &Session, turn: &Turn) -> Step {
    if session.ended().is_some() {
        return Step::Close;
    }
    let limit = session.limits().run_timeout_ms;
    if session.started().is_some_and(|started| turn.now.ms_since(started) > limit) {
        let error = format!("the run took longer than {limit} ms, which is its limit");
        return Step::End(Ending::failed(Termination::Timeout, error));
    }
    let name = session.routed().map_or("", |routed| routed.pattern.as_str());
    let orders = pattern(name).decide(session, turn);
    let mut closing = None;
    for order in orders {
        match order {
            Order::Perform(name, effect) if !session.has(&name) => return Step::Perform(name, effect),
            Order::Perform(..) => {}
            Order::Open(next) => closing = Some(Step::Open(next)),
            Order::End(ending) => closing = Some(Step::End(ending)),
        }
    }
    let nothing = || Step::End(Ending::failed(Termination::Error, "the pattern ordered nothing"));
    closing.unwrap_or_else(nothing)
}

/// A record as the session sees it before the committer has numbered it.
fn placeholder(key: &TurnKey, record: &NewRecord, seen: u64) -> Arc<Record> {
    Arc::new(Record {
        header: Header {
            format: FORMAT,
            workspace: key.scope.workspace.clone(),
            flow: key.scope.flow.clone(),
            run: key.run.clone(),
            session: record.session.clone(),
            name: record.name.clone(),
            seq: 0,
            version: seen,
            causes: record.causes.clone(),
            parents: Vec::new(),
            content: Hash::ZERO,
            config: record.config,
            attempt: record.attempt,
            late: false,
            trace: None,
            time: record.time,
        },
        body: record.body.clone(),
    })
}
