//! Which passages mean what is looked for: those whose vectors are nearest. Where there are very many, those whose signs
//! differ least are compared.

use super::blocks::{Spot, space_of};
use super::ranking::best;
use crate::graph::reading::Reading;
use crate::vectors::{Aim, EXACTLY, candidates};
use tokio_postgres::Row;
use trellis_queries::QueryError;

/// Vectors that are fetched at once.
const TOGETHER: usize = 2_000;

/// The nearest passages, at least so many if there are, and with how many the question was compared.
pub(super) fn by_vector(
    reading: &Reading,
    place: i64,
    (model, vector): &(String, Vec<f32>),
    most: usize,
) -> Result<(Vec<(f64, Spot)>, u64), QueryError> {
    let (aim, space) = (Aim::of(vector), space_of(model, vector.len()));
    let count = "SELECT vectors FROM search_spaces WHERE place = $1 AND space = $2";
    let count = reading.rows(count, &[&place, &space])?;
    let compared = count.first().map_or(0, |row| row.get::<_, i64>(0)).unsigned_abs();
    let nearest = if compared > EXACTLY as u64 {
        likely(reading, place, &aim, &space, most)?
    } else {
        all(reading, place, &aim, &space, most)?
    };
    Ok((nearest, compared))
}

/// The passage of a row and how near it is.
fn near(row: &Row, aim: &Aim) -> (f64, Spot) {
    let at = row.get::<_, i16>(1).to_le_bytes()[0];
    (aim.similarity(row.get(2)), Spot::new(row.get(0), at))
}

fn all(reading: &Reading, place: i64, aim: &Aim, space: &[u8], most: usize) -> Result<Vec<(f64, Spot)>, QueryError> {
    let query = "SELECT block, at, vector FROM search_vectors \
        WHERE place = $1 AND space = $2 AND (block, at) > ($3, $4) ORDER BY block, at LIMIT $5";
    let together = i64::try_from(TOGETHER).unwrap_or(i64::MAX);
    let (mut nearest, mut last) = (Vec::new(), (0_i64, 0_i16));
    loop {
        let found = reading.rows(query, &[&place, &space, &last.0, &last.1, &together])?;
        nearest.extend(found.iter().map(|row| near(row, aim)));
        nearest = best(nearest, most);
        match found.last() {
            Some(row) if found.len() == TOGETHER => last = (row.get(0), row.get(1)),
            Some(_) | None => return Ok(nearest),
        }
    }
}

fn likely(reading: &Reading, place: i64, aim: &Aim, space: &[u8], most: usize) -> Result<Vec<(f64, Spot)>, QueryError> {
    let query = "SELECT block, at FROM search_vectors WHERE place = $1 AND space = $2 \
        ORDER BY bit_count(signs # $3::text::bit varying), block, at LIMIT $4";
    let likely = reading.rows(query, &[&place, &space, &aim.signs, &candidates(most)])?;
    let mut likely: Vec<(i64, i16)> = likely.iter().map(|row| (row.get(0), row.get(1))).collect();
    likely.sort_unstable();
    let query = "SELECT n.block, n.at, v.vector FROM unnest($2::bigint[], $3::smallint[]) AS n (block, at), LATERAL \
        (SELECT vector FROM search_vectors WHERE place = $1 AND block = n.block AND at = n.at LIMIT 1) v";
    let mut nearest = Vec::new();
    for some in likely.chunks(TOGETHER) {
        let (blocks, numbers): (Vec<_>, Vec<_>) = some.iter().copied().unzip();
        let found = reading.rows(query, &[&place, &blocks, &numbers])?;
        nearest.extend(found.iter().map(|row| near(row, aim)));
        nearest = best(nearest, most);
    }
    Ok(nearest)
}
