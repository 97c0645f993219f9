//! Blocks as columns for the server.

use super::blocks::{BLOCK, BlockWords, space_of};
use super::changes::Changes;
use crate::graph::tables::execute;
use crate::vectors::Kept;
use deadpool_postgres::Transaction;
use std::ops::Range;
use trellis_orchestrator::ports::{JournalError, SearchDocument};

/// Words of blocks that are written in one statement.
const WORDS_AT_ONCE: usize = 10_000;

/// Passages of a document that are to be a block.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Which of the documents.
    document: usize,
    passages: Range<usize>,
}

/// Documents as blocks, and these in groups that have as many passages as one block may have.
pub(super) fn groups(documents: &[SearchDocument]) -> Vec<Vec<Part>> {
    let mut groups: Vec<Vec<Part>> = Vec::new();
    let mut room = 0;
    for (document, passages) in documents.iter().map(|document| document.passages.len()).enumerate() {
        for first in (0..passages).step_by(BLOCK) {
            let part = Part { document, passages: first..passages.min(first + BLOCK) };
            if part.passages.len() > room {
                groups.push(Vec::new());
                room = BLOCK;
            }
            room -= part.passages.len();
            if let Some(group) = groups.last_mut() {
                group.push(part);
            }
        }
    }
    groups
}

/// A group of blocks, a list for each column.
#[derive(Debug, Default)]
pub(super) struct Encoded {
    blocks: Blocks,
    passages: Passages,
    words: Words,
    vectors: Vectors,
}

#[derive(Debug, Default)]
struct Blocks {
    number: Vec<i64>,
    document: Vec<String>,
    first: Vec<i64>,
    passages: Vec<i64>,
    text_words: Vec<i64>,
    above_words: Vec<i64>,
    space: Vec<Option<Vec<u8>>>,
}

