//! The rules of the commit contract, once for every journal: given what is stored, what does a commit
//! write, or does it conflict?

use crate::ports::{Commit, NewRecord, OpenTurn, TurnKey, World};
use std::collections::BTreeMap;
use std::sync::Arc;
use trellis_domain::record::{Accepted, Body, FORMAT, Header, Name, Record};
use trellis_domain::run::{RunState, RunSummary};
use trellis_domain::sealed::seal;
use trellis_domain::usage::Usage;
use trellis_domain::{Hash, RunId, Scope, SessionId, Timestamp, Workspace};

/// What a committer must know of a session: its version, and the hash of each record by name.
#[derive(Debug, Clone, Default)]
pub struct SessionHead {
    pub version: u64,
    names: Names,
}

impl SessionHead {
    pub fn add(&mut self, header: &Header) {
        self.add_record(header.name.clone(), header.version, header.content);
    }

    /// The same of a record whose header was not read.
    pub fn add_record(&mut self, name: Name, version: u64, content: Hash) {
        self.version = self.version.max(version);
        self.names.add(name, content);
    }

    pub fn has_ended(&self) -> bool {
        self.names.get(&Name::end()).is_some()
    }
}

/// The hash of each record by name. Every commit works on a copy, so that one which fails leaves no trace; copies share
/// what is older, so that a commit to a long session costs no more than one to a short session.
#[derive(Debug, Clone, Default)]
struct Names {
    older: Arc<BTreeMap<Name, Hash>>,
    newer: Vec<(Name, Hash)>,
}

impl Names {
    const MOST_NEWER: usize = 32;

    fn add(&mut self, name: Name, hash: Hash) {
        self.newer.push((name, hash));
        if self.newer.len() > Self::MOST_NEWER {
            Arc::make_mut(&mut self.older).extend(self.newer.drain(..));
        }
    }

    fn get(&self, name: &Name) -> Option<Hash> {
        let newer = self.newer.iter().find(|(newer, _)| newer == name).map(|(_, hash)| hash);
        newer.or_else(|| self.older.get(name)).copied()
    }
}

/// What the rules may look at.
pub trait Stored {
    type Error;

    fn session(&mut self, session: &SessionId) -> Result<SessionHead, Self::Error>;
    fn run(&mut self) -> Result<Option<RunSummary>, Self::Error>;
    fn is_open(&mut self, turn: &TurnKey) -> Result<bool, Self::Error>;

    /// Something that nobody can guess, another each time: what a record's texts are salted with.
    fn seed(&mut self) -> [u8; 32];
}

/// What texts are salted with: from a secret that only this process has, and that it forgets.
pub struct Salts {
    secret: Hash,
    count: u64,
}

impl std::fmt::Debug for Salts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Salts").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Salts {
    pub fn new(world: &dyn World) -> Self {
        let drawn: Vec<_> = (0..4).map(|_| world.fresh_id()).collect();
        Self { secret: Hash::of(drawn.concat()), count: 0 }
    }

    pub fn next_seed(&mut self) -> [u8; 32] {
        self.count += 1;
        *Hash::of_joined([self.secret.as_bytes().as_slice(), &self.count.to_be_bytes()]).as_bytes()
    }
}

/// What a commit writes.
#[derive(Debug)]
pub struct Prepared {
    pub version: u64,
    pub records: Vec<PreparedRecord>,
    pub summary: RunSummary,
    /// The touched sessions as they are after it.
    pub heads: BTreeMap<SessionId, SessionHead>,
    /// Whether this commit began the run.
    pub began: bool,
    pub closed: Vec<TurnKey>,
    pub opened: Vec<OpenTurn>,
}

#[derive(Debug)]
pub struct PreparedRecord {
    pub record: Arc<Record>,
    /// The stored form.
    pub bytes: Vec<u8>,
    /// Its large texts, which are stored apart.
    pub blobs: Vec<(Hash, Arc<str>)>,
}

