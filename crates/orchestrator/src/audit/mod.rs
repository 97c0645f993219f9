//! A run's records against the log that proves them, against their own hashes, and against each other.
//!
//! Whoever has the evidence can do this, on the data folder or far from it: nothing here trusts the store that handed it
//! over. Only the checkpoint's root is taken for given; a checkpoint kept from earlier says whether it is the right one.

mod erased;
mod plausible;
mod reached;

pub use plausible::implausible;
pub use reached::unreached;

use crate::checkpoint::Checkpoint;
use crate::evidence::{Erasure, Evidence, ProvenRecord};
use crate::replay::{Replay, replay};
use std::collections::HashMap;
use std::sync::Arc;
use trellis_domain::config::Settings;
use trellis_domain::merkle;
use trellis_domain::record::{Cause, Lines, Name, Record, UnreadableRecord, speaks_of_later_formats};
use trellis_domain::{Hash, SessionId};

/// What an audit of a run's records found.
#[derive(Debug, Default)]
pub struct Audit {
    pub records: usize,
    pub faults: Vec<String>,
    /// The checkpoint that everything was held against.
    pub checkpoint: Option<Checkpoint>,
    /// What was not replayed, and why; nothing if all of it was.
    pub replay: Replay,
    /// The configurations that came without their secrets: they could not be held against their hashes.
    pub redacted: Vec<Hash>,
    contents: HashMap<(SessionId, Name), Hash>,
}

impl Audit {
    /// Checks all of the evidence. The records that could be read come along.
    pub fn of(evidence: &Evidence) -> (Self, Vec<Arc<Record>>) {
        let redacted = evidence.redacted.iter().map(|configuration| configuration.hash).collect();
        let mut audit = Self { faults: evidence.faults.clone(), redacted, ..Self::default() };
        let mut records = Vec::new();
        let checkpoint = match Checkpoint::parse(&evidence.checkpoint) {
            Ok((checkpoint, _)) => checkpoint,
            Err(error) => {
                audit.faults.push(format!("the checkpoint cannot be read: {error}"));
                audit.replay = Replay::skipped("the checkpoint cannot be read");
                return (audit, records);
            }
        };
        let erasures = audit.erasures(evidence, &checkpoint);
        for entry in &evidence.entries {
            audit.records += 1;
            match read(entry, &checkpoint, &erasures) {
                Ok(record) => {
                    audit.link(&record);
                    records.push(record);
                }
                Err(fault) => audit.faults.push(fault),
            }
        }
        audit.checkpoint = Some(checkpoint);
        audit.faults.extend(erased::without_effect(&erasures, &evidence.entries));
        audit.faults.extend(implausible(&records));
        audit.replay = if audit.faults.is_empty() {
            audit.faults.extend(unreached(&records));
            replayed(evidence, &records)
        } else {
            Replay::skipped("what it would be replayed from is not in order")
        };
        audit.faults.append(&mut audit.replay.faults);
        (audit, records)
    }

    /// The erasures that the log proves.
    fn erasures<'a>(&mut self, evidence: &'a Evidence, checkpoint: &Checkpoint) -> Vec<&'a Erasure> {
        use base64::Engine;
        let mut proven = Vec::new();
        for entry in &evidence.erasures {
            let input = base64::engine::general_purpose::STANDARD.decode(&entry.input).unwrap_or_default();
            let text = input.splitn(3, |byte| *byte == b'\n').nth(2).unwrap_or_default();
            let same = serde_json::from_slice::<Erasure>(text).is_ok_and(|erasure| erasure == entry.erasure);
            let hash = merkle::leaf([input.as_slice()]);
            if same && merkle::includes(entry.leaf, hash, checkpoint.size, checkpoint.root, &entry.proof) {
                proven.push(&entry.erasure);
            } else {
                self.faults.push(format!("the erasure with number {} is not in the log", entry.leaf));
            }
        }
        proven
    }

    /// Checks the number and the links of the next record, which is counted already.
    pub fn link(&mut self, record: &Record) {
        let header = &record.header;
        let name = format!("{}/{}", header.session, header.name);
        if header.seq != self.records as u64 {
            self.faults.push(format!("record {name} has number {}, {} was expected", header.seq, self.records));
        }
        let content = |cause: &Cause| {
            let session = cause.session_seen_from(&header.session).clone();
            self.contents.get(&(session, cause.name.clone())).copied()
        };
        // Before format 3, a cause that was not recorded had no parent.
        let strict = header.format >= 3;
        let known = header.causes.iter().filter_map(|cause| content(cause).or(strict.then_some(Hash::ZERO)));
        if !known.eq(header.parents.iter().copied()) {
            let causes: Vec<_> = header.causes.iter().map(Cause::to_string).collect();
            let fault = format!("record {name} follows from {}, which is not what it was", causes.join(", "));
            self.faults.push(fault);
        }
        self.contents.insert((header.session.clone(), header.name.clone()), header.content);
    }
}

/// What does not follow from what came before it. What was erased cannot be read again.
fn replayed(evidence: &Evidence, records: &[Arc<Record>]) -> Replay {
    if !evidence.erasures.is_empty() {
        return Replay::skipped("texts of it were erased");
    }
    let known = configurations(evidence);
    replay(records, &|hash| known.get(&hash).cloned())
}

/// The configurations that came along, by their hashes.
fn configurations(evidence: &Evidence) -> HashMap<Hash, Arc<Settings>> {
    let redacted = evidence.redacted.iter().map(|redacted| (redacted.hash, &redacted.text));
    let whole = evidence.configurations.iter().map(|text| (Hash::of(text), text));
    let read = |(hash, text): (Hash, &String)| {
        let settings = Settings::from_snapshot(text.as_bytes()).ok()?;
        Some((hash, Arc::new(Settings { snapshot: Some(hash), ..settings })))
    };
    // What can be held against its hash counts.
    redacted.chain(whole).filter_map(read).collect()
}

fn read(entry: &ProvenRecord, checkpoint: &Checkpoint, erasures: &[&Erasure]) -> Result<Arc<Record>, String> {
    let proven = entry.proven.as_bytes();
    let stored = entry.texts.as_ref().map_or_else(|| proven.to_vec(), |texts| [proven, texts.as_bytes()].join(&b'\n'));
    let header = Record::header_of(&stored).map_err(|error| error.to_string())?;
    let name = format!("{}/{}", header.session, header.name);
    let told = |error: UnreadableRecord| format!("record {name}: {error}");
    let hash = merkle::leaf([b"record\n".as_slice(), proven]);
    let included = merkle::includes(entry.leaf, hash, checkpoint.size, checkpoint.root, &entry.proof);
    let replaced = erasures.iter().any(|erasure| erasure.replaced.contains(&(name.clone(), hash)));
    if !included && !replaced {
        return Err(format!("record {name} is not what the log says in entry {}", entry.leaf));
    }
    if !replaced {
        Lines::of(&stored).and_then(|lines| lines.check(&header)).map_err(told)?;
    }
    if speaks_of_later_formats(&stored, header.format) {
        return Err(format!("record {name}: its format is {}, and it says what only later ones can", header.format));
    }
    let mut fetch = |hash: Hash| {
        let text = entry.large.get(&hash.to_string()).cloned();
        text.ok_or(UnreadableRecord::Stored { hash, what: "is missing" })
    };
    Record::fetched(&stored, &mut fetch).map(Arc::new).map_err(told)
}
