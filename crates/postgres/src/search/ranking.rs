//! Which passages fit the words of a question best: BM25 with its usual parameters, of the text of a passage and of what
//! stands above it.
//!
//! The rarest word comes first. Once the words that are left could not bring a passage among the best that has none of
//! those before, they are looked for in the passages only that are known by then: what is found is the same, and words
//! that nearly all passages have are not read. Where the words of a question are so common that too much would be
//! read, it is done for the likeliest passages all the same.

use super::blocks::{Parts, Posting, Spot, postings};
use super::finding::Place;
use crate::graph::reading::Reading;
use std::collections::{BTreeSet, HashMap};
use tokio_postgres::Row;
use trellis_orchestrator::documents::{QueryWord, different_words, query_words};
use trellis_queries::QueryError;

/// Passages that may be read to become acquainted with, over all words; those of the rarest word always are.
const MOST_READ: u64 = 1_000_000;
/// Blocks with a word that are fetched at once.
const PAGE: i64 = 4_096;
/// Passages that words are looked for in, times the words: so many looks a search may take.
const MOST_LOOKS: usize = 200_000;
/// At most so many passages, and at least as many as are wanted.
const MOST_LIKELY: usize = 4_096;
/// As many that are as good as the last one are kept beside it: what comes first of these is decided by their names.
const EQUALS: usize = 4_096;

/// A word, and what a passage gets for it.
#[derive(Debug)]
struct Wanted {
    text: String,
    /// How many passages have it, counted for each part.
    entries: u64,
    weights: Parts<f64>,
}

impl Wanted {
    fn of(word: QueryWord, passages: f64, having: Parts<u64>) -> Self {
        let weight = |having: u64| {
            if having == 0 {
                return 0.0;
            }
            let having = number(having);
            f64::from(word.weight) * (1.0 + (passages - having + 0.5) / (having + 0.5)).ln()
        };
        Self { weights: having.map(weight), entries: having.iter().sum(), text: word.text }
    }

    /// No passage gets more for it.
    fn most(&self) -> f64 {
        self.weights.iter().map(|weight| weight * 2.2).sum()
    }

    fn score(&self, posting: &Posting, averages: Parts<f64>) -> f64 {
        let part = |part: usize| {
            let (times, length) = (f64::from(posting.times[part]), f64::from(posting.lengths[part]));
            if times == 0.0 {
                return 0.0;
            }
            let length = 1.2 * (0.25 + 0.75 * length / averages[part]);
            self.weights[part] * times * 2.2 / (times + length)
        };
        part(0) + part(1)
    }
}

#[allow(clippy::cast_precision_loss, reason = "there are not so many passages")]
fn number(count: u64) -> f64 {
    count as f64
}

/// The best passages, with those that are as good as the last of them.
pub(super) fn best(mut scored: Vec<(f64, Spot)>, most: usize) -> Vec<(f64, Spot)> {
    if let Some(least) = nth(scored.iter().map(|(score, _)| *score), most) {
        scored.retain(|(score, _)| *score >= least);
    }
    scored.sort_unstable_by(|(one, spot), (other, other_spot)| other.total_cmp(one).then(spot.cmp(other_spot)));
    scored.truncate(most + EQUALS);
    scored
}

/// What the last one of the best has. None if there are not so many.
fn nth(scores: impl Iterator<Item = f64>, most: usize) -> Option<f64> {
    let mut scores: Vec<f64> = scores.collect();
    let last = most.checked_sub(1).filter(|last| *last < scores.len())?;
    Some(*scores.select_nth_unstable_by(last, |one, other| other.total_cmp(one)).1)
}

/// The passages that fit best, at least so many if there are.
pub(super) fn by_words(
    reading: &Reading,
    place: &Place,
    question: &str,
    most: usize,
) -> Result<Vec<(f64, Spot)>, QueryError> {
    let wanted = wanted(reading, place, question)?;
    let passages = number(place.passages.max(1));
    let averages = place.lengths.map(|length| number(length) / passages);
    let mut looking = Looking { reading, place: place.number, averages, scores: HashMap::new() };
    let mut read = 0;
    for (at, word) in wanted.iter().enumerate() {
        read += word.entries;
        let left: f64 = wanted[at..].iter().map(Wanted::most).sum();
        if at > 0 && (read > MOST_READ || looking.knows_the_best(word, left, most)) {
            looking.only_likely(&wanted[at..], left, most)?;
            break;
        }
        looking.everywhere(word)?;
    }
    let scored = looking.scores.into_iter().map(|(spot, score)| (score, spot));
    Ok(best(scored.collect(), most))
}

