//! Reading everything in the journal and holding it against the log, and against itself.
//!
//! Records, changes of the configuration and erasures are proven by the log. What hangs on them is either recomputed from
//! them (the lists and lines of runs, events, current values) or named by a hash in them (texts, snapshots). Documents come
//! and go; a tally of them is kept beside them. A row that nothing accounts for is a fault, too.

mod config;
mod documents;
mod runs;

pub(crate) use runs::read as records;

use crate::log::{self, Leaf, LeafKind};
use crate::tables::{Reader, Tables, read_failed};
use std::collections::HashSet;
use trellis_domain::merkle::Frontier;
use trellis_domain::record::{Lines, Record};
use trellis_domain::{Hash, Workspace, counted};
use trellis_orchestrator::ports::JournalError;

/// What was read, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Checked {
    /// Entries of the log, and its root.
    pub entries: u64,
    pub root: Option<Hash>,
    pub records: u64,
    pub texts: u64,
    pub runs: u64,
    pub documents: u64,
    pub rows: u64,
    /// What was found wrong, as far as it is told one by one.
    pub faults: Vec<String>,
    /// How many faults there are in all.
    pub wrong: usize,
}

impl Checked {
    /// One flipped bit can make thousands of rows unreadable: more than this many nobody reads.
    const TOLD: usize = 50;

    pub(crate) fn fault(&mut self, what: impl Into<String>) {
        self.wrong += 1;
        if self.faults.len() < Self::TOLD {
            self.faults.push(what.into());
        }
    }

    fn unless(&mut self, good: bool, what: impl FnOnce() -> String) {
        if !good {
            self.fault(what());
        }
    }

    /// Counts what could be read, and tells of what could not.
    fn read<T>(&mut self, place: &str, result: Result<T, impl std::fmt::Display>) -> Option<T> {
        result.map_err(|error| self.fault(format!("{place}: {error}"))).ok()
    }
}

/// What the log says there must be.
#[derive(Default)]
struct Proven {
    records: u64,
    changes: u64,
    erasures: u64,
    /// Large texts that records name, by their keys.
    texts: HashSet<Vec<u8>>,
    snapshots: HashSet<(Workspace, Hash)>,
}

/// One entry of the log: what it covers must be there, and be what was written.
pub(crate) fn entry(reader: &Reader<'_>, number: u64) -> Result<Leaf, JournalError> {
    let leaf = log::leaf(reader, number)?;
    covered(reader, number, &leaf)?;
    Ok(leaf)
}

/// What an entry covers, and whether an erasure has replaced it.
fn covered(reader: &Reader<'_>, number: u64, leaf: &Leaf) -> Result<(fjall::UserValue, bool), JournalError> {
    let name = || named(leaf).map_or_else(String::new, |name| format!(" ({name})"));
    let damaged = |what: &str| JournalError::Damaged(format!("entry {number} of the log{}: {what}", name()));
    let value = log::covered(reader, leaf)?.ok_or_else(|| damaged("what it covers is missing"))?;
    let hash = leaf.kind.hash(&leaf.key, &value);
    if hash == leaf.hash() {
        return Ok((value, false));
    }
    // A record of an older format had its texts in it; an erasure that is itself in the log tells what is left of it.
    if leaf.kind == LeafKind::Record && crate::erasures::replaced(reader, &value, hash)? {
        return Ok((value, true));
    }
    Err(damaged("what it covers is not what was written"))
}

/// What a leaf covers, in words.
fn named(leaf: &Leaf) -> Option<String> {
    let mut parts = leaf.key.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part));
    let (first, second) = (parts.next()?, parts.next()?);
    match leaf.kind {
        LeafKind::Record => Some(format!("session {second} of workspace {first}")),
        LeafKind::Config => Some(format!("item {second}/{} of workspace {}", parts.next()?, first.get(1..)?)),
        LeafKind::Erasure => None,
    }
}

