//! The handling of one turn: fold the records, decide, perform what is due, commit each outcome.

use crate::claims::Lease;
use crate::decide::next;
use crate::given_up::ID_TAKEN;
use crate::handling::Handling;
use crate::messages::messages_of;
use crate::orchestrator::{NewerRun, Orchestrator, TurnError};
use crate::perform::{
    idempotency_key, outcome_as_told, outcome_of_agent, outcome_of_decline, outcome_of_report, remaining, within,
};
use crate::permits::{CallCapacity, Permit, Requester};
use crate::ports::{
    BoxFuture, Commit, Committed, Journal, JournalError, KeptSession, NewRecord, OpenTurn, Outcome, SessionLog, TurnKey,
};
use crate::step::{Closing, Next, ShellStep};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::sync::Arc;
use std::time::Duration;
use trellis_domain::config::Settings;
use trellis_domain::record::{Body, Ended, Intended, Name, Record};
use trellis_domain::run::Termination;
use trellis_domain::{Hash, RunId, Timestamp, Workspace};
use trellis_patterns::{Effect, Ending, Session, Turn, guard};

/// So many conflicts without anything new in the session are no accident.
const STUCK: u32 = 20;

/// How long a store that cannot be reached is left alone, and how often a read is tried again.
const UNREACHABLE: Duration = Duration::from_millis(500);
const UNREACHABLE_TRIES: u32 = 60;

/// How far a turn came.
#[derive(Debug)]
pub(crate) enum Handled {
    /// It is closed, or it is not its time yet, or somebody else may have it by now.
    Done,
    Waits(Waiting),
}

/// A turn whose next call has to wait. It holds nothing of its session meanwhile.
#[derive(Debug)]
pub(crate) struct Waiting {
    capacity: Arc<CallCapacity>,
    /// How long it makes sense to wait.
    time_limit: Duration,
}

/// What a turn is handled with.
#[derive(Debug, Default)]
pub(crate) struct Ticket {
    /// Counts from 1.
    pub(crate) attempt: u32,
    pub(crate) lease: Arc<Lease>,
    /// Room for its next call, if it has waited for that.
    pub(crate) permit: Permit,
}

/// Where a step leaves its turn.
#[derive(Debug)]
enum Taken {
    Open,
    Closed,
    /// Nothing is done any more: the claim may be somebody else's.
    Lost,
    /// Nothing is done yet: there is no room for the call.
    Waits(Arc<CallCapacity>),
}

/// An effect that may begin.
struct Due {
    name: Name,
    effect: Effect,
    permit: Permit,
}

impl Orchestrator {
    /// Handles a turn until it closes, and waits where its calls have to wait. Whoever else handles it: claims are the
    /// workers' business, and the rules of commits hold without them.
    pub async fn handle(&self, turn: &OpenTurn) -> Result<(), TurnError> {
        let ticket = || Ticket { attempt: turn.begun + 1, ..Ticket::default() };
        let mut permit = Permit::default();
        while let Handled::Waits(waiting) = Box::pin(self.attend(turn, Ticket { permit, ..ticket() })).await? {
            permit = self.wait(&turn.key, waiting).await?;
        }
        Ok(())
    }

    /// Handles a turn until it closes, or until a call of it has to wait for its turn: then all that was loaded for it
    /// is let go, because what is recorded is enough to go on. Does nothing if the turn is already closed.
    pub(crate) async fn attend(&self, turn: &OpenTurn, ticket: Ticket) -> Result<Handled, TurnError> {
        if !self.ports.journal.is_open(&turn.key).await? {
            return Ok(Handled::Done);
        }
        let Some((session, kept)) = self.load(&turn.key).await? else { return Ok(Handled::Done) };
        let Ticket { attempt, lease, permit } = ticket;
        let mut handling = Handling { permit, lease, kept, ..Handling::new(turn.key.clone(), session, attempt) };
        loop {
            let step = Box::pin(self.next_step(&mut handling)).await?;
            match self.take(&mut handling, step).await? {
                Taken::Open => {}
                Taken::Closed | Taken::Lost => return Ok(Handled::Done),
                Taken::Waits(capacity) => {
                    let time_limit = remaining(&handling, self.ports.world.now(), u64::MAX);
                    return Ok(Handled::Waits(Waiting { capacity, time_limit }));
                }
            }
        }
    }

    /// Waits until it is a turn's turn, or until its run is cancelled or out of time: then it is to be looked at, too.
    pub(crate) async fn wait(&self, turn: &TurnKey, waiting: Waiting) -> Result<Permit, TurnError> {
        let Waiting { capacity, time_limit } = waiting;
        let caller = Requester { workspace: turn.scope.workspace.clone(), run: Some(turn.run.clone()) };
        let entering = within(&*self.ports.world, time_limit, capacity.enter(caller));
        Ok(self.unless_cancelled(turn, entering).await?.flatten().unwrap_or_default())
    }

