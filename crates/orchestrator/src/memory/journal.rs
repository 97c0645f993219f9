//! The journal in memory.

use crate::ledger::{Prepared, SessionHead, Stored, prepare};
use crate::ports::{
    BoxFuture, Claim, ClaimId, Claiming, Commit, Committed, Journal, JournalError, OpenTurn, Outcome, RunFilter,
    RunPage, Service, SessionLog, SetAside, TurnKey, World,
};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::record::{Name, Record};
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, SessionId, Timestamp, Workspace};

type SessionPlace = (Workspace, SessionId);

#[derive(Debug, Default)]
pub struct MemoryJournal {
    state: Mutex<JournalState>,
    /// The clock that claims expire by. Without one they never do.
    clock: Option<Arc<dyn World>>,
}

#[derive(Debug, Default)]
struct JournalState {
    sessions: BTreeMap<SessionPlace, (SessionHead, SessionLog)>,
    runs: BTreeMap<SessionPlace, (RunSummary, Vec<Arc<Record>>)>,
    turns: BTreeMap<TurnKey, OpenTurn>,
    claims: BTreeMap<TurnKey, HeldTurn>,
}

#[derive(Debug, Clone, Copy)]
struct HeldTurn {
    by: ClaimId,
    until: Option<Timestamp>,
}

impl HeldTurn {
    fn is_over(self, now: Option<Timestamp>) -> bool {
        self.until.zip(now).is_some_and(|(until, now)| until <= now)
    }
}

struct MemoryStored<'a> {
    state: &'a JournalState,
    workspace: Workspace,
    run: RunId,
}

impl Stored for MemoryStored<'_> {
    type Error = Infallible;

    fn session(&mut self, session: &SessionId) -> Result<SessionHead, Infallible> {
        let place = (self.workspace.clone(), session.clone());
        Ok(self.state.sessions.get(&place).map(|(head, _)| head.clone()).unwrap_or_default())
    }

    fn run(&mut self) -> Result<Option<RunSummary>, Infallible> {
        let place = (self.workspace.clone(), self.run.clone());
        Ok(self.state.runs.get(&place).map(|(summary, _)| summary.clone()))
    }

    fn is_open(&mut self, turn: &TurnKey) -> Result<bool, Infallible> {
        Ok(self.state.turns.contains_key(turn))
    }

    fn seed(&mut self) -> [u8; 32] {
        // Nothing is kept for longer than the process, so nothing has to be hidden.
        [0; 32]
    }
}

impl JournalState {
    fn write(&mut self, workspace: &Workspace, prepared: Prepared) -> Committed {
        let run = (workspace.clone(), prepared.summary.run.clone());
        let records: Vec<_> = prepared.records.into_iter().map(|prepared| prepared.record).collect();
        let (summary, events) = self.runs.entry(run).or_insert_with(|| (prepared.summary.clone(), Vec::new()));
        *summary = prepared.summary;
        events.extend(records.iter().cloned());
        for record in &records {
            let place = (workspace.clone(), record.header.session.clone());
            let (head, log) = self.sessions.entry(place).or_default();
            head.add(&record.header);
            log.version = head.version;
            log.records.push(Arc::clone(record));
        }
        for turn in prepared.closed {
            self.turns.remove(&turn);
            self.claims.remove(&turn);
        }
        self.turns.extend(prepared.opened.iter().map(|turn| (turn.key.clone(), turn.clone())));
        Committed { version: prepared.version, records, opened: prepared.opened }
    }
}

impl MemoryJournal {
    /// Several processes may share it: claims expire, by this clock.
    pub fn shared(clock: Arc<dyn World>) -> Self {
        Self { clock: Some(clock), ..Self::default() }
    }

    fn now(&self) -> Option<Timestamp> {
        self.clock.as_ref().map(|clock| clock.now())
    }

    /// When a claim of that life ends, from now.
    fn until(&self, life: Duration) -> Option<Timestamp> {
        Some(self.now()?.plus_ms(u64::try_from(life.as_millis()).unwrap_or(u64::MAX)))
    }

