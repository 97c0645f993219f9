//! Vectors of values.

use super::{PostgresTables, Unanswered, entry_in, hold};
use crate::error::{damaged, failed};
use crate::graph::reading::Reading;
use crate::graph::tables::{execute, rows};
use crate::vectors::{Aim, EXACTLY, Kept, candidates, space_of};
use std::collections::{BTreeMap, HashSet};
use trellis_domain::Hash;
use trellis_orchestrator::ports::{
    NearValue, NearValues, TablePlace, TablesError, ValueQuery, ValueVector, Vectorless,
};
use trellis_orchestrator::tables::{MOST_FOUND, MOST_VECTORS, check_vectors};

/// Vectors that are fetched at once.
const TOGETHER: i64 = 2_000;

fn id_of(field: &str, text: &str) -> Vec<u8> {
    Hash::of_parts([field.as_bytes(), text.as_bytes()]).as_bytes()[..16].to_vec()
}

const COUNT: &str = "SELECT count(*) FROM row_vectors WHERE place = $1 AND space = $2";
/// One look for each: a server without statistics would rather compare all with all.
const KNOWN: &str = "SELECT v.id FROM unnest($3::bytea[]) AS n (id), LATERAL \
    (SELECT id FROM row_vectors WHERE place = $1 AND space = $2 AND id = n.id LIMIT 1) v";

pub(super) fn without(
    reading: &Reading,
    place: &TablePlace,
    model: &str,
    mut values: Vec<(String, String)>,
) -> Result<Vectorless, Unanswered> {
    let Some(entry) = entry_in(reading, place)? else { return Ok(Vectorless::within(values, MOST_VECTORS)) };
    let space = space_of(model);
    let ids: Vec<_> = values.iter().map(|(field, text)| id_of(field, text)).collect();
    let known = reading.rows(KNOWN, &[&entry.place, &space, &ids])?;
    let known: HashSet<&[u8]> = known.iter().map(|row| row.get(0)).collect();
    values.retain(|(field, text)| !known.contains(&id_of(field, text)[..]));
    let count = reading.rows(COUNT, &[&entry.place, &space])?.first().map_or(0, |row| row.get::<_, i64>(0));
    Ok(Vectorless::within(values, MOST_VECTORS.saturating_sub(count.unsigned_abs())))
}

impl PostgresTables {
    pub(super) async fn put_values(
        &self,
        place: &TablePlace,
        model: &str,
        vectors: Vec<ValueVector>,
    ) -> Result<u64, TablesError> {
        check_vectors(&vectors)?;
        let _turn = self.writers.enter(&place.workspace).await.ok_or(TablesError::Busy)?;
        let mut lease = self.lease().await?;
        let transaction = lease.transaction().await.map_err(failed)?;
        let space = space_of(model);
        let mut no_room = 0;
        if let Some(entry) = hold(&transaction, place).await? {
            let count = rows(&transaction, COUNT, &[&entry.place, &space]).await?;
            let mut count = count.first().map_or(0, |row| row.get::<_, i64>(0)).unsigned_abs();
            let ids: Vec<_> = vectors.iter().map(|value| id_of(&value.field, &value.text)).collect();
            let known = rows(&transaction, KNOWN, &[&entry.place, &space, &ids]).await?;
            let mut known: HashSet<Vec<u8>> = known.iter().map(|row| row.get(0)).collect();
            // The last one of a value is the one that stays.
            let mut taken = BTreeMap::new();
            for (id, value) in ids.into_iter().zip(&vectors) {
                if !known.contains(&id) {
                    if count >= MOST_VECTORS {
                        no_room += 1;
                        continue;
                    }
                    count += 1;
                    known.insert(id.clone());
                }
                taken.insert(id, value);
            }
            let kept: Vec<_> = taken.values().map(|value| Kept::of(&value.vector)).collect();
            let (ids, fields): (Vec<_>, Vec<_>) = taken.iter().map(|(id, value)| (id, value.field.as_bytes())).unzip();
            let texts: Vec<_> = taken.values().map(|value| value.text.as_bytes()).collect();
            let (signs, numbers): (Vec<_>, Vec<_>) = kept.iter().map(|kept| (&kept.signs, &kept.numbers)).unzip();
            let put = "INSERT INTO row_vectors (place, space, id, field, text, signs, vector) \
                SELECT $1::bigint, $2::bytea, id, field, text, signs::bit varying, vector FROM \
                unnest($3::bytea[], $4::bytea[], $5::bytea[], $6::text[], $7::bytea[]) AS n (id, field, text, signs, vector) \
                ON CONFLICT (place, space, id) DO UPDATE SET signs = EXCLUDED.signs, vector = EXCLUDED.vector";
            execute(&transaction, put, &[&entry.place, &space, &ids, &fields, &texts, &signs, &numbers]).await?;
        }
        transaction.commit().await.map_err(failed)?;
        lease.release();
        Ok(no_room)
    }
}

pub(super) fn near(reading: &Reading, place: &TablePlace, query: &ValueQuery) -> Result<NearValues, Unanswered> {
    let Some(entry) = entry_in(reading, place)? else { return Ok(NearValues::default()) };
    let (aim, space) = (Aim::of(&query.vector), space_of(&query.model));
    let (field, bytes) = (query.field.as_ref().map(String::as_bytes), 4 * aim.dimensions());
    let limit = query.limit.clamp(1, MOST_FOUND);
    let asked = "FROM row_vectors WHERE place = $1 AND space = $2 AND ($3::bytea IS NULL OR field = $3) \
        AND octet_length(vector) = $4";
    let count = reading.rows(&format!("SELECT count(*) {asked}"), &[&entry.place, &space, &field, &bytes])?;
    let compared = count.first().map_or(0, |row| row.get::<_, i64>(0)).unsigned_abs();
    let mut likely: Vec<Vec<u8>> = Vec::new();
    let chosen = compared > EXACTLY as u64;
    if chosen {
        let query = format!("SELECT id {asked} ORDER BY bit_count(signs # $5::text::bit varying), id LIMIT $6");
        let parameters: crate::database::Parameters<'_> =
            &[&entry.place, &space, &field, &bytes, &aim.signs, &candidates(limit)];
        likely = reading.rows(&query, parameters)?.iter().map(|row| row.get(0)).collect();
        likely.sort_unstable();
    }
    let (mut best, mut last) = (Vec::new(), Vec::new());
    loop {
        let query = format!(
            "SELECT id, field, text, vector {asked} AND id > $5 AND ($6 OR id = ANY ($7::bytea[])) ORDER BY id LIMIT $8"
        );
        let some = &likely[likely.partition_point(|id| *id <= last)..];
        let some = &some[..some.len().min(usize::try_from(TOGETHER).unwrap_or(usize::MAX))];
        let parameters: crate::database::Parameters<'_> =
            &[&entry.place, &space, &field, &bytes, &last, &!chosen, &some, &TOGETHER];
        let found = reading.rows(&query, parameters)?;
        for row in &found {
            let text = |column| String::from_utf8(row.get(column)).map_err(damaged);
            best.push(NearValue { field: text(1)?, text: text(2)?, score: aim.similarity(row.get(3)) });
        }
        keep(&mut best, limit);
        match found.last() {
            Some(row) => last = row.get(0),
            None => return Ok(NearValues { values: best, compared }),
        }
    }
}

fn keep(best: &mut Vec<NearValue>, limit: usize) {
    best.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then_with(|| (&one.field, &one.text).cmp(&(&other.field, &other.text)))
    });
    best.truncate(limit);
}