#[derive(Debug, Default)]
struct Passages {
    block: Vec<i64>,
    at: Vec<i16>,
    stored: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Words {
    word: Vec<String>,
    block: Vec<i64>,
    texts: Vec<i16>,
    aboves: Vec<i16>,
    entries: Vec<Vec<u8>>,
}

#[derive(Debug, Default)]
struct Vectors {
    block: Vec<i64>,
    at: Vec<i16>,
    space: Vec<Vec<u8>>,
    signs: Vec<String>,
    vector: Vec<Vec<u8>>,
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Encoded {
    /// Blocks with their numbers; what they add to the collection is noted.
    pub(super) fn of(documents: &[SearchDocument], parts: &[Part], numbers: &[i64], changes: &mut Changes) -> Self {
        let mut encoded = Self::default();
        for (part, block) in parts.iter().zip(numbers) {
            if let Some(document) = documents.get(part.document) {
                encoded.add(*block, document, &part.passages, changes);
            }
        }
        encoded
    }

    fn add(&mut self, block: i64, document: &SearchDocument, range: &Range<usize>, changes: &mut Changes) {
        let passages = document.passages.get(range.clone()).unwrap_or_default();
        let words = BlockWords::of(document, passages);
        for (at, passage) in (0..).zip(passages) {
            self.passages.block.push(block);
            self.passages.at.push(at);
            self.passages.stored.push(serde_json::to_vec(passage).expect("a passage is always JSON"));
        }
        let space = self.add_vectors(block, document, range);
        let count = number(passages.len());
        changes.passages += count;
        if let Some(space) = &space {
            *changes.spaces.entry(space.clone()).or_default() += count;
        }
        for (all, length) in changes.lengths.iter_mut().zip(words.lengths) {
            *all += length;
        }
        let [text_words, above_words] = words.lengths;
        self.blocks.number.push(block);
        self.blocks.document.push(document.info.id.clone());
        self.blocks.first.push(number(range.start));
        self.blocks.passages.push(count);
        self.blocks.text_words.push(text_words);
        self.blocks.above_words.push(above_words);
        self.blocks.space.push(space);
        for (word, entry) in words.entries {
            let [texts, aboves] = entry.passages;
            changes.count(&word, [texts.into(), aboves.into()]);
            self.words.word.push(word);
            self.words.block.push(block);
            self.words.texts.push(texts);
            self.words.aboves.push(aboves);
            self.words.entries.push(entry.postings);
        }
    }

    /// What the vectors of a block lie under, if it has any.
    fn add_vectors(&mut self, block: i64, document: &SearchDocument, range: &Range<usize>) -> Option<Vec<u8>> {
        let vectors = document.vectors.as_ref()?;
        let own = vectors.vectors.get(range.clone())?;
        let space = space_of(&vectors.model, own.first()?.len());
        for (at, vector) in (0..).zip(own) {
            let Kept { numbers, signs } = Kept::of(vector);
            self.vectors.block.push(block);
            self.vectors.at.push(at);
            self.vectors.space.push(space.clone());
            self.vectors.signs.push(signs);
            self.vectors.vector.push(numbers);
        }
        Some(space)
    }

    pub(super) async fn write(&self, transaction: &Transaction<'_>, place: i64) -> Result<(), JournalError> {
        let Blocks { number, document, first, passages, text_words, above_words, space } = &self.blocks;
        let put = "INSERT INTO search_blocks (place, block, document, first, passages, text_words, above_words, space) \
            SELECT $1::bigint, * FROM unnest($2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], \
            $7::bigint[], $8::bytea[])";
        let columns: crate::database::Parameters<'_> =
            &[&place, number, document, first, passages, text_words, above_words, space];
        execute(transaction, put, columns).await?;
        let Passages { block, at, stored } = &self.passages;
        let put = "INSERT INTO search_passages (place, block, at, stored) \
            SELECT $1::bigint, * FROM unnest($2::bigint[], $3::smallint[], $4::bytea[])";
        execute(transaction, put, &[&place, block, at, stored]).await?;
        let Vectors { block, at, space, signs, vector } = &self.vectors;
        if !block.is_empty() {
            let put = "INSERT INTO search_vectors (place, block, at, space, signs, vector) \
                SELECT $1::bigint, block, at, space, signs::bit varying, vector FROM \
                unnest($2::bigint[], $3::smallint[], $4::bytea[], $5::text[], $6::bytea[]) \
                AS n (block, at, space, signs, vector)";
            execute(transaction, put, &[&place, block, at, space, signs, vector]).await?;
        }
        self.words.write(transaction, place).await
    }
}

impl Words {
    async fn write(&self, transaction: &Transaction<'_>, place: i64) -> Result<(), JournalError> {
        let put = "INSERT INTO search_words (place, word, block, texts, aboves, entries) \
            SELECT $1::bigint, * FROM unnest($2::text[], $3::bigint[], $4::smallint[], $5::smallint[], $6::bytea[])";
        let all = self.word.chunks(WORDS_AT_ONCE).zip(self.block.chunks(WORDS_AT_ONCE));
        let counts = self.texts.chunks(WORDS_AT_ONCE).zip(self.aboves.chunks(WORDS_AT_ONCE));
        let entries = self.entries.chunks(WORDS_AT_ONCE);
        for (((words, blocks), (texts, aboves)), entries) in all.zip(counts).zip(entries) {
            execute(transaction, put, &[&place, &words, &blocks, &texts, &aboves, &entries]).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trellis_orchestrator::contract::search::document;

    #[test]
    fn documents_are_cut_into_groups_of_blocks() {
        let of = |passages: usize| document("d", &vec!["text"; passages]);
        let documents = [of(1), of(0), of(255), of(600), of(3)];
        let groups: Vec<Vec<_>> = groups(&documents)
            .iter()
            .map(|group| group.iter().map(|part| (part.document, part.passages.clone())).collect())
            .collect();
        let expected =
            [vec![(0, 0..1), (2, 0..255)], vec![(3, 0..256)], vec![(3, 256..512)], vec![(3, 512..600), (4, 0..3)]];
        assert_eq!(groups, expected);
    }
}
