//! A run's records against the log that proves them, against their own hashes, and against each other.
//!
//! Whoever has the evidence can do this, on the data folder or far from it: nothing here trusts the store that handed it
//! over. Only the checkpoint's root is taken for given; a checkpoint kept from earlier says whether it is the right one.

use crate::checkpoint::Checkpoint;
use crate::replay::replay;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use trellis_domain::config::Settings;
use trellis_domain::merkle;
use trellis_domain::record::{Cause, Header, Lines, Name, Record, UnreadableRecord};
use trellis_domain::{Hash, SessionId};

/// What a store hands over so that others can check a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// The signed head of the log that the entries are proven by.
    pub checkpoint: String,
    /// One for each record, in the order of the run's events.
    pub entries: Vec<ProvenRecord>,
    /// Large texts of records of older formats, and erasures of the run's texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub erasures: Vec<ProvenErasure>,
    /// The configurations that the run's sessions are pinned to. Their hashes are in the records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub configurations: Vec<String>,
    /// What the store itself found wrong with what it derives from these records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// A record as it is stored, with the proof that it is in the log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ProvenRecord {
    pub leaf: u64,
    pub proof: Vec<Hash>,
    /// Header and body, as they are hashed.
    pub proven: String,
    /// Its texts with their salts; absent in older formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<String>,
    /// Large texts by their hashes.
    #[serde(default, skip_serializing_if = "HashMap::is_empty")]
    pub large: HashMap<String, Arc<str>>,
}

/// An erasure, with the proof that it is in the log.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ProvenErasure {
    pub leaf: u64,
    pub proof: Vec<Hash>,
    /// What is hashed, in base64: its first line is `erasure`, then its key and its text.
    pub input: String,
    pub erasure: Erasure,
}

/// Texts were erased: which, by whom, and why. This is what the log keeps of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Erasure {
    pub workspace: String,
    pub run: String,
    /// Who asked for it.
    pub by: String,
    pub reason: String,
    pub time: i64,
    /// The hashes of erased texts, by the records that name them.
    pub texts: Vec<(String, Vec<Hash>)>,
    /// Records of formats before 3, which had their texts in them, and the hash of what is left of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<(String, Hash)>,
}

/// What an audit of a run's records found.
#[derive(Debug, Default)]
pub struct Audit {
    pub records: usize,
    pub faults: Vec<String>,
    /// The checkpoint that everything was held against.
    pub checkpoint: Option<Checkpoint>,
    contents: HashMap<(SessionId, Name), Hash>,
}

impl Audit {
    /// Checks all of the evidence. The records that could be read come along.
    pub fn of(evidence: &Evidence) -> (Self, Vec<Arc<Record>>) {
        let mut audit = Self { faults: evidence.faults.clone(), ..Self::default() };
        let mut records = Vec::new();
        let checkpoint = match Checkpoint::parse(&evidence.checkpoint) {
            Ok((checkpoint, _)) => checkpoint,
            Err(error) => {
                audit.faults.push(format!("the checkpoint cannot be read: {error}"));
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
        if audit.faults.is_empty() {
            audit.faults.extend(unreached(&records));
            audit.faults.extend(replayed(evidence, &records));
        }
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

/// What does not follow from what came before it. What was erased cannot be read again, so nothing is said of such runs.
fn replayed(evidence: &Evidence, records: &[Arc<Record>]) -> Vec<String> {
    if !evidence.erasures.is_empty() {
        return Vec::new();
    }
    let read = |text: &String| Some((Hash::of(text), Arc::new(Settings::from_snapshot(text.as_bytes()).ok()?)));
    let known: HashMap<_, _> = evidence.configurations.iter().filter_map(read).collect();
    replay(records, &|hash| known.get(&hash).cloned())
}

/// What is wrong with a run whose end does not follow from everything that was recorded in time. Nothing is known of runs
/// that have not ended, and of those of older formats, which named one cause of each record.
pub fn unreached(records: &[Arc<Record>]) -> Vec<String> {
    let place = |record: &Record| (record.header.session.clone(), record.header.name.clone());
    let by_place: HashMap<_, _> = records.iter().map(|record| (place(record), record)).collect();
    let root = records.first().map(|record| (record.header.run.clone(), Name::end()));
    let Some(end) = root.filter(|end| by_place.contains_key(end)) else { return Vec::new() };
    if records.iter().any(|record| record.header.format < COMPLETE_CAUSES) {
        return Vec::new();
    }
    let (mut reached, mut open) = (HashSet::new(), vec![end]);
    while let Some(next) = open.pop() {
        let Some(record) = by_place.get(&next) else { continue };
        if reached.insert(next) {
            let Header { session, causes, .. } = &record.header;
            open.extend(causes.iter().map(|cause| (cause.session_seen_from(session).clone(), cause.name.clone())));
        }
    }
    let lost = records.iter().filter(|record| !record.header.late && !reached.contains(&place(record)));
    let told = |record: &Arc<Record>| {
        format!("nothing that the end follows from needs record {}/{}", record.header.session, record.header.name)
    };
    lost.map(told).collect()
}

/// Since this format a record names everything that it follows from.
const COMPLETE_CAUSES: u16 = 4;

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
    let mut fetch = |hash: Hash| {
        let text = entry.large.get(&hash.to_string()).cloned();
        text.ok_or(UnreadableRecord::Stored { hash, what: "is missing" })
    };
    Record::fetched(&stored, &mut fetch).map(Arc::new).map_err(told)
}