/// Applies the rules. None means conflict.
pub fn prepare<S: Stored>(commit: Commit, stored: &mut S) -> Result<Option<Prepared>, S::Error> {
    let Some(mut heads) = heads_if_free(&commit, stored)? else { return Ok(None) };
    let own = heads.get(&commit.session).cloned().unwrap_or_default();
    let ended = own.has_ended();
    let ends = commit.records.iter().any(|record| record.session == commit.session && record.name == Name::end());
    let decided = !commit.close.is_empty() || !commit.open.is_empty() || ends;
    if (decided && own.version != commit.seen) || (ended && (!commit.open.is_empty() || ends)) {
        return Ok(None);
    }
    for (session, seen) in &commit.seen_of_others {
        if stored.session(session)?.version != *seen {
            return Ok(None);
        }
    }
    let key = |session: &SessionId, name: &Name| TurnKey {
        scope: commit.scope.clone(),
        run: commit.run.clone(),
        session: session.clone(),
        name: name.clone(),
    };
    let mut closed: Vec<_> = commit.close.iter().map(|name| key(&commit.session, name)).collect();
    if let Some(turn) = closed.first()
        && !stored.is_open(turn)?
    {
        return Ok(None);
    }
    let mut others = closed.split_off(closed.len().min(1));
    for turn in others.drain(..) {
        if stored.is_open(&turn)? {
            closed.push(turn);
        }
    }
    let known = stored.run()?;
    let began = known.is_none();
    let opened =
        commit.open.iter().map(|turn| OpenTurn::new(key(&turn.session, &turn.name), turn.due, began)).collect();
    let Some(mut summary) = known.or_else(|| first_summary(&commit)) else { return Ok(None) };
    for (session, head) in &mut heads {
        // A mere closing leaves the version as it is: there is nothing new to see.
        head.version += u64::from(commit.records.iter().any(|record| record.session == *session));
    }
    let version = heads.get(&commit.session).map_or(own.version, |head| head.version);
    let (scope, run) = (commit.scope.clone(), commit.run.clone());
    let mut records = Vec::with_capacity(commit.records.len());
    for new in commit.records {
        summary.seq += 1;
        let parents = parents(&new, &heads, stored)?;
        let head = heads.entry(new.session.clone()).or_default();
        let late = head.has_ended();
        let place = RecordPlace { scope: &scope, run: &run, seq: summary.seq, late };
        let prepared = write(new, parents, head, &place, stored.seed());
        head.add(&prepared.record.header);
        update(&mut summary, &prepared.record);
        records.push(prepared);
    }
    heads.retain(|session, _| records.iter().any(|prepared| prepared.record.header.session == *session));
    Ok(Some(Prepared { version, records, summary, heads, began, closed, opened }))
}

/// The heads of all touched sessions, if every name is free.
fn heads_if_free<S: Stored>(
    commit: &Commit,
    stored: &mut S,
) -> Result<Option<BTreeMap<SessionId, SessionHead>>, S::Error> {
    let mut heads = BTreeMap::new();
    heads.insert(commit.session.clone(), stored.session(&commit.session)?);
    for record in &commit.records {
        if !heads.contains_key(&record.session) {
            heads.insert(record.session.clone(), stored.session(&record.session)?);
        }
        if heads[&record.session].names.get(&record.name).is_some() {
            return Ok(None);
        }
    }
    Ok(Some(heads))
}

/// The contents of what a record follows from, as they are stored or about to be.
fn parents<S: Stored>(
    new: &NewRecord,
    heads: &BTreeMap<SessionId, SessionHead>,
    stored: &mut S,
) -> Result<Vec<Hash>, S::Error> {
    let mut parents = Vec::with_capacity(new.causes.len());
    for cause in &new.causes {
        let session = cause.session_seen_from(&new.session);
        let content = match heads.get(session) {
            Some(head) => head.names.get(&cause.name),
            None => stored.session(session)?.names.get(&cause.name),
        };
        parents.push(content.unwrap_or(Hash::ZERO));
    }
    Ok(parents)
}

/// Where a record stands.
struct RecordPlace<'a> {
    scope: &'a Scope,
    run: &'a RunId,
    seq: u64,
    late: bool,
}

/// Fills in what only the committer knows and writes the stored form.
fn write(
    new: NewRecord,
    parents: Vec<Hash>,
    head: &SessionHead,
    place: &RecordPlace<'_>,
    seed: [u8; 32],
) -> PreparedRecord {
    let sealed = seal(&new.body, seed);
    let header = Header {
        format: FORMAT,
        workspace: place.scope.workspace.clone(),
        flow: place.scope.flow.clone(),
        run: place.run.clone(),
        session: new.session,
        name: new.name,
        seq: place.seq,
        version: head.version,
        parents,
        causes: new.causes,
        content: Hash::of(&sealed.body),
        config: new.config,
        attempt: new.attempt,
        late: place.late,
        trace: None,
        time: new.time,
    };
    let bytes = Record::stored(&header, &sealed);
    PreparedRecord { record: Arc::new(Record { header, body: new.body }), bytes, blobs: sealed.blobs }
}

