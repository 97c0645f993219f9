//! A turn being handled: its session, and outcomes that are not committed yet.

use crate::permits::Permit;
use crate::ports::{Commit, NewRecord, NewTurn, TurnKey};
use std::sync::Arc;
use trellis_domain::record::{Body, FORMAT, Header, Name, Record, TurnKind};
use trellis_domain::{Hash, SessionId, Timestamp};
use trellis_patterns::Session;

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
}

/// A record that was decided, not performed. It may belong to another session of the run.
#[derive(Debug, Clone)]
pub(crate) struct Decided {
    pub(crate) session: SessionId,
    pub(crate) name: Name,
    pub(crate) causes: Vec<Name>,
    pub(crate) body: Body,
}

impl Handling {
    pub(crate) fn new(key: TurnKey, session: Session, attempt: u32) -> Self {
        Self { key, session, attempt, pending: Vec::new(), contended: false, stuck: 0, permit: Permit::default() }
    }

    /// A record of this session that was decided.
    pub(crate) fn own(&self, name: Name, body: Body) -> Decided {
        Decided { session: self.key.session.clone(), causes: self.causes(&name), name, body }
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

    /// An outcome that is known but not committed yet.
    pub(crate) fn keep(&mut self, name: Name, body: Body, attempt: u32, time: Timestamp) {
        let record = NewRecord { attempt, ..self.decided(self.own(name, body), time) };
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

    /// What a record follows from, inside its session.
    fn causes(&self, name: &Name) -> Vec<Name> {
        let first = name.first_asking();
        if first != *name {
            return vec![first];
        }
        let likely = likely_causes(name);
        if let Some(cause) = likely.into_iter().find(|cause| cause != name && self.session.has(cause)) {
            return vec![cause];
        }
        let newest = self.session.in_order().map(|record| &record.header.name).filter(|other| *other != name).last();
        newest.cloned().into_iter().collect()
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

/// What comes right before a record of that name, the likeliest first; for any other, the newest record.
fn likely_causes(name: &Name) -> Vec<Name> {
    let parts: Vec<&str> = name.as_str().split('/').collect();
    match (parts.as_slice(), name.turn_kind()) {
        ([iteration, "observation"], _) => vec![Name::new(*iteration)],
        (["step", step, "result"], _) => {
            let step = Name::new(format!("step/{step}"));
            vec![step.retry(), step]
        }
        (["fanout", round, "join"], _) => vec![Name::new(format!("fanout/{round}"))],
        (["route", "task-type"], _) => vec![Name::session()],
        (_, Some(TurnKind::Iteration(n))) if n > 1 => vec![Name::observation(n - 1), Name::pattern_decision()],
        (_, Some(TurnKind::Iteration(_) | TurnKind::Plan(0) | TurnKind::Decompose)) => vec![Name::pattern_decision()],
        (_, Some(TurnKind::Review(round))) => vec![Name::join(round)],
        _ => Vec::new(),
    }
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