/// The words that are looked for, the rarest first.
fn wanted(reading: &Reading, place: &Place, question: &str) -> Result<Vec<Wanted>, QueryError> {
    let words: Vec<_> = different_words(question).into_iter().map(|word| word.text).collect();
    let query = "SELECT word, texts, aboves FROM search_frequencies WHERE place = $1 AND word = ANY ($2::text[])";
    let found = reading.rows(query, &[&place.number, &words])?;
    let count = |row: &Row, column| row.get::<_, i64>(column).unsigned_abs();
    let having: HashMap<&str, Parts<u64>> =
        found.iter().map(|row| (row.get(0), [count(row, 1), count(row, 2)])).collect();
    let of = |word: &str| having.get(word).copied().unwrap_or_default();
    let chosen = query_words(question, |word| Ok::<_, QueryError>(of(word).iter().sum()))?;
    let passages = number(place.passages);
    let wanted = chosen.into_iter().map(|word| {
        let having = of(&word.text);
        Wanted::of(word, passages, having)
    });
    Ok(wanted.collect())
}

struct Looking<'a> {
    reading: &'a Reading,
    place: i64,
    /// How many words a passage has.
    averages: Parts<f64>,
    scores: HashMap<Spot, f64>,
}

impl Looking<'_> {
    /// Whether no passage that is not known yet can be among the best, if so much can be had for the words that are left.
    /// Where reading the next word takes less time than finding that out, it is not asked.
    fn knows_the_best(&self, next: &Wanted, left: f64, most: usize) -> bool {
        next.entries.saturating_mul(8) > self.scores.len() as u64
            && nth(self.scores.values().copied(), most).is_some_and(|least| least > left)
    }

    /// All passages that have a word.
    fn everywhere(&mut self, word: &Wanted) -> Result<(), QueryError> {
        let query = "SELECT block, entries FROM search_words WHERE place = $1 AND word = $2 AND block > $3 \
            ORDER BY block LIMIT $4";
        let mut last = 0_i64;
        loop {
            let found = self.reading.rows(query, &[&self.place, &word.text, &last, &PAGE])?;
            for row in &found {
                last = row.get(0);
                for posting in postings(row.get(1))? {
                    let score = word.score(&posting, self.averages);
                    *self.scores.entry(Spot::new(last, posting.at)).or_default() += score;
                }
            }
            if i64::try_from(found.len()) != Ok(PAGE) {
                return Ok(());
            }
        }
    }

    /// The words that are left, in those passages that can still be among the best.
    fn only_likely(&mut self, words: &[Wanted], left: f64, most: usize) -> Result<(), QueryError> {
        let least = nth(self.scores.values().copied(), most).unwrap_or_default();
        self.scores.retain(|_, score| *score + left >= least);
        let room = (MOST_LOOKS / words.len().max(1)).clamp(most, MOST_LIKELY.max(most));
        if self.scores.len() > room {
            let scored = self.scores.drain().map(|(spot, score)| (score, spot));
            let likely = best(scored.collect(), room);
            self.scores = likely.into_iter().take(room).map(|(score, spot)| (spot, score)).collect();
        }
        let blocks: Vec<i64> =
            self.scores.keys().map(|spot| spot.block()).collect::<BTreeSet<_>>().into_iter().collect();
        let query = "SELECT n.block, w.entries FROM unnest($3::bigint[]) AS n (block), LATERAL \
            (SELECT entries FROM search_words WHERE place = $1 AND word = $2 AND block = n.block LIMIT 1) w";
        for word in words {
            for row in self.reading.rows(query, &[&self.place, &word.text, &blocks])? {
                for posting in postings(row.get(1))? {
                    if let Some(score) = self.scores.get_mut(&Spot::new(row.get(0), posting.at)) {
                        *score += word.score(&posting, self.averages);
                    }
                }
            }
        }
        Ok(())
    }
}