    fn claim_now(&self, claim: &Claim, life: Duration) -> Claiming {
        let (now, until) = (self.now(), self.until(life));
        let mut state = self.state.lock();
        let JournalState { turns, claims, .. } = &mut *state;
        let Some(open) = turns.get_mut(&claim.turn) else { return Claiming::Closed };
        if claims.get(&claim.turn).is_some_and(|held| held.by != claim.id && !held.is_over(now)) {
            return Claiming::Held;
        }
        let before = claims.insert(claim.turn.clone(), HeldTurn { by: claim.id, until });
        open.begun += u32::from(before.is_none_or(|held| held.by != claim.id));
        Claiming::Claimed { begun: open.begun, expires: until.is_some() }
    }

    fn renew_now(&self, claim: &Claim, life: Duration) -> bool {
        let until = self.until(life);
        let mut state = self.state.lock();
        // One that has expired and that nobody else has claimed is as good as new.
        let held = state.claims.get_mut(&claim.turn).filter(|held| held.by == claim.id);
        held.map(|held| held.until = until).is_some()
    }

    fn give_back_now(&self, claim: &Claim) {
        let mut state = self.state.lock();
        if state.claims.get(&claim.turn).is_some_and(|held| held.by == claim.id) {
            state.claims.remove(&claim.turn);
            if let Some(open) = state.turns.get_mut(&claim.turn) {
                open.begun = open.begun.saturating_sub(1);
            }
        }
    }

    fn commit_now(&self, commit: Commit) -> Outcome {
        let mut state = self.state.lock();
        let workspace = commit.scope.workspace.clone();
        let mut look = MemoryStored { state: &state, workspace: workspace.clone(), run: commit.run.clone() };
        let Ok(prepared) = prepare(commit, &mut look);
        match prepared {
            None => Outcome::Conflict,
            Some(prepared) => Outcome::Committed(state.write(&workspace, prepared)),
        }
    }
}

fn ready<'a, T: Send + 'a>(value: T) -> BoxFuture<'a, Result<T, JournalError>> {
    Box::pin(std::future::ready(Ok(value)))
}

impl Journal for MemoryJournal {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, JournalError>> {
        ready(self.commit_now(commit))
    }

