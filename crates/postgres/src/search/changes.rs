//! What a change does to the numbers of a collection. They are changed by whoever holds it, so that they add up.

use super::blocks::Parts;
use crate::graph::tables::execute;
use deadpool_postgres::Transaction;
use std::collections::BTreeMap;
use trellis_orchestrator::ports::JournalError;

/// Words that are counted in one statement.
const WORDS_AT_ONCE: usize = 10_000;

/// What there is more, or less.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) passages: i64,
    /// How many words they have.
    pub(super) lengths: Parts<i64>,
    /// In how many passages a word is.
    pub(super) words: BTreeMap<String, Parts<i64>>,
    /// How many vectors there are.
    pub(super) spaces: BTreeMap<Vec<u8>, i64>,
}

impl Changes {
    pub(super) fn count(&mut self, word: &str, passages: Parts<i64>) {
        let counted = match self.words.get_mut(word) {
            Some(counted) => counted,
            None => self.words.entry(word.to_owned()).or_default(),
        };
        for (counted, passages) in counted.iter_mut().zip(passages) {
            *counted += passages;
        }
    }

    pub(super) async fn apply(&self, transaction: &Transaction<'_>, place: i64) -> Result<(), JournalError> {
        let change = "UPDATE search_collections SET passages = passages + $2, text_words = text_words + $3, \
            above_words = above_words + $4 WHERE place = $1";
        let [texts, aboves] = &self.lengths;
        execute(transaction, change, &[&place, &self.passages, texts, aboves]).await?;
        // A document that takes the place of another one has most of its words.
        let changed: Vec<_> = self.words.iter().filter(|(_, count)| **count != [0, 0]).collect();
        for some in changed.chunks(WORDS_AT_ONCE) {
            self.count_words(transaction, place, some).await?;
        }
        let changed = self.spaces.iter().filter(|(_, vectors)| **vectors != 0);
        let (spaces, vectors): (Vec<&[u8]>, Vec<i64>) =
            changed.map(|(space, vectors)| (space.as_slice(), *vectors)).unzip();
        if !spaces.is_empty() {
            let count = "INSERT INTO search_spaces AS s (place, space, vectors) \
                SELECT $1::bigint, * FROM unnest($2::bytea[], $3::bigint[]) \
                ON CONFLICT (place, space) DO UPDATE SET vectors = s.vectors + EXCLUDED.vectors";
            execute(transaction, count, &[&place, &spaces, &vectors]).await?;
            let forget = "DELETE FROM search_spaces WHERE place = $1 AND space = ANY ($2::bytea[]) AND vectors = 0";
            execute(transaction, forget, &[&place, &spaces]).await?;
        }
        Ok(())
    }

    async fn count_words(
        &self,
        transaction: &Transaction<'_>,
        place: i64,
        some: &[(&String, &Parts<i64>)],
    ) -> Result<(), JournalError> {
        let words: Vec<_> = some.iter().map(|(word, _)| word.as_str()).collect();
        let (texts, aboves): (Vec<_>, Vec<_>) = some.iter().map(|(_, [texts, aboves])| (*texts, *aboves)).unzip();
        let count = "INSERT INTO search_frequencies AS f (place, word, texts, aboves) \
            SELECT $1::bigint, * FROM unnest($2::text[], $3::bigint[], $4::bigint[]) \
            ON CONFLICT (place, word) DO UPDATE SET texts = f.texts + EXCLUDED.texts, aboves = f.aboves + EXCLUDED.aboves";
        execute(transaction, count, &[&place, &words, &texts, &aboves]).await?;
        let fewer = some.iter().filter(|(_, count)| count.iter().any(|count| *count < 0));
        let fewer: Vec<_> = fewer.map(|(word, _)| word.as_str()).collect();
        if fewer.is_empty() {
            return Ok(());
        }
        let forget = "DELETE FROM search_frequencies WHERE place = $1 AND word = ANY ($2::text[]) \
            AND texts = 0 AND aboves = 0";
        execute(transaction, forget, &[&place, &fewer]).await.map(drop)
    }
}
