//! What is handed over so that others can check a run.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use trellis_domain::Hash;

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
    /// Those of them that hold secrets, without these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<RedactedConfiguration>,
    /// What the store itself found wrong with what it derives from these records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// A configuration whose secrets were left out. Only who has the secrets can hold it against its hash.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RedactedConfiguration {
    /// The hash of the whole.
    pub hash: Hash,
    pub text: String,
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
