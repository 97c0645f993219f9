//! The Merkle log over everything that is written once: records, changes of the configuration, erasures.
//!
//! Each leaf has a row that names what it covers and holds all nodes of the tree that are whole with it.

use crate::keys::{self, prefix};
use crate::tables::{Reader, read_failed};
use trellis_domain::Hash;
use trellis_domain::merkle::{self, Frontier};
pub(crate) use trellis_orchestrator::leaf::LeafKind;
use trellis_orchestrator::ports::JournalError;

/// A leaf as it is stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub(crate) kind: LeafKind,
    /// The row that it covers.
    pub(crate) key: Vec<u8>,
    /// The nodes that are whole with it, from the leaf's own hash upwards.
    pub(crate) nodes: Vec<Hash>,
}

impl Leaf {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind.tag()];
        bytes.extend_from_slice(&u16::try_from(self.key.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend_from_slice(&self.key);
        self.nodes.iter().for_each(|node| bytes.extend_from_slice(node.as_bytes()));
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        let kind = LeafKind::of_tag(*tag)?;
        let (length, rest) = rest.split_at_checked(2)?;
        let (key, nodes) = rest.split_at_checked(usize::from(u16::from_be_bytes(length.try_into().ok()?)))?;
        let hash = |bytes: &[u8]| Some(Hash::from_bytes(bytes.try_into().ok()?));
        let nodes = nodes.chunks(32).map(hash).collect::<Option<Vec<_>>>().filter(|nodes| !nodes.is_empty())?;
        Some(Self { kind, key: key.to_vec(), nodes })
    }

    pub(crate) fn hash(&self) -> Hash {
        self.nodes[0]
    }
}

fn damaged(number: u64, what: &str) -> JournalError {
    JournalError::Damaged(format!("entry {number} of the log {what}"))
}

/// The leaf with this number.
pub(crate) fn leaf(reader: &Reader<'_>, number: u64) -> Result<Leaf, JournalError> {
    let row = reader.index(&keys::numbered(prefix::LEAF, number))?.ok_or_else(|| damaged(number, "is missing"))?;
    Leaf::from_bytes(&row).ok_or_else(|| damaged(number, "cannot be read"))
}

/// A stored node of the tree.
pub(crate) fn node(reader: &Reader<'_>, level: u8, index: u64) -> Result<Hash, JournalError> {
    // It is whole with its last leaf.
    let last = ((index + 1) << level) - 1;
    leaf(reader, last)?.nodes.get(usize::from(level)).copied().ok_or_else(|| damaged(last, "lacks a hash"))
}

/// How many leaves the log has.
pub(crate) fn size(reader: &Reader<'_>) -> Result<u64, JournalError> {
    let (from, to) = (keys::numbered(prefix::LEAF, 0), keys::numbered(prefix::LEAF, u64::MAX));
    let Some(row) = reader.index_range(from..=to).next_back() else { return Ok(0) };
    let key = row.key().map_err(read_failed)?;
    Ok(keys::number(&key).ok_or_else(|| JournalError::Damaged("the log has an entry without number".to_owned()))? + 1)
}

/// The root of the log when it had this size.
pub(crate) fn root(reader: &Reader<'_>, size: u64) -> Result<Hash, JournalError> {
    merkle::root(size, |level, index| node(reader, level, index))
}

pub(crate) fn frontier(reader: &Reader<'_>, size: u64) -> Result<Frontier, JournalError> {
    Frontier::at(size, |level, index| node(reader, level, index))
}

/// The newest group of commits in the database.
pub(crate) fn group(reader: &Reader<'_>) -> Result<u64, JournalError> {
    let Some(row) = reader.index(GROUP)? else { return Ok(0) };
    let number = (*row).try_into().map(u64::from_be_bytes);
    number.map_err(|_| JournalError::Damaged("the number of the newest group cannot be read".to_owned()))
}

/// Where the number of the newest group stands.
pub(crate) const GROUP: &[u8] = &[prefix::GROUP];

/// What a leaf covers, as it is stored now; none if it is missing.
pub(crate) fn covered(reader: &Reader<'_>, leaf: &Leaf) -> Result<Option<fjall::UserValue>, JournalError> {
    match leaf.kind {
        LeafKind::Record => reader.record(&leaf.key),
        LeafKind::Config => reader.config(&leaf.key),
        LeafKind::Erasure => reader.index(&leaf.key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_reads_back() {
        let leaf = Leaf { kind: LeafKind::Config, key: b"key".to_vec(), nodes: vec![Hash::ZERO, Hash::of([1])] };
        assert_eq!(Leaf::from_bytes(&leaf.to_bytes()), Some(leaf));
        assert_eq!(Leaf::from_bytes(b"r\0\x03key"), None, "it has no hash");
        assert_eq!(Leaf::from_bytes(b"z\0\0"), None);
    }
}
