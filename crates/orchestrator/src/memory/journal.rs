//! The journal in memory.

use crate::ledger::{Prepared, SessionHead, Stored, prepare};
use crate::ports::{
    BoxFuture, Commit, Committed, Journal, JournalError, OpenTurn, Outcome, RunFilter, RunPage, Service, SessionLog,
    SetAside, TurnKey,
};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trellis_domain::record::{Name, Record};
use trellis_domain::run::RunSummary;
use trellis_domain::{RunId, SessionId, Timestamp, Workspace};

type Place = (Workspace, SessionId);

#[derive(Debug, Default)]
pub struct MemoryJournal {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    sessions: BTreeMap<Place, (SessionHead, Vec<Arc<Record>>)>,
    runs: BTreeMap<Place, (RunSummary, Vec<Arc<Record>>)>,
    turns: BTreeMap<TurnKey, OpenTurn>,
}

struct Look<'a> {
    state: &'a State,
    workspace: Workspace,
    run: RunId,
}

impl Stored for Look<'_> {
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

impl State {
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
            log.push(Arc::clone(record));
        }
        for turn in prepared.closed {
            self.turns.remove(&turn);
        }
        self.turns.extend(prepared.opened.iter().map(|turn| (turn.key.clone(), turn.clone())));
        Committed { version: prepared.version, records, opened: prepared.opened }
    }
}

impl MemoryJournal {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit_now(&self, commit: Commit) -> Outcome {
        let mut state = self.state();
        let workspace = commit.scope.workspace.clone();
        let mut look = Look { state: &state, workspace: workspace.clone(), run: commit.run.clone() };
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
        let found = self
            .state()
            .sessions
            .get(&(workspace.clone(), session.clone()))
            .map(|(head, records)| SessionLog { version: head.version, records: records.clone() });
        ready(found)
    }

    fn end<'a>(
        &'a self,
        workspace: &'a Workspace,
        session: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<Arc<Record>>, JournalError>> {
        let state = self.state();
        let records = state.sessions.get(&(workspace.clone(), session.clone())).map(|(_, records)| records);
        let end = records.and_then(|records| records.iter().find(|record| record.header.name == Name::end()).cloned());
        ready(end)
    }

    fn is_open<'a>(&'a self, turn: &'a TurnKey) -> BoxFuture<'a, Result<bool, JournalError>> {
        ready(self.state().turns.contains_key(turn))
    }

    fn begin<'a>(&'a self, turn: &'a TurnKey) -> BoxFuture<'a, Result<Option<u32>, JournalError>> {
        let mut state = self.state();
        let open = state.turns.get_mut(turn);
        ready(open.map(|open| {
            open.begun += 1;
            open.begun
        }))
    }

    fn release<'a>(&'a self, turn: &'a TurnKey) -> BoxFuture<'a, Result<(), JournalError>> {
        if let Some(open) = self.state().turns.get_mut(turn) {
            open.begun = open.begun.saturating_sub(1);
        }
        ready(())
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
        let mut memory = self.state();
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

    fn due_turns(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<OpenTurn>, JournalError>> {
        let due = |turn: &&OpenTurn| turn.due.is_none_or(|due| due <= now);
        ready(self.state().turns.values().filter(due).cloned().collect())
    }

    fn open_runs(&self) -> usize {
        self.state().runs.values().filter(|(summary, _)| !summary.state.is_end()).count()
    }

    fn run<'a>(
        &'a self,
        workspace: &'a Workspace,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Option<RunSummary>, JournalError>> {
        ready(self.state().runs.get(&(workspace.clone(), run.clone())).map(|(summary, _)| summary.clone()))
    }

    fn runs<'a>(
        &'a self,
        workspace: &'a Workspace,
        filter: &'a RunFilter,
        cursor: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<RunPage, JournalError>> {
        let state = self.state();
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
        let state = self.state();
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
        let state = self.state();
        let Some((_, records)) = state.runs.get(&(workspace.clone(), run.clone())) else { return ready(Vec::new()) };
        ready(records.iter().filter(|record| record.header.seq > after).take(limit).cloned().collect())
    }
}
