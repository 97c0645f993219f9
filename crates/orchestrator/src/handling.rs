//! A turn being handled: its session, and outcomes that are not committed yet.

use crate::claims::Lease;
use crate::permits::Permit;
use crate::ports::{Commit, Committed, KeptSession, NewRecord, NewTurn, TurnKey};
use crate::step::Decided;
use std::sync::Arc;
use trellis_domain::record::{Body, Cause, Core, FORMAT, Header, Name, Record};
use trellis_domain::{Hash, Timestamp};
use trellis_patterns::{Session, pattern};

#[derive(Debug)]
pub(crate) struct Handling {
    pub(crate) key: TurnKey,
    pub(crate) session: Session,
    /// Counts from 1; higher when an earlier handling of this turn was cut short.
    pub(crate) attempt: u32,
    /// Outcomes that are not committed yet. Nothing is performed while there are any.
    pub(crate) pending: Vec<NewRecord>,
    /// Others commit to the same session at the same time, such as the other steps of a plan.
    pub(crate) contended: bool,
    /// Conflicts in a row between which nothing changed in the session.
    pub(crate) stuck: u32,
    /// Room for the next call, if it was waited for.
    pub(crate) permit: Permit,
    /// Nothing is begun once it is over.
    pub(crate) lease: Arc<Lease>,
    /// Where the next turn looks for its session.
    pub(crate) kept: KeptSession,
}

impl Handling {
    pub(crate) fn new(key: TurnKey, session: Session, attempt: u32) -> Self {
        let (pending, permit, lease, kept) = (Vec::new(), Permit::default(), Arc::default(), KeptSession::default());
        Self { key, session, attempt, pending, contended: false, stuck: 0, permit, lease, kept }
    }

    /// A record of this session that was decided.
    pub(crate) fn own(&self, name: Name, body: Body) -> Decided {
        Decided { session: self.key.session.clone(), causes: causes_of(&self.session, &name), name, body }
    }

    pub(crate) fn decided(&self, decided: Decided, time: Timestamp) -> NewRecord {
        let Decided { session, name, causes, body } = decided;
        // Subagents are pinned to the configuration of the run that they are part of.
        let config = self.session.settings().snapshot.or_else(|| self.pinned()).unwrap_or(Hash::ZERO);
        NewRecord { session, causes, name, config, attempt: self.attempt, time, body }
    }

    fn pinned(&self) -> Option<Hash> {
        Some(self.session.record(&Name::session())?.header.config)
    }

    /// The record of an outcome. That of a call that was about to be made follows from that.
    pub(crate) fn outcome(&self, name: Name, body: Body, attempt: u32, time: Timestamp) -> NewRecord {
        let begun = self.session.intents(&name);
        let is_of_call = body.as_observed().is_some_and(|observed| observed.idempotency_key.is_some());
        let is_of_call = is_of_call || body.as_input_required().is_some();
        let name = self.name_of(name, &body);
        let mut outcome = self.own(name, body);
        outcome.causes.extend(heard(&outcome.body));
        if begun > 0 && is_of_call {
            let about = outcome.name.as_input().map_or_else(|| outcome.name.clone(), |(about, _)| about);
            outcome.causes = vec![Name::intent(&about, begun).into()];
        }
        NewRecord { attempt, ..self.decided(outcome, time) }
    }

    /// The name of what came of an effect: a tool that asks for input has not brought anything yet.
    fn name_of(&self, effect: Name, body: &Body) -> Name {
        if body.as_input_required().is_none() {
            return effect;
        }
        Name::input(&effect, self.session.inputs(&effect) + 1)
    }

    /// An outcome that is known but not committed yet.
    pub(crate) fn keep(&mut self, name: Name, body: Body, attempt: u32, time: Timestamp) {
        let record = self.outcome(name, body, attempt, time);
        self.session.apply(placeholder(&self.key, &record, self.session.seen()));
        self.pending.push(record);
    }

    /// Goes on from a newer state: what is recorded by now is adopted, what is not stays pending.
    pub(crate) fn rebase(&mut self, session: Session) {
        self.session = session;
        self.contended = true;
        let pending = std::mem::take(&mut self.pending);
        for record in pending {
            if !self.session.has(&record.name) {
                self.session.apply(placeholder(&self.key, &record, self.session.seen()));
                self.pending.push(record);
            }
        }
    }