    /// Ends the session of a turn that cannot be handled, with the reason.
    pub async fn fail(&self, turn: &OpenTurn, reason: &str) -> Result<(), TurnError> {
        let Some(session) = self.load_without_settings(&turn.key).await? else { return Ok(()) };
        let mut handling = Handling::new(turn.key.clone(), session, 1);
        self.end_with(&mut handling, Ending::failed(Termination::Error, reason)).await
    }

    pub(crate) async fn end_with(&self, handling: &mut Handling, ending: Ending) -> Result<(), TurnError> {
        loop {
            let step = if handling.session.ended().is_some() {
                ShellStep::Close(Closing::default())
            } else {
                ShellStep::End(ending.clone())
            };
            if matches!(self.take(handling, step).await?, Taken::Closed)
                || !self.ports.journal.is_open(&handling.key).await?
            {
                return Ok(());
            }
        }
    }

    /// What follows from the records so far.
    async fn next_step(&self, handling: &mut Handling) -> Result<ShellStep, TurnError> {
        if handling.stuck > STUCK {
            // Nothing moves in this session, and still it conflicts: a name that it needs is taken by another one.
            let ending = Ending::failed(Termination::Error, ID_TAKEN);
            return Box::pin(self.end_with(handling, ending)).await.map(|()| ShellStep::Wait);
        }
        let turn = Turn { name: handling.key.name.clone(), now: self.ports.world.now() };
        let above = self.ended_above(&handling.key.scope.workspace, &handling.session).await?;
        match next(&handling.session, &turn, above.as_ref()) {
            Next::FanIn(round) => Box::pin(self.fan_in(handling, &turn, round)).await,
            Next::Step(step) => Ok(step),
        }
    }

    /// How the nearest ended session above this one ended, if one has.
    async fn ended_above(&self, workspace: &Workspace, session: &Session) -> Result<Option<Ended>, TurnError> {
        let Some(parent) = session.accepted().and_then(|accepted| accepted.parent.as_ref()) else { return Ok(None) };
        for ancestor in parent.ancestors.iter().rev() {
            if let Some(end) = self.patiently(|journal| journal.end(workspace, ancestor)).await? {
                return Ok(end.body.as_ended().cloned());
            }
        }
        Ok(None)
    }

    /// Takes a step. Steps are boxed, because thousands of sessions wait in one, and the
    /// room of the largest would be taken up by all of them.
    fn take<'a>(&'a self, handling: &'a mut Handling, step: ShellStep) -> BoxFuture<'a, Result<Taken, TurnError>> {
        match step {
            ShellStep::Perform(due) => Box::pin(self.act(handling, due)),
            ShellStep::Close(closing) => Box::pin(self.close(handling, closing)),
            ShellStep::End(ending) => Box::pin(self.end(handling, ending)),
            ShellStep::Wait => Box::pin(std::future::ready(Ok(Taken::Closed))),
        }
    }

    async fn act(&self, handling: &mut Handling, due: Vec<(Name, Effect)>) -> Result<Taken, TurnError> {
        if !Box::pin(self.commit_pending(handling)).await? {
            // The records have changed under us: decide again before doing anything.
            return Ok(Taken::Open);
        }
        let mut ready = match self.admitted(handling, due) {
            Ok(ready) => ready,
            Err(capacity) => return Ok(Taken::Waits(capacity)),
        };
        if !handling.lease.holds(self.ports.world.now()) {
            return Ok(Taken::Lost);
        }
        if !self.intend(handling, &ready).await? {
            return Ok(Taken::Open);
        }
        // Recording took its time, too, and whoever has the turn by now asks about what was not begun yet.
        if !handling.lease.holds(self.ports.world.now()) {
            return Ok(Taken::Lost);
        }
        match ready.pop() {
            Some(only) if ready.is_empty() => self.act_alone(handling, only).await,
            last => Box::pin(self.act_side_by_side(handling, ready.into_iter().chain(last).collect())).await,
        }
    }