    fn load<'a>(
        &'a self,
        workspace: &'a Workspace,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionLog>, JournalError>> {
        let found = self.state.lock().sessions.get(&(workspace.clone(), session.clone())).map(|(_, log)| log.clone());
        ready(found)
    }

    fn end<'a>(
        &'a self,
        workspace: &'a Workspace,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<Record>>, JournalError>> {
        let state = self.state.lock();
        let records = state.sessions.get(&(workspace.clone(), session.clone())).map(|(_, log)| &log.records);
        let end = records.and_then(|records| records.iter().find(|record| record.header.name == Name::end()).cloned());
        ready(end)
    }

    fn is_open<'a>(&'a self, turn: &'a TurnKey) -> BoxFuture<'a, Result<bool, JournalError>> {
        ready(self.state.lock().turns.contains_key(turn))
    }

    fn claim<'a>(&'a self, claim: &'a Claim, life: Duration) -> BoxFuture<'a, Result<Claiming, JournalError>> {
        ready(self.claim_now(claim, life))
    }

    fn renew<'a>(&'a self, claim: &'a Claim, life: Duration) -> BoxFuture<'a, Result<bool, JournalError>> {
        ready(self.renew_now(claim, life))
    }

    fn give_back<'a>(&'a self, claim: &'a Claim) -> BoxFuture<'a, Result<(), JournalError>> {
        self.give_back_now(claim);
        ready(())
    }

    fn in_hand<'a>(&'a self, workspace: &'a Workspace) -> BoxFuture<'a, Result<HashSet<RunId>, JournalError>> {
        let (now, state) = (self.now(), self.state.lock());
        let held = state.claims.iter().filter(|(turn, held)| turn.scope.workspace == *workspace && !held.is_over(now));
        ready(held.map(|(turn, _)| turn.run.clone()).collect())
    }

    /// What is in memory does not outlive a crash, so nobody is suspected here.
    fn keep_back<'a>(&'a self, _: &'a [TurnKey]) -> BoxFuture<'a, Result<(), JournalError>> {
        ready(())
    }

    fn begin_trial<'a>(&'a self, _: &'a [TurnKey], _: Timestamp) -> BoxFuture<'a, Result<(), JournalError>> {
        ready(())
    }

    fn acquit<'a>(&'a self, _: &'a [TurnKey]) -> BoxFuture<'a, Result<(), JournalError>> {
        ready(())
    }

    fn set_aside(&self, aside: SetAside) -> BoxFuture<'_, Result<(), JournalError>> {
        let SetAside { workspace, run, session, reason: _, state, time } = aside;
        let mut memory = self.state.lock();
        let whole = session == run;
        let concerned =
            |turn: &TurnKey| turn.scope.workspace == workspace && turn.run == run && (whole || turn.session == session);
        memory.turns.retain(|turn, _| !concerned(turn));
        if let Some((summary, _)) = memory.runs.get_mut(&(workspace, run))
            && whole
            && !summary.state.is_end()
        {
            (summary.state, summary.ended) = (state, Some(time));
        }
        ready(())
    }

    fn sign_of_life(&self, _: Timestamp) -> BoxFuture<'_, Result<(), JournalError>> {
        ready(())
    }

    fn service(&self) -> Service {
        Service::default()
    }

    fn due_turns<'a>(
        &'a self,
        until: Timestamp,
        after: Option<&'a TurnKey>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<OpenTurn>, JournalError>> {
        let (now, state) = (self.now(), self.state.lock());
        let free = |turn: &OpenTurn| state.claims.get(&turn.key).is_none_or(|held| held.is_over(now));
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        let turns = state.turns.range::<TurnKey, _>((behind, Bound::Unbounded)).map(|(_, turn)| turn);
        let due = turns.filter(|turn| turn.due.is_none_or(|due| due <= until) && free(turn));
        ready(due.take(limit).cloned().collect())
    }

    fn turns_of<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<OpenTurn>, JournalError>> {
        let of = |turn: &&OpenTurn| turn.key.run == *run && turn.key.scope.workspace == *workspace;
        ready(self.state.lock().turns.values().filter(of).cloned().collect())
    }

    fn open_runs(&self) -> BoxFuture<'_, Result<usize, JournalError>> {
        ready(self.state.lock().runs.values().filter(|(summary, _)| !summary.state.is_end()).count())
    }

    fn run<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<RunSummary>, JournalError>> {
        ready(self.state.lock().runs.get(&(workspace.clone(), run.clone())).map(|(summary, _)| summary.clone()))
    }

    fn runs<'a>(
        &'a self,
        workspace: &'a Workspace,
        filter: &'a RunFilter,
        cursor: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<RunPage, JournalError>> {
        let state = self.state.lock();
        let mut runs: Vec<_> = state.runs.values().map(|(summary, _)| summary).collect();
        runs.retain(|run| run.workspace == *workspace);
        runs.sort_by(|a, b| (b.started, &b.run).cmp(&(a.started, &a.run)));
        let skipped = cursor.and_then(|cursor| runs.iter().position(|run| run.run.as_str() == cursor)).unwrap_or(0);
        let mut matching = runs.into_iter().skip(skipped).filter(|run| filter.matches(run));
        let page: Vec<_> = matching.by_ref().take(limit).cloned().collect();
        let next = matching.next().map(|run| run.run.as_str().to_owned());
        ready(RunPage { runs: page, next, unreadable: Vec::new() })
    }

    fn with_prefix<'a>(
        &'a self,
        workspace: &'a Workspace,
        start: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<RunId>, JournalError>> {
        let state = self.state.lock();
        let runs = state.runs.keys().filter(|(place, run)| place == workspace && run.as_str().starts_with(start));
        ready(runs.map(|(_, run)| run.clone()).take(limit).collect())
    }

    fn events<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Arc<Record>>, JournalError>> {
        let state = self.state.lock();
        let Some((_, records)) = state.runs.get(&(workspace.clone(), run.clone())) else { return ready(Vec::new()) };
        ready(records.iter().filter(|record| record.header.seq > after).take(limit).cloned().collect())
    }
}