    /// Folds in what was committed to the session right after what it has seen.
    pub(crate) fn apply(&mut self, committed: &Committed) {
        for record in committed.records.iter().filter(|record| record.header.session == self.key.session) {
            self.session.apply(Arc::clone(record));
        }
    }

    /// The turn was closed with this: the next one goes on from its session.
    pub(crate) fn hand_on(&mut self, committed: &Committed) {
        if committed.version == self.session.seen() + 1 {
            self.apply(committed);
        }
        let nothing = Session::new(Arc::default(), Arc::default());
        let session = std::mem::replace(&mut self.session, nothing);
        if session.ended().is_none() {
            self.kept.put(session);
        }
    }

    pub(crate) fn commit(&self, records: Vec<NewRecord>, close: Vec<Name>, open: Vec<NewTurn>) -> Commit {
        Commit {
            scope: self.key.scope.clone(),
            run: self.key.run.clone(),
            session: self.key.session.clone(),
            seen: self.session.seen(),
            seen_of_others: Vec::new(),
            records,
            close,
            open,
        }
    }
}

/// The last message that a model was told before it replied.
pub(crate) fn heard(body: &Body) -> Option<Cause> {
    body.as_replied().filter(|replied| replied.heard > 0).map(|replied| Name::told(replied.heard).into())
}

/// What a record of a session follows from. What is not the pattern's own follows from everything.
pub(crate) fn causes_of(session: &Session, name: &Name) -> Vec<Cause> {
    causes_after(session, name, u32::MAX)
}

/// The same, had the tool that is called asked for input no more than so many times.
pub(crate) fn causes_after(session: &Session, name: &Name, rounds: u32) -> Vec<Cause> {
    let is_own = matches!(name.core(), None | Some(Core::Intent(_) | Core::Input(_)));
    let own = if is_own { own_causes(session, name, rounds) } else { session.tips().to_vec() };
    own.into_iter().chain(told_before(session, name)).filter(|cause| cause != name).map(Cause::from).collect()
}

/// The message before: one follows from the other and the end from the last, so that none can be taken away unnoticed, whether
/// it was heard or not.
fn told_before(session: &Session, name: &Name) -> Option<Name> {
    let last = match name.core() {
        Some(Core::End) => session.told_count(),
        Some(Core::Told(n)) => n.saturating_sub(1),
        Some(_) | None => 0,
    };
    (last > 0).then(|| Name::told(last))
}

/// What the pattern says, the answer of a person that it waited for, that it was about to be done before, and what its tool
/// has asked for.
fn own_causes(session: &Session, name: &Name, rounds: u32) -> Vec<Name> {
    let (outcome, begun) = name.as_intent().unwrap_or_else(|| (name.clone(), u32::MAX));
    let (outcome, rounds) = name.as_input().map_or((outcome, rounds), |(outcome, n)| (outcome, n.saturating_sub(1)));
    let own = match session.routed().map(|routed| pattern(&routed.pattern)) {
        Some(Ok(pattern)) => pattern.causes(session, &outcome),
        Some(Err(_)) | None => session.tips().to_vec(),
    };
    let answer = |about: &Name| {
        let answer = session.park_about(about).map(|park| Name::park_decision(park.number));
        answer.filter(|answer| session.has(answer))
    };
    let mut causes: Vec<_> = own.into_iter().chain(answer(&outcome)).collect();
    for intent in (1..begun).map(|n| Name::intent(&outcome, n)).take_while(|intent| session.has(intent)) {
        for cause in answer(&intent).into_iter().chain([intent]) {
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
    }
    let asked = (1..=session.inputs(&outcome).min(rounds)).map(|n| (n, Name::input(&outcome, n)));
    let before = |n: u32| session.input_required(&outcome, n).is_some_and(|asked| asked.intent < begun);
    for (_, input) in asked.filter(|(n, _)| before(*n)) {
        causes.extend(answer(&input).into_iter().chain([input]));
    }
    causes
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