/// Reads all there is.
pub(crate) fn everything(tables: &Tables) -> Checked {
    let (reader, mut checked) = (tables.read(), Checked::default());
    let proven = the_log(&reader, &mut checked);
    runs::check(&reader, &proven, &mut checked);
    config::check(&reader, &proven, &mut checked);
    texts(&reader, &proven, &mut checked);
    documents::check(&reader, &mut checked);
    found_by_key(&reader, &mut checked);
    checked
}

/// Every entry, its hashes, and what it covers.
fn the_log(reader: &Reader<'_>, checked: &mut Checked) -> Proven {
    let (mut proven, mut frontier) = (Proven::default(), Frontier::default());
    let Some(size) = checked.read("the log", log::size(reader)) else { return proven };
    for number in 0..size {
        let Some(leaf) = checked.read("the log", log::leaf(reader, number)) else { continue };
        if frontier.size() == number && frontier.append(leaf.hash()) != leaf.nodes {
            checked.fault(format!("entry {number} of the log does not fit those before it"));
        }
        let value = checked.read("the record", covered(reader, number, &leaf));
        match leaf.kind {
            LeafKind::Config => proven.changes += 1,
            LeafKind::Erasure => proven.erasures += 1,
            LeafKind::Record => {
                proven.records += 1;
                if let Some((value, replaced)) = value {
                    record(reader, &value, replaced, &mut proven, checked);
                }
            }
        }
    }
    checked.entries = size;
    checked.root = (frontier.size() == size).then(|| frontier.root());
    proven
}

/// A record's own hash, its texts and its configuration.
fn record(reader: &Reader<'_>, value: &[u8], replaced: bool, proven: &mut Proven, checked: &mut Checked) {
    let header = Record::header_of(value);
    let Some(header) = checked.read("a record", header) else { return };
    let name = format!("record {}/{} of run {}", header.session, header.name, header.run);
    let lines = Lines::of(value).and_then(|lines| lines.check(&header).map(|()| lines));
    if !replaced && checked.read(&name, lines).is_none() {
        return;
    }
    let mut named = Vec::new();
    let mut fetch = |hash| {
        named.push(crate::tables::blob_key(&header.workspace, hash));
        reader.text(&header.workspace, hash)
    };
    let body = Record::fetched(value, &mut fetch);
    checked.texts += named.len() as u64;
    proven.texts.extend(named);
    checked.records += u64::from(checked.read(&name, body).is_some());
    if proven.snapshots.insert((header.workspace.clone(), header.config)) && header.config != Hash::ZERO {
        let snapshot = reader.blob(&header.workspace, header.config);
        let snapshot = checked.read("a configuration snapshot", snapshot);
        let good = snapshot.flatten().is_some_and(|bytes| Hash::of(&bytes) == header.config);
        checked.unless(good, || format!("{name}: its configuration {} is missing or changed", header.config));
    }
}

/// Large texts and snapshots: each is what its key says, and somebody names it.
fn texts(reader: &Reader<'_>, proven: &Proven, checked: &mut Checked) {
    for row in reader.all_blobs() {
        let row = row.into_inner().map_err(read_failed);
        let Some((key, value)) = checked.read("the stored texts", row) else { continue };
        checked.rows += 1;
        // A pin may be stored that no session used yet; it is its own hash.
        let snapshot = key.len() > 32 && Hash::of(&value).as_bytes() == &key[key.len() - 32..];
        let text = proven.texts.contains(&*key);
        checked.unless(snapshot || text, || "a stored text belongs to no record".to_owned());
    }
}

/// Whatever a scan finds, a look for its key must find too: that goes through filters which a scan never reads.
fn found_by_key(reader: &Reader<'_>, checked: &mut Checked) {
    for (name, table) in reader.tables() {
        let mut lost = 0_u64;
        for row in reader.all(table) {
            let row = row.into_inner().map_err(read_failed);
            let Some((key, value)) = checked.read(name, row) else { continue };
            checked.rows += 1;
            lost += u64::from(!matches!(reader.get(table, &key), Ok(Some(found)) if found == value));
        }
        checked.unless(lost == 0, || format!("{name}: {} cannot be found by key", counted(lost, "row")));
    }
}