/// A run begins with the commit that accepts its question.
fn first_summary(commit: &Commit) -> Option<RunSummary> {
    let mut root = commit.records.iter().filter(|record| record.session == commit.run);
    let (accepted, started) = root.find_map(|record| Some((record.body.as_accepted()?, record.time)))?;
    Some(begun(&commit.scope.workspace, &commit.run, accepted, started))
}

fn begun(workspace: &Workspace, run: &RunId, accepted: &Accepted, started: Timestamp) -> RunSummary {
    RunSummary {
        workspace: workspace.clone(),
        run: run.clone(),
        state: RunState::Queued,
        question: accepted.question.text().chars().take(RunSummary::QUESTION_CHARS).collect(),
        pattern: None,
        task_type: None,
        conversation: accepted.conversation.clone(),
        started,
        ended: None,
        seq: 0,
        usage: Usage::default(),
        parked: Vec::new(),
        revision: Some(accepted.revision).filter(|it| *it >= RunSummary::REVISIONS_SINCE).unwrap_or_default(),
    }
}

/// The line of a run in the list of runs, from all its records: what the committer keeps up to date. None if these
/// are not the records of a run from its beginning.
pub fn summary_of(records: &[Arc<Record>]) -> Option<RunSummary> {
    let Record { header, body } = &**records.first()?;
    let mut summary = begun(&header.workspace, &header.run, body.as_accepted()?, header.time);
    for record in records {
        summary.seq = record.header.seq;
        update(&mut summary, record);
    }
    Some(summary)
}

/// Keeps the run's line in the list of runs up to date.
fn update(summary: &mut RunSummary, record: &Record) {
    let session = &record.header.session;
    let root = *session == summary.run;
    match &record.body {
        Body::Parked(parked) if !record.header.late => {
            summary.parked.push((session.clone(), parked.number));
            summary.state = RunState::Waiting;
        }
        Body::Settled(settled) => {
            summary.parked.retain(|(parked, number)| (parked, *number) != (session, settled.number));
        }
        Body::Ended(_) => summary.parked.retain(|(parked, _)| parked != session),
        Body::Accepted(_)
        | Body::Routed(_)
        | Body::Replied(_)
        | Body::Observed(_)
        | Body::Intended(_)
        | Body::InputRequired(_)
        | Body::FannedOut(_)
        | Body::Joined(_)
        | Body::Told(_)
        | Body::Parked(_) => {}
    }
    if summary.state == RunState::Waiting && summary.parked.is_empty() {
        summary.state = RunState::Running;
    }
    match &record.body {
        Body::Routed(routed) if root => {
            summary.pattern = Some(routed.pattern.clone());
            summary.task_type = Some(routed.task_type.clone());
        }
        Body::Ended(ended) if root => {
            summary.state = ended.reason.run_state();
            summary.ended = Some(record.header.time);
        }
        Body::Accepted(_)
        | Body::Routed(_)
        | Body::Intended(_)
        | Body::FannedOut(_)
        | Body::Joined(_)
        | Body::Parked(_)
        | Body::Settled(_)
        | Body::Told(_)
        | Body::Ended(_) => {}
        Body::Replied(_) | Body::InputRequired(_) | Body::Observed(_) => {
            if !summary.state.is_end() && summary.parked.is_empty() {
                summary.state = RunState::Running;
            }
            if !record.header.late {
                trellis_patterns::session::add_cost(&mut summary.usage, &record.body, summary.revision);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However many there are, each name is found, and a copy that goes on changes nothing for the others.
        #[test]
        fn names_are_found_and_copies_are_apart(count in 0_usize..200, copied_at in 0_usize..200) {
            let name = |n: usize| Name::new(format!("r{n}"));
            let (mut names, mut copy) = (Names::default(), Names::default());
            for n in 0..count {
                if n == copied_at {
                    copy = names.clone();
                }
                names.add(name(n), Hash::of(n.to_be_bytes()));
            }
            let in_copy = if copied_at < count { copied_at } else { 0 };
            for n in 0..=count {
                prop_assert_eq!(names.get(&name(n)), (n < count).then(|| Hash::of(n.to_be_bytes())));
                prop_assert_eq!(copy.get(&name(n)).is_some(), n < in_copy);
            }
        }
    }
}
