//! What is found in a collection: by words and by meaning, joined, with the passages themselves.

use super::blocks::{Parts, Spot};
use super::listed;
use super::nearest::by_vector;
use super::ranking::by_words;
use crate::error::damaged;
use crate::graph::reading::Reading;
use std::collections::{BTreeMap, HashMap};
use trellis_orchestrator::documents::{MOST_CANDIDATES, MOST_FOUND, fuse};
use trellis_orchestrator::ports::{FoundPassage, FoundPassages, JournalError, Passage, SearchQuery};
use trellis_queries::QueryError;

/// A passage by its document and number.
type Key = (String, u64);

/// A collection as of a reading.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) number: i64,
    pub(super) passages: u64,
    /// How many words its passages have.
    pub(super) lengths: Parts<u64>,
}

pub(super) fn find(reading: &Reading, names: &[String; 3], query: &SearchQuery) -> Result<FoundPassages, QueryError> {
    let limit = query.limit.min(MOST_FOUND);
    let Some(place) = place(reading, names)?.filter(|_| limit > 0) else { return Ok(FoundPassages::default()) };
    let most = limit * MOST_CANDIDATES;
    let mut spots = BTreeMap::new();
    let scored = by_words(reading, &place, &query.text, most)?;
    let by_words = ranked(reading, &place, scored, most, &mut spots)?;
    let (similar, compared) = match &query.vector {
        Some(vector) => by_vector(reading, place.number, vector, most)?,
        None => (Vec::new(), 0),
    };
    let by_vector = ranked(reading, &place, similar, most, &mut spots)?;
    let best: Vec<_> = fuse([by_words, by_vector]).into_iter().take(limit).collect();
    let passages = passages(reading, &place, &best, &spots)?;
    Ok(FoundPassages { passages, compared })
}

fn place(reading: &Reading, [kind, workspace, collection]: &[String; 3]) -> Result<Option<Place>, QueryError> {
    let query = "SELECT place, passages, text_words, above_words FROM search_collections \
        WHERE kind = $1 AND workspace = $2 AND collection = $3";
    let found = reading.rows(query, &[kind, workspace, collection])?;
    Ok(found.first().map(|row| {
        let count = |column| row.get::<_, i64>(column).unsigned_abs();
        Place { number: row.get(0), passages: count(1), lengths: [count(2), count(3)] }
    }))
}

/// The best first; equals by document and number. Where each of them lies is added to what is known.
fn ranked(
    reading: &Reading,
    place: &Place,
    scored: Vec<(f64, Spot)>,
    most: usize,
    spots: &mut BTreeMap<Key, Spot>,
) -> Result<Vec<Key>, QueryError> {
    let mut blocks: Vec<i64> = scored.iter().map(|(_, spot)| spot.block()).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let query = "SELECT b.block, b.document, b.first FROM unnest($2::bigint[]) AS n (block), LATERAL \
        (SELECT block, document, first FROM search_blocks WHERE place = $1 AND block = n.block LIMIT 1) b";
    let found = reading.rows(query, &[&place.number, &blocks])?;
    let known: HashMap<i64, (&str, u64)> =
        found.iter().map(|row| (row.get(0), (row.get(1), row.get::<_, i64>(2).unsigned_abs()))).collect();
    let mut keyed = Vec::with_capacity(scored.len());
    for (score, spot) in scored {
        let (document, first) = known.get(&spot.block()).ok_or_else(|| lost("a block"))?;
        keyed.push((score, (*document, first + u64::from(spot.at().unsigned_abs())), spot));
    }
    keyed.sort_by(|(one, key, _), (other, other_key, _)| other.total_cmp(one).then_with(|| key.cmp(other_key)));
    let best = keyed.into_iter().take(most).map(|(_, (document, number), spot)| {
        let key = (document.to_owned(), number);
        spots.insert(key.clone(), spot);
        key
    });
    Ok(best.collect())
}

/// The passages themselves, in the order of their scores.
fn passages(
    reading: &Reading,
    place: &Place,
    best: &[(Key, f64)],
    spots: &BTreeMap<Key, Spot>,
) -> Result<Vec<FoundPassage>, QueryError> {
    let spots: Vec<Spot> = best.iter().filter_map(|(key, _)| spots.get(key).copied()).collect();
    let (blocks, numbers): (Vec<_>, Vec<_>) = spots.iter().map(|spot| (spot.block(), spot.at())).unzip();
    let documents: Vec<_> = best.iter().map(|((document, _), _)| document.as_str()).collect();
    let query = "SELECT n.rank, p.stored, d.listed \
        FROM unnest($2::bigint[], $3::smallint[], $4::text[]) WITH ORDINALITY AS n (block, at, document, rank), \
        LATERAL (SELECT stored FROM search_passages WHERE place = $1 AND block = n.block AND at = n.at LIMIT 1) p, \
        LATERAL (SELECT listed FROM search_documents WHERE place = $1 AND id = n.document LIMIT 1) d ORDER BY n.rank";
    let found = reading.rows(query, &[&place.number, &blocks, &numbers, &documents])?;
    if found.len() != best.len() {
        return Err(lost("a passage").into());
    }
    let passage = |(row, ((_, number), score)): (&tokio_postgres::Row, &(Key, f64))| {
        let passage: Passage = serde_json::from_slice(row.get(1)).map_err(damaged)?;
        Ok(FoundPassage { document: listed(row, 2)?.info, number: *number, passage, score: *score })
    };
    found.iter().zip(best).map(passage).collect()
}

fn lost(what: &str) -> JournalError {
    damaged(format!("the search index has lost {what}; load the documents anew"))
}