    /// What can be begun now. What there is no room for is decided again after the rest of it; if that is all, it waits.
    fn admitted(&self, handling: &mut Handling, due: Vec<(Name, Effect)>) -> Result<Vec<Due>, Arc<CallCapacity>> {
        let mut held = Some(std::mem::take(&mut handling.permit));
        let mut full = None;
        let mut ready = Vec::with_capacity(due.len());
        for (name, effect) in due {
            let capacity = self.capacity(&handling.session, &effect);
            let entered = capacity
                .as_ref()
                .map(|capacity| held.take_if(|held| held.is_in(capacity)).or_else(|| capacity.try_enter()));
            let Some(permit) = entered.unwrap_or_else(|| Some(Permit::default())) else {
                full = capacity;
                continue;
            };
            ready.push(Due { name, effect, permit });
        }
        if ready.is_empty() { full.map_or(Ok(ready), Err) } else { Ok(ready) }
    }

    /// Records that unsafe calls are about to be made: found without an outcome, they are not made again unasked. False if
    /// the session is not what they were decided from any more.
    async fn intend(&self, handling: &mut Handling, due: &[Due]) -> Result<bool, TurnError> {
        let now = self.ports.world.now();
        let intents: Vec<_> = due.iter().filter_map(|due| intent(handling, due, now)).collect();
        if intents.is_empty() {
            return Ok(true);
        }
        let commit = handling.commit(intents, Vec::new(), Vec::new());
        match self.commit(commit).await? {
            Some(Outcome::Committed(committed)) if committed.version == handling.session.seen() + 1 => {
                self.adopt(handling, &committed).await;
                Ok(true)
            }
            // Others have committed meanwhile, such as the other steps of a plan.
            Some(Outcome::Committed(committed)) => {
                self.after_commit(&handling.key.scope.workspace, &handling.key.run, &committed).await;
                self.reload(handling).await?;
                Ok(due.iter().all(|due| is_still_due(&handling.session, &due.name)))
            }
            Some(Outcome::Conflict) | None => {
                self.reload(handling).await?;
                Ok(false)
            }
        }
    }

    async fn act_alone(&self, handling: &mut Handling, due: Due) -> Result<Taken, TurnError> {
        let Due { name, effect, permit } = due;
        let outcome = self.unless_cancelled(&handling.key, self.perform(handling, &name, effect, permit)).await?;
        let Some((body, attempt)) = outcome else {
            // Nothing came of it, so there is nothing to record. The session has ended.
            self.reload(handling).await?;
            return Ok(Taken::Open);
        };
        handling.keep(name, body, attempt, self.ports.world.now());
        Ok(Taken::Open)
    }

    /// Performs what does not wait for one another, and commits each outcome as it comes.
    async fn act_side_by_side(&self, handling: &mut Handling, due: Vec<Due>) -> Result<Taken, TurnError> {
        let outcomes = self.unless_cancelled(&handling.key, self.all_of(handling, due)).await?;
        // What a conflict or a lost connection kept from the journal is tried again with what follows.
        handling.pending.extend(outcomes.transpose()?.into_iter().flatten());
        self.reload(handling).await?;
        Ok(Taken::Open)
    }

    /// Gives the outcomes that may not be recorded yet.
    async fn all_of(&self, handling: &Handling, due: Vec<Due>) -> Result<Vec<NewRecord>, TurnError> {
        let mut running: FuturesUnordered<_> = due.into_iter().map(|due| self.one_of(handling, due)).collect();
        let mut unrecorded = Vec::new();
        while let Some(record) = running.next().await {
            let commit = handling.commit(vec![record.clone()], Vec::new(), Vec::new());
            match self.commit(commit).await? {
                Some(Outcome::Committed(committed)) => {
                    self.after_commit(&handling.key.scope.workspace, &handling.key.run, &committed).await;
                }
                Some(Outcome::Conflict) | None => unrecorded.push(record),
            }
        }
        Ok(unrecorded)
    }

    async fn one_of(&self, handling: &Handling, due: Due) -> NewRecord {
        let Due { name, effect, permit } = due;
        let (body, attempt) = self.perform(handling, &name, effect, permit).await;
        handling.outcome(name, body, attempt, self.ports.world.now())
    }

    async fn end(&self, handling: &mut Handling, ending: Ending) -> Result<Taken, TurnError> {
        // The outcome first, on its own: it must not be lost to a conflict about the end.
        if !self.commit_pending(handling).await? {
            return Ok(Taken::Open);
        }
        let closing = self.ending(handling, ending).await?;
        self.close(handling, closing).await
    }

