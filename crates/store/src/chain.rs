//! The hash chain over everything that is written once: no commit can vanish or change unnoticed.

use crate::folder::Mark;
use crate::keys::{self, prefix};
use crate::tables::{Tables, read_failed};
use trellis_domain::Hash;
use trellis_orchestrator::ports::JournalError;

/// Which table a chained item lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Records,
    Config,
}

impl Table {
    const fn tag(self) -> u8 {
        match self {
            Self::Records => b'r',
            Self::Config => b'c',
        }
    }

    fn from_tag(tag: u8) -> Option<Self> {
        [Self::Records, Self::Config].into_iter().find(|table| table.tag() == tag)
    }
}

/// The items of one commit, as the chain's entry names them.
#[derive(Debug, Default)]
pub(crate) struct Link {
    items: Vec<(Table, Vec<u8>, Hash)>,
}

impl Link {
    pub(crate) fn add(&mut self, table: Table, key: Vec<u8>, value: &[u8]) {
        self.items.push((table, key, Hash::of(value)));
    }

    /// The mark after this commit.
    pub(crate) fn after(&self, mark: Mark) -> Mark {
        let mut parts: Vec<&[u8]> = vec![mark.chain.as_bytes()];
        for (_, key, hash) in &self.items {
            parts.push(key);
            parts.push(hash.as_bytes());
        }
        Mark { number: mark.number + 1, chain: Hash::of_parts(parts) }
    }

    /// The stored entry: the chain's hash, then each item's table and key.
    pub(crate) fn entry(&self, mark: Mark) -> Vec<u8> {
        let mut entry = mark.chain.as_bytes().to_vec();
        for (table, key, _) in &self.items {
            entry.push(table.tag());
            entry.extend_from_slice(&u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
            entry.extend_from_slice(key);
        }
        entry
    }
}

/// The newest entry of the chain.
pub(crate) fn newest(tables: &Tables) -> Result<Mark, JournalError> {
    let (from, to) = (keys::numbered(prefix::CHAIN, 0), keys::numbered(prefix::CHAIN, u64::MAX));
    let Some(row) = tables.read().index_range(from..=to).next_back() else { return Ok(Mark::START) };
    let (key, value) = row.into_inner().map_err(read_failed)?;
    let number = keys::number(&key).unwrap_or(0);
    Ok(Mark { number, chain: read_entry(number, &value)?.0 })
}

/// The mark at a number.
pub(crate) fn at(tables: &Tables, number: u64) -> Result<Option<Mark>, JournalError> {
    if number == 0 {
        return Ok(Some(Mark::START));
    }
    let value = tables.read().index(&keys::numbered(prefix::CHAIN, number))?;
    value.map(|value| Ok(Mark { number, chain: read_entry(number, &value)?.0 })).transpose()
}

/// Recomputes the chain behind a mark up to the newest entry. Every item must be there and unchanged.
pub(crate) fn check_from(tables: &Tables, mut mark: Mark) -> Result<Mark, JournalError> {
    let range = keys::numbered(prefix::CHAIN, mark.number + 1)..=keys::numbered(prefix::CHAIN, u64::MAX);
    let reader = tables.read();
    for row in reader.index_range(range) {
        let (key, value) = row.into_inner().map_err(read_failed)?;
        let number = keys::number(&key).unwrap_or(0);
        if number != mark.number + 1 {
            return Err(JournalError::Damaged(format!("commit {} is missing", mark.number + 1)));
        }
        let (chain, items) = read_entry(number, &value)?;
        let mut link = Link::default();
        for (table, key) in items {
            let stored = match table {
                Table::Records => reader.record(&key)?,
                Table::Config => reader.config(&key)?,
            };
            let missing = || JournalError::Damaged(format!("commit {number} lacks one of its records"));
            link.add(table, key.clone(), &stored.ok_or_else(missing)?);
        }
        mark = link.after(mark);
        if mark.chain != chain {
            return Err(JournalError::Damaged(format!("commit {number} is not what its hash says")));
        }
    }
    Ok(mark)
}

type Items = Vec<(Table, Vec<u8>)>;

fn read_entry(number: u64, bytes: &[u8]) -> Result<(Hash, Items), JournalError> {
    let unreadable = || JournalError::Damaged(format!("the chain entry of commit {number} cannot be read"));
    let (chain, mut rest) = bytes.split_at_checked(32).ok_or_else(unreadable)?;
    let chain = Hash::from_bytes(chain.try_into().map_err(|_| unreadable())?);
    let mut items = Vec::new();
    while let [tag, high, low, tail @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (key, tail) = tail.split_at_checked(length).ok_or_else(unreadable)?;
        items.push((Table::from_tag(*tag).ok_or_else(unreadable)?, key.to_vec()));
        rest = tail;
    }
    if rest.is_empty() { Ok((chain, items)) } else { Err(unreadable()) }
}
