//! Documents as the tables have them: blocks of passages, and for each word of a block where it is.

use std::collections::{BTreeMap, HashMap};
use trellis_domain::Hash;
use trellis_orchestrator::documents::words;
use trellis_orchestrator::ports::{JournalError, Passage, SearchDocument};

use crate::error::damaged;

/// Most passages of a block.
pub(super) const BLOCK: usize = 256;

/// A passage by its block and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Spot(i64);

impl Spot {
    pub(super) fn new(block: i64, at: u8) -> Self {
        Self((block << 8) | i64::from(at))
    }

    pub(super) fn block(self) -> i64 {
        self.0 >> 8
    }

    pub(super) fn at(self) -> i16 {
        i16::from(self.0.to_le_bytes()[0])
    }
}

/// What a word is in: the text of a passage, and what stands above it.
pub(super) type Parts<T> = [T; 2];

/// A passage that has a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) at: u8,
    /// How often the word is there.
    pub(super) times: Parts<u32>,
    /// How many words there are in all.
    pub(super) lengths: Parts<u32>,
}

impl Posting {
    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.at);
        for number in self.times.into_iter().chain(self.lengths) {
            write_number(bytes, number);
        }
    }

    /// The next posting of an entry.
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (at, rest) = bytes.split_first()?;
        *bytes = rest;
        let mut number = || read_number(bytes);
        let (times, lengths) = ([number()?, number()?], [number()?, number()?]);
        Some(Self { at: *at, times, lengths })
    }
}

/// Seven bits in a byte, the lowest first; the highest bit says that there are more.
fn write_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

fn read_number(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The passages of a block that have a word.
pub(super) fn postings(mut entries: &[u8]) -> Result<Vec<Posting>, JournalError> {
    let mut found = Vec::new();
    while !entries.is_empty() {
        let next = Posting::read(&mut entries);
        found.push(next.ok_or_else(|| damaged("an entry of the search index is cut off; load the documents anew"))?);
    }
    Ok(found)
}

/// A word of a block.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// How many passages have it.
    pub(super) passages: Parts<i16>,
    pub(super) postings: Vec<u8>,
}

/// The words of passages that are written together.
#[derive(Debug, Default)]
pub(super) struct BlockWords {
    pub(super) entries: BTreeMap<String, Entry>,
    pub(super) lengths: Parts<i64>,
}

impl BlockWords {
    pub(super) fn of(document: &SearchDocument, passages: &[Passage]) -> Self {
        let mut block = Self::default();
        for (at, passage) in (0..=u8::MAX).zip(passages) {
            let above = format!("{} {}", document.info.title, passage.place.headings.join(" "));
            block.add(at, [&passage.text, &above]);
        }
        block
    }

    fn add(&mut self, at: u8, texts: Parts<&str>) {
        let mut counted: HashMap<String, Parts<u32>> = HashMap::new();
        let mut lengths: Parts<u32> = [0; 2];
        for (part, text) in texts.into_iter().enumerate() {
            for word in words(text) {
                counted.entry(word.text).or_default()[part] += 1;
                lengths[part] += 1;
            }
            self.lengths[part] += i64::from(lengths[part]);
        }
        for (word, times) in counted {
            let entry = self.entries.entry(word).or_default();
            for (passages, times) in entry.passages.iter_mut().zip(times) {
                *passages += i16::from(times > 0);
            }
            Posting { at, times, lengths }.write(&mut entry.postings);
        }
    }
}

/// What vectors lie under: those of different models or lengths are never compared.
pub(super) fn space_of(model: &str, dimensions: usize) -> Vec<u8> {
    Hash::of(format!("{dimensions} {model}")).as_bytes()[..16].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postings_come_back_as_they_were_written() {
        let posting = |at, times, lengths| Posting { at, times, lengths };
        let all = [posting(0, [1, 0], [127, 128]), posting(255, [0, 300], [16_384, 70_000])];
        let mut bytes = Vec::new();
        for posting in &all {
            posting.write(&mut bytes);
        }
        assert_eq!(postings(&bytes).unwrap(), all);
        assert!(postings(&bytes[..bytes.len() - 1]).is_err(), "an entry that is cut off is damaged");
        assert!(postings(&[0, 255, 255, 255, 255, 255, 1]).is_err(), "no number is so long");
    }

    #[test]
    fn a_spot_tells_its_block_and_its_number() {
        let spot = Spot::new(7_000_000_000, 255);
        assert_eq!((spot.block(), spot.at()), (7_000_000_000, 255));
        assert!(Spot::new(1, 255) < Spot::new(2, 0));
    }
}