    /// What came of an effect, and the attempt that counted.
    fn perform<'a>(
        &'a self,
        handling: &'a Handling,
        name: &'a Name,
        effect: Effect,
        permit: Permit,
    ) -> BoxFuture<'a, (Body, u32)> {
        let begun = handling.attempt;
        match effect {
            Effect::AskModel(order) => Box::pin(self.ask_model(handling, name, order, permit)),
            Effect::CallTool { tool, arguments } => {
                Box::pin(async move { (self.call_tool(handling, name, &tool, arguments, permit).await, begun) })
            }
            Effect::Decline { prompt, offered, reason } => {
                let declined = outcome_of_decline(&handling.session, prompt, offered, reason);
                Box::pin(std::future::ready((Body::from(declined), begun)))
            }
            Effect::Report { error } => Box::pin(std::future::ready((outcome_of_report(&error), begun))),
            Effect::Bring { tool, session, result } => {
                let state = handling.session.settings().tools.get(&tool).and_then(|item| item.state.clone());
                Box::pin(std::future::ready((outcome_of_agent(&session, result, state), begun)))
            }
            Effect::Take { tool, result } => {
                let state = handling.session.settings().tools.get(&tool).and_then(|item| item.state.clone());
                Box::pin(std::future::ready((outcome_as_told(result, state), begun)))
            }
        }
    }

    /// Commits outcomes alone. False if the session is not what it was decided from any more.
    async fn commit_pending(&self, handling: &mut Handling) -> Result<bool, TurnError> {
        if handling.pending.is_empty() {
            return Ok(true);
        }
        let records = std::mem::take(&mut handling.pending);
        let commit = handling.commit(records.clone(), Vec::new(), Vec::new());
        let outcome = self.commit(commit).await?;
        self.suspects.settle(&handling.key);
        match outcome {
            Some(Outcome::Committed(committed)) if committed.version == handling.session.seen() + 1 => {
                self.adopt(handling, &committed).await;
                Ok(true)
            }
            Some(Outcome::Committed(committed)) => {
                self.after_commit(&handling.key.scope.workspace, &handling.key.run, &committed).await;
                self.reload(handling).await?;
                Ok(false)
            }
            Some(Outcome::Conflict) | None => {
                handling.pending = records;
                self.reload(handling).await?;
                Ok(false)
            }
        }
    }

    /// The last commit of a turn: what is pending, what was decided, and the successors.
    ///
    /// Where others commit to the same session, the outcome goes first and alone: it needs no agreement, so it is
    /// recorded together with theirs, and the mere closings after it do not stand in each other's way.
    async fn close(&self, handling: &mut Handling, closing: Closing) -> Result<Taken, TurnError> {
        if handling.contended && !handling.pending.is_empty() {
            self.commit_pending(handling).await?;
            return Ok(Taken::Open);
        }
        let pending = std::mem::take(&mut handling.pending);
        let now = closing.at.unwrap_or_else(|| self.ports.world.now());
        let decided = closing.records.into_iter().map(|decided| handling.decided(decided, now));
        let records = pending.iter().cloned().chain(decided).collect();
        let close = std::iter::once(handling.key.name.clone()).chain(closing.close).collect();
        // Others that are still busy may go on conflicting for a while: that is no sign of being stuck.
        let alone = closing.seen_of_others.is_empty();
        let commit = handling.commit(records, close, closing.open);
        let commit = Commit { seen_of_others: closing.seen_of_others, ..commit };
        let outcome = self.commit(commit).await?;
        let conflicts = outcome.is_some();
        match outcome {
            Some(Outcome::Committed(committed)) => {
                // Before anybody is woken: the next turn goes on from it.
                handling.hand_on(&committed);
                self.after_commit(&handling.key.scope.workspace, &handling.key.run, &committed).await;
                Ok(Taken::Closed)
            }
            Some(Outcome::Conflict) | None => {
                handling.pending = pending;
                let before = handling.session.seen();
                self.reload(handling).await?;
                let same = conflicts && alone && handling.session.seen() == before;
                handling.stuck = if same { handling.stuck + 1 } else { 0 };
                // Another worker may have closed the turn. What it did not record is kept all the same.
                while !handling.pending.is_empty() {
                    self.commit_pending(handling).await?;
                }
                let open = self.patiently(|journal| journal.is_open(&handling.key)).await?;
                Ok(if open { Taken::Open } else { Taken::Closed })
            }
        }
    }

    /// Commits. None if the store cannot be reached: it is unknown whether it has committed, as after a conflict, and the
    /// records tell once they can be read. What was paid for is not dropped for a moment without a connection.
    async fn commit(&self, commit: Commit) -> Result<Option<Outcome>, TurnError> {
        match self.ports.journal.commit(commit).await {
            Err(JournalError::Unavailable(error)) => {
                tracing::warn!(error, "the store could not be reached during a commit");
                self.ports.world.sleep(UNREACHABLE).await;
                Ok(None)
            }
            outcome => Ok(Some(outcome?)),
        }
    }

    /// Reads, and is patient with a store that cannot be reached for a moment.
    pub(crate) async fn patiently<'a, T>(
        &'a self,
        read: impl Fn(&'a dyn Journal) -> BoxFuture<'a, Result<T, JournalError>>,
    ) -> Result<T, JournalError> {
        let mut tries = 0;
        loop {
            match read(&*self.ports.journal).await {
                Err(JournalError::Unavailable(_)) if tries < UNREACHABLE_TRIES => tries += 1,
                result => return result,
            }
            self.ports.world.sleep(UNREACHABLE).await;
        }
    }

    /// Reads the session anew. An outcome that is recorded by now is adopted and the own one dropped.
    async fn reload(&self, handling: &mut Handling) -> Result<(), TurnError> {
        match self.load(&handling.key).await? {
            Some((session, _)) => handling.rebase(session),
            None => handling.rebase(handling.session.clone()),
        }
        Ok(())
    }

    async fn load(&self, key: &TurnKey) -> Result<Option<(Session, KeptSession)>, TurnError> {
        let workspace = &key.scope.workspace;
        let read = self.patiently(|journal| journal.load(workspace, &key.session));
        let Some(log) = read.await? else { return Ok(None) };
        let first = log.records.first();
        first.map_or(Ok(()), |first| NewerRun::check(first))?;
        let snapshot = first.map_or(Hash::ZERO, |record| record.header.config);
        let settings = self.ports.config.snapshot(workspace, snapshot).await?;
        let kept = log.kept.clone();
        Ok(Some((self.folded(settings, log), kept)))
    }

    /// Enough to end a session whose configuration cannot be read.
    pub(crate) async fn load_without_settings(&self, key: &TurnKey) -> Result<Option<Session>, TurnError> {
        let log = self.patiently(|journal| journal.load(&key.scope.workspace, &key.session)).await?;
        Ok(log.map(|log| self.folded(Arc::default(), log)))
    }

    fn folded(&self, settings: Arc<Settings>, log: SessionLog) -> Session {
        let outages = self.ports.journal.service().outages;
        let known = log.kept.take().filter(|session| session.is_beginning_of(&log.records));
        let session = match known {
            Some(session) => session.with_settings(settings),
            None => Session::new(settings, Arc::clone(&self.limits)),
        };
        session.with_outages(outages).with_all(&log.records)
    }

    async fn adopt(&self, handling: &mut Handling, committed: &Committed) {
        handling.apply(committed);
        self.after_commit(&handling.key.scope.workspace, &handling.key.run, committed).await;
    }

    /// Tells listeners and wakes the turns that were opened.
    pub(crate) async fn after_commit(&self, workspace: &Workspace, run: &RunId, committed: &Committed) {
        // Listeners first: what the next turn writes must not reach them before these records.
        if !committed.records.is_empty() {
            let root_end = |record: &Arc<Record>| record.header.session == *run && record.header.name == Name::end();
            let ended = committed.records.iter().any(root_end);
            let messages: Vec<_> = committed.records.iter().flat_map(|record| messages_of(record)).collect();
            self.ports.hub.close_messages(workspace, run, &messages);
            self.ports.hub.committed(workspace, run, &committed.records, ended);
        }
        for turn in &committed.opened {
            self.wake(turn.clone()).await;
        }
    }

    /// Publishes a wake-up. One that is lost costs a delay: the turn is in the journal, and the sweeper finds it there.
    pub(crate) async fn wake(&self, turn: OpenTurn) {
        if let Err(error) = self.ports.queue.publish(turn).await {
            tracing::warn!(%error, "a wake-up could not be published; the turn is found by the next sweep");
        }
    }
}

/// Whether a call that is about to be made is as due as before, whatever else was recorded: nothing has come of it yet,
/// nobody has been asked about it, and there is still a session to make it for.
fn is_still_due(session: &Session, name: &Name) -> bool {
    let last = Name::intent(name, session.intents(name));
    !session.has(name) && session.park_about(&last).is_none() && session.ended().is_none()
}

/// The record that a call is about to be made, if it must not be made twice.
fn intent(handling: &Handling, due: &Due, now: Timestamp) -> Option<NewRecord> {
    let Effect::CallTool { tool, arguments } = &due.effect else { return None };
    if !guard::is_recorded_before(&handling.session, tool) {
        return None;
    }
    let name = Name::intent(&due.name, handling.session.intents(&due.name) + 1);
    let idempotency_key = idempotency_key(&handling.key.session, &due.name, arguments);
    let body = Body::Intended(Intended { tool: tool.clone(), idempotency_key });
    Some(handling.outcome(name, body, handling.attempt, now))
}
