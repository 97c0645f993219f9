//! What the first format of the folder had in place of the Merkle log: a hash chain over commits, and a mark of how far it
//! was known to reach.

use crate::keys::{self, prefix};
use crate::log::LeafKind;
use crate::tables::{Reader, read_failed};
use std::path::Path;
use trellis_domain::Hash;
use trellis_orchestrator::ports::JournalError;

/// Number and chain hash of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainMark {
    pub(super) number: u64,
    pub(super) chain: Hash,
}

impl ChainMark {
    const START: Self = Self { number: 0, chain: Hash::ZERO };
}

pub(crate) const MARK_FILE: &str = "high-water";

/// The newest commit that was known to be on disk.
pub(super) fn known(folder: &Path) -> Option<ChainMark> {
    let bytes = std::fs::read(folder.join(MARK_FILE)).ok()?;
    bytes.chunks(72).filter_map(read_slot).max_by_key(|mark| mark.number)
}

fn read_slot(bytes: &[u8]) -> Option<ChainMark> {
    let (content, check) = bytes.split_at_checked(40)?;
    if check != Hash::of(content).as_bytes() {
        return None;
    }
    let (number, chain) = content.split_at(8);
    Some(ChainMark {
        number: u64::from_be_bytes(number.try_into().ok()?),
        chain: Hash::from_bytes(chain.try_into().ok()?),
    })
}

/// One commit: what it wrote once, with the values as they are stored.
pub(super) struct ChainLink {
    pub(super) mark: ChainMark,
    pub(super) items: Vec<(LeafKind, Vec<u8>, fjall::UserValue)>,
}

/// Recomputes the whole chain and hands over its commits, oldest first. Every item must be there and unchanged.
pub(super) fn walk(reader: &Reader<'_>, mut take: impl FnMut(ChainLink)) -> Result<Vec<ChainMark>, JournalError> {
    let (mut mark, mut marks) = (ChainMark::START, vec![ChainMark::START]);
    for row in reader.index_prefix(&[prefix::CHAIN]) {
        let (key, value) = row.into_inner().map_err(read_failed)?;
        let number = keys::number(&key).unwrap_or(0);
        if number != mark.number + 1 {
            return Err(JournalError::Damaged(format!("commit {} is missing", mark.number + 1)));
        }
        let (chain, named) = read_entry(number, &value)?;
        let mut items = Vec::with_capacity(named.len());
        for (kind, key) in named {
            let stored = if kind == LeafKind::Config { reader.config(&key)? } else { reader.record(&key)? };
            let missing = || JournalError::Damaged(format!("commit {number} lacks one of its records"));
            items.push((kind, key, stored.ok_or_else(missing)?));
        }
        mark = after(mark, &items);
        if mark.chain != chain {
            return Err(JournalError::Damaged(format!("commit {number} is not what its hash says")));
        }
        marks.push(mark);
        take(ChainLink { mark, items });
    }
    Ok(marks)
}

fn after(mark: ChainMark, items: &[(LeafKind, Vec<u8>, fjall::UserValue)]) -> ChainMark {
    let hashes: Vec<_> = items.iter().map(|(_, _, value)| Hash::of(value)).collect();
    let mut parts: Vec<&[u8]> = vec![mark.chain.as_bytes()];
    for ((_, key, _), hash) in items.iter().zip(&hashes) {
        parts.push(key);
        parts.push(hash.as_bytes());
    }
    ChainMark { number: mark.number + 1, chain: Hash::of_parts(parts) }
}

type LinkItems = Vec<(LeafKind, Vec<u8>)>;

fn read_entry(number: u64, bytes: &[u8]) -> Result<(Hash, LinkItems), JournalError> {
    let unreadable = || JournalError::Damaged(format!("the chain entry of commit {number} cannot be read"));
    let (chain, mut rest) = bytes.split_at_checked(32).ok_or_else(unreadable)?;
    let chain = Hash::from_bytes(chain.try_into().map_err(|_| unreadable())?);
    let mut items = Vec::new();
    while let [tag, high, low, tail @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (key, tail) = tail.split_at_checked(length).ok_or_else(unreadable)?;
        let kind = match tag {
            b'r' => LeafKind::Record,
            b'c' => LeafKind::Config,
            _ => return Err(unreadable()),
        };
        items.push((kind, key.to_vec()));
        rest = tail;
    }
    if rest.is_empty() { Ok((chain, items)) } else { Err(unreadable()) }
}
