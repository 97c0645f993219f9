//! Keys of the journal's tables. Ids contain no NUL, so it separates them; numbers are big-endian, so
//! that ranges are in order. The workspace comes first everywhere.

use trellis_domain::record::Name;
use trellis_domain::run::RunState;
use trellis_domain::{ConversationId, Flow, RunId, Scope, SessionId, Timestamp, Workspace};
use trellis_orchestrator::ports::TurnKey;

/// The prefixes inside the index table.
pub(crate) mod prefix {
    pub(crate) const ASIDE: u8 = b'a';
    /// Of the first format of the folder: entries of a hash chain.
    pub(crate) const CHAIN: u8 = b'c';
    pub(crate) const EVENT: u8 = b'e';
    pub(crate) const FINISHED: u8 = b'f';
    pub(crate) const GROUP: u8 = b'g';
    pub(crate) const RUN: u8 = b'h';
    pub(crate) const LISTED: u8 = b'l';
    pub(crate) const LEAF: u8 = b'm';
    pub(crate) const OUTAGE: u8 = b'o';
    pub(crate) const SIGN: u8 = b's';
    pub(crate) const TURN: u8 = b't';
    pub(crate) const CONVERSATION: u8 = b'v';
    pub(crate) const ERASURE: u8 = b'x';
    pub(crate) const TALLY: u8 = b'y';
    pub(crate) const ENDED: u8 = b'z';
}

fn joined(prefix: Option<u8>, parts: &[&str]) -> Vec<u8> {
    let mut key: Vec<u8> = prefix.into_iter().collect();
    for part in parts {
        key.extend_from_slice(part.as_bytes());
        key.push(0);
    }
    key
}

/// All records of a session, in order.
pub(crate) fn session(workspace: &Workspace, session: &SessionId) -> Vec<u8> {
    joined(None, &[workspace.as_str(), session.as_str()])
}

pub(crate) fn record(workspace: &Workspace, of: &SessionId, version: u64, place: u16) -> Vec<u8> {
    let mut key = session(workspace, of);
    key.extend_from_slice(&version.to_be_bytes());
    key.extend_from_slice(&place.to_be_bytes());
    key
}

/// The records that a session began with.
pub(crate) fn first_commit(workspace: &Workspace, of: &SessionId) -> Vec<u8> {
    let mut key = session(workspace, of);
    key.extend_from_slice(&1_u64.to_be_bytes());
    key
}

/// The session that a record's key names.
pub(crate) fn session_of_record(key: &[u8], workspace: &Workspace) -> Option<SessionId> {
    let rest = key.strip_prefix(workspace.as_str().as_bytes())?.strip_prefix(&[0])?;
    let session = rest.split(|byte| *byte == 0).next()?;
    SessionId::new(std::str::from_utf8(session).ok()?).ok()
}

/// All events of a run, in order.
pub(crate) fn events(workspace: &Workspace, run: &RunId) -> Vec<u8> {
    joined(Some(prefix::EVENT), &[workspace.as_str(), run.as_str()])
}

pub(crate) fn event(workspace: &Workspace, run: &RunId, seq: u64) -> Vec<u8> {
    let mut key = events(workspace, run);
    key.extend_from_slice(&seq.to_be_bytes());
    key
}

/// The value of an event: its record's number in the log, and its key.
pub(crate) fn event_value(leaf: u64, record: &[u8]) -> Vec<u8> {
    [&leaf.to_be_bytes(), record].concat()
}

pub(crate) fn read_event(value: &[u8]) -> Option<(u64, &[u8])> {
    let (leaf, record) = value.split_first_chunk()?;
    Some((u64::from_be_bytes(*leaf), record))
}

/// All runs of a workspace, by id.
pub(crate) fn runs(workspace: &Workspace) -> Vec<u8> {
    joined(Some(prefix::RUN), &[workspace.as_str()])
}

pub(crate) fn run(workspace: &Workspace, run: &RunId) -> Vec<u8> {
    joined(Some(prefix::RUN), &[workspace.as_str(), run.as_str()])
}

/// All runs of a workspace, newest first.
pub(crate) fn listed_in(workspace: &Workspace) -> Vec<u8> {
    joined(Some(prefix::LISTED), &[workspace.as_str()])
}

/// All runs of a workspace that ended in this way, newest first.
pub(crate) fn ended_in(workspace: &Workspace, state: RunState) -> Vec<u8> {
    joined(Some(prefix::ENDED), &[workspace.as_str(), state.as_str()])
}

/// All runs of a conversation, newest first.
pub(crate) fn conversation(workspace: &Workspace, conversation: &ConversationId) -> Vec<u8> {
    joined(Some(prefix::CONVERSATION), &[workspace.as_str(), conversation.as_str()])
}

/// The place of a run in a list that begins so.
pub(crate) fn listed(list: &[u8], started: Timestamp, run: &RunId) -> Vec<u8> {
    let mut key = list.to_vec();
    // Flipped, so that later runs sort first.
    key.extend_from_slice(&(!started.as_micros().cast_unsigned()).to_be_bytes());
    key.extend_from_slice(run.as_str().as_bytes());
    key
}

/// What is behind this in a list began before that time.
pub(crate) fn listed_since(list: &[u8], since: Timestamp) -> Vec<u8> {
    let mut key = list.to_vec();
    key.extend_from_slice(&(!since.as_micros().max(0).cast_unsigned()).to_be_bytes());
    // No id has such a byte, so all runs of that moment sort before it.
    key.push(0xff);
    key
}

/// The run that a key of a list names.
pub(crate) fn listed_run(key: &[u8], list: &[u8]) -> Option<RunId> {
    let run = key.get(list.len() + 8..)?;
    RunId::new(std::str::from_utf8(run).ok()?).ok()
}

pub(crate) fn turn(turn: &TurnKey) -> Vec<u8> {
    let scope = &turn.scope;
    let parts = [scope.workspace.as_str(), scope.flow.as_str(), turn.run.as_str(), turn.session.as_str()];
    let mut key = joined(Some(prefix::TURN), &parts);
    key.extend_from_slice(turn.name.as_str().as_bytes());
    key
}

/// The place of a turn that was set aside; it reads back like that of an open one.
pub(crate) fn aside(of: &TurnKey) -> Vec<u8> {
    let mut key = turn(of);
    key[0] = prefix::ASIDE;
    key
}

pub(crate) fn outage(from: Timestamp) -> Vec<u8> {
    numbered(prefix::OUTAGE, from.as_micros().cast_unsigned())
}

pub(crate) fn read_turn(key: &[u8]) -> Option<TurnKey> {
    let mut parts = std::str::from_utf8(key.get(1..)?).ok()?.split('\0');
    let mut next = || parts.next();
    let workspace = Workspace::new(next()?).ok()?;
    let flow = Flow::new(next()?).ok()?;
    let (run, session) = (RunId::new(next()?).ok()?, SessionId::new(next()?).ok()?);
    Some(TurnKey { scope: Scope { workspace, flow }, run, session, name: Name::new(next()?) })
}

pub(crate) fn numbered(prefix: u8, number: u64) -> Vec<u8> {
    let mut key = vec![prefix];
    key.extend_from_slice(&number.to_be_bytes());
    key
}

pub(crate) fn number(key: &[u8]) -> Option<u64> {
    Some(u64::from_be_bytes(key.get(1..9)?.try_into().ok()?))
}

/// The value of a finished entry: which run.
pub(crate) fn finished(workspace: &Workspace, run: &RunId) -> Vec<u8> {
    format!("{workspace}\0{run}").into_bytes()
}

pub(crate) fn read_finished(value: &[u8]) -> Option<(Workspace, RunId)> {
    let (workspace, run) = std::str::from_utf8(value).ok()?.split_once('\0')?;
    Some((Workspace::new(workspace).ok()?, RunId::new(run).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_key_reads_back() {
        let turn_key = TurnKey {
            scope: Scope::default(),
            run: RunId::new("r").unwrap(),
            session: SessionId::new("s").unwrap(),
            name: Name::new("step/4"),
        };
        assert_eq!(read_turn(&turn(&turn_key)), Some(turn_key));
    }

    #[test]
    fn a_record_key_names_its_session() {
        let (workspace, id) = (Workspace::default(), SessionId::new("s").unwrap());
        let key = record(&workspace, &id, 1, 3);
        assert_eq!(session_of_record(&key, &workspace), Some(id.clone()));
        assert_eq!(session_of_record(&key, &Workspace::new("other").unwrap()), None);
        assert!(key.starts_with(&first_commit(&workspace, &id)));
        assert!(!record(&workspace, &id, 2, 0).starts_with(&first_commit(&workspace, &id)));
    }

    #[test]
    fn one_workspace_is_never_a_prefix_of_another() {
        let (short, long) = (Workspace::new("a").unwrap(), Workspace::new("ab").unwrap());
        let id = SessionId::new("s").unwrap();
        assert!(!session(&long, &id).starts_with(&joined(None, &[short.as_str()])));
    }

    #[test]
    fn later_runs_are_listed_first() {
        let (list, run) = (listed_in(&Workspace::default()), RunId::new("r").unwrap());
        let at = |micros| listed(&list, Timestamp::from_micros(micros), &run);
        assert!(at(2) < at(1) && at(1) < at(0));
        assert_eq!(listed_run(&at(5), &list), Some(run.clone()));
        let since = |micros| listed_since(&list, Timestamp::from_micros(micros));
        assert!(at(2) < since(2) && since(2) < at(1));
        assert!(at(0) < since(0) && at(0) < since(-1));
    }
}
